import { HUB_STORIES } from '../../support/e2e-hub-story.ts';
import { hubKillSuite } from '../../support/e2e-hub-kills.ts';

hubKillSuite('a hub in mode aap without an operator', HUB_STORIES.aapAlone);
