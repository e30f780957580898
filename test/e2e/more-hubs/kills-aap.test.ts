import { HUB_STORIES } from '../../support/e2e-hub-story.ts';
import { hubKillSuite } from '../../support/e2e-hub-kills.ts';

hubKillSuite('a hub in mode aap without an operator', HUB_STORIES.aapAlone);
if (process.env['LEDGER_TEST_KILLS'] !== undefined) {
  hubKillSuite('a hub in mode aap with an operator', HUB_STORIES.aapWithOperator);
}
