import { HUB_STORIES, hubStory } from '../../support/hubs/story-suite.ts';

hubStory('a hub in mode eda without an operator', HUB_STORIES.edaAlone);
