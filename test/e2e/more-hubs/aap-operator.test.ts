import { HUB_STORIES, hubStory } from '../../support/hubs/story-suite.ts';

hubStory('a hub in mode aap with an operator', HUB_STORIES.aapWithOperator);
