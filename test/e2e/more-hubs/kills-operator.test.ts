import { HUB_STORIES } from '../../support/e2e-hub-story.ts';
import { hubKillSuite } from '../../support/e2e-hub-kills.ts';

hubKillSuite('a hub in mode operator', HUB_STORIES.operator);
