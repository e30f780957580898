import { expect } from 'chai';
import { join } from 'node:path';
import { readHubCalls, type HubCall } from '../../support/hubs/hub-journal.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { eventually } from '../../support/eventually.ts';
import { PRIVATE } from '../../support/http/service.ts';
import { ipAt, IPS, networkStory, ok, POOLS, type NetworkStory } from '../../support/hubs/network-story.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';

/** What simulated hubs hold of a tenant, by their journals. */
describe('a tenant on its hubs', () => {
  let whole: WholeService;
  let people: NetworkStory;

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
  });
  after(() => whole.dispose());

  const journal = (hub: string): readonly HubCall[] =>
    readHubCalls(join(whole.dataDir, 'hubs', `${hub}.sqlite`));
  const made = (hub: string, kind: string): readonly HubCall[] =>
    journal(hub).filter(
      (call) => call.kind === kind && call.operation === 'create' && call.result === 'created',
    );
  const removals = (hub: string, name: string): number =>
    journal(hub).filter(
      ({ kind, object, operation, result }) =>
        kind === 'Tenant' && object === name && operation === 'delete' && result === 'deletion-requested',
    ).length;

  it('is made there once, before the first of many objects, and goes with the tenant', async () => {
    const pool = await people.makePool('192.0.2.0/26', { 'fulfillment-ledger/quarantine': 'PT0S' });
    const hub = stringAt(await people.statusAt(`${POOLS}/${pool}`), 'hub');
    const ids = await Promise.all(Array.from({ length: 12 }, () => people.order(pool)));
    for (const id of ids) await people.shows(ipAt(id), 'ALLOCATED');
    const tenants = made(hub, 'Tenant').filter(({ object }) => object === 't1');
    expect(tenants).to.have.length(1);
    const [tenant] = tenants;
    for (const { number } of made(hub, 'ExternalIP')) expect(number).to.be.greaterThan(tenant?.number ?? 0);
    const waits = (await whole.log()).filter(
      ({ type, data }) =>
        type === 'ExternalIPWaiting' && stringAt(data, 'message').startsWith('TenantNotReady: '),
    );
    expect(waits.length, 'all that came before it waited').to.be.within(1, ids.length);

    const onHub = async () =>
      (await people.admin('GET', `/api/ledger/v1/hubs/${hub}/orders?limit=1000`)).json;
    const listed = JSON.stringify(await onHub());
    for (const id of ids) expect(listed, 'what is there with its pool').to.contain(id);
    const states = (await people.admin('GET', `/api/ledger/v1/hubs/${hub}`)).json;
    expect(states['orders']).to.deep.include({ allocated: ids.length });
    expect(states['tenants']).to.deep.equal({ ready: 2, waiting: [] });
    const refused = await people.admin('DELETE', `${PRIVATE}/hubs/${hub}`);
    expect(refused.status, refused.text).to.equal(400);
    expect(refused.json['message']).to.match(/still holds Tenants and Namespaces of shared, t1; .* --force/);

    expect((await people.admin('DELETE', `${PRIVATE}/tenants/t1`)).status, 'it has objects').to.equal(400);
    for (const id of ids) ok(await people.user('DELETE', `${IPS}/${id}`));
    for (const id of ids) await people.isGone(ipAt(id));
    expect(removals(hub, 't1'), 'its last object is gone, and it stays').to.equal(0);
    ok(await people.admin('DELETE', `${PRIVATE}/tenants/t1`));
    await eventually('the hub is asked to let it go', () => removals(hub, 't1') === 1);
    await eventually('its absence was seen', async () =>
      (await whole.log()).some(({ type }) => type === 'TenantSpaceRemoved'),
    );

    ok(await people.admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't1' } }));
    await people.shows(ipAt(await people.order(pool)), 'ALLOCATED');
    expect(made(hub, 'Tenant').filter(({ object }) => object === 't1')).to.have.length(2);
  });
});
