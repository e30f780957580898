import { HUB_STORIES, hubStory } from '../../support/e2e-hub-story.ts';

hubStory('a hub without an operator, and a namespace for each tenant', HUB_STORIES.tenantNamespaces);
