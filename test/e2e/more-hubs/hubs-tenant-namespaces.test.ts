import { HUB_STORIES, hubStory } from '../../support/hubs/story-suite.ts';

hubStory('a hub without an operator, and a namespace for each tenant', HUB_STORIES.tenantNamespaces);
