import { HUB_STORIES, hubStory } from '../../support/hubs/story-suite.ts';

hubStory('a hub in mode operator', HUB_STORIES.operator);
