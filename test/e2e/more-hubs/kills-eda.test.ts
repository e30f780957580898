import { HUB_STORIES } from '../../support/e2e-hub-story.ts';
import { hubKillSuite } from '../../support/e2e-hub-kills.ts';

hubKillSuite('a hub in mode eda without an operator', HUB_STORIES.edaAlone);
if (process.env['LEDGER_TEST_KILLS'] !== undefined) {
  hubKillSuite('a hub in mode eda with an operator', HUB_STORIES.edaWithOperator);
}
