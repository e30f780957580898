import { HUB_STORIES, hubStory } from '../../support/hubs/story-suite.ts';

hubStory('a hub in mode eda with an operator', HUB_STORIES.edaWithOperator);
