import { HUB_STORIES, hubStory } from '../../support/e2e-hub-story.ts';

hubStory('a hub in mode aap with an operator', HUB_STORIES.aapWithOperator);
