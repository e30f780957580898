import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { join } from 'node:path';
import { simulatedSiteFile } from '../../../src/adapters/site/simulated/simulated-sites.ts';
import { listAt, numberAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { eventually } from '../../support/eventually.ts';
import { networkStory, ok } from '../../support/hubs/network-story.ts';
import { createWholeService } from '../../support/service/whole-service.ts';

const LEDGER = '/api/ledger/v1';
const CLUSTERS = '/api/fulfillment/v1/clusters';

/** The whole service: an order whose steps the ledger does on the simulated site of its zone. */
describe('an order on a site', function () {
  this.timeout(90_000);

  it('goes through its steps, each found in the journal of the site, and back', async () => {
    const whole = await createWholeService();
    try {
      await whole.start();
      const { admin, user } = await networkStory(whole);
      const common = { zone: 'west', quarantine_seconds: 0, reason: 'a site for the west' };
      ok(
        await admin('POST', `${LEDGER}/pools/vlan`, {
          ...common,
          id: 'v',
          fabric: 'west',
          ranges: ['100-199'],
        }),
      );
      ok(
        await admin('POST', `${LEDGER}/pools/prefix`, {
          ...common,
          id: 'p',
          vrf: 'r',
          ranges: ['10.20.0.0/16'],
        }),
      );
      const annotations = { simulation: 'factor=0.05', 'fulfillment-ledger/zone': 'west' };
      const spec = { template: { id: 'osac.templates.ocp_small' } };
      const ordered = ok(
        await user('POST', CLUSTERS, { metadata: { name: 'sited', annotations }, spec }),
      ) as JsonObject;
      const id = stringAt(ordered, 'id');
      const shown = async (): Promise<JsonObject> =>
        (await admin('GET', `${LEDGER}/orders/${id}`)).json as JsonObject;
      let order: JsonObject = {};
      const state = (wanted: string) =>
        eventually(
          () => `it is ${wanted}: ${JSON.stringify(objectAt(order, 'run')).slice(0, 3_000)}`,
          async () => stringAt((order = await shown()), 'state') === wanted,
          60_000,
        );
      await state('ready');
      const steps = listAt(objectAt(order, 'run'), 'steps');
      const ours = steps.filter((step) => stringAt(step, 'rule') !== '');
      expect(ours.map((step) => stringAt(step, 'state'))).to.deep.equal(ours.map(() => 'done'));
      const site = new DatabaseSync(simulatedSiteFile(join(whole.dataDir, 'sites'), 'west'), {
        readOnly: true,
      });
      const journalled = new Set(
        site
          .prepare('SELECT DISTINCT effect_id FROM calls')
          .all()
          .map((call) => String(call['effect_id'])),
      );
      for (const step of ['agents', 'l2', 'ports', 'l3', 'l3-bind', 'dns', 'validation-nodes']) {
        const effect = stringAt(
          steps.find((each) => stringAt(each, 'step') === step),
          'effect',
        );
        expect(
          [...journalled].some((known) => known.startsWith(effect)),
          `${step}: ${effect}`,
        ).to.equal(true);
      }
      ok(await user('DELETE', `${CLUSTERS}/${id}`));
      await state('deleted');
      expect(site.prepare('SELECT sort, name FROM items WHERE gone_at IS NULL').all()).to.deep.equal([]);
      site.close();
      const pools = listAt(ok(await admin('GET', `${LEDGER}/pools`)) as JsonObject, 'items');
      const used = pools
        .filter((pool) => ['v', 'p'].includes(stringAt(pool, 'id')))
        .map((pool) => numberAt(pool, 'used'));
      expect(used).to.deep.equal([0, 0]);
    } finally {
      await whole.dispose();
    }
  });
});
