import { HUB_STORIES, hubStory } from '../../support/e2e-hub-story.ts';

hubStory('a hub in mode eda with an operator', HUB_STORIES.edaWithOperator);
