import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { eventually } from '../../support/eventually.ts';
import { itemsOf } from '../../support/http/service.ts';
import { ipAt, IPS, networkStory, ok, POOLS, type NetworkStory } from '../../support/hubs/network-story.ts';

const LEDGER = '/api/ledger/v1';
/** What its hub said besides is for the provider. */
const NOT_MADE = 'the hub could not make the external IP ready';

/** The whole service with its simulated hubs: what becomes of pools and external IPs there. */
describe('external IPs on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
  });
  after(() => whole.dispose());

  it('a pool becomes ready, an IP gets the lowest address, and both go again', async () => {
    const pool = await people.makePool('192.0.2.0/29', { 'fulfillment-ledger/quarantine': 'PT0S' });
    const [first, second] = [await people.order(pool), await people.order(pool)];
    const shown = [
      await people.shows(ipAt(first), 'ALLOCATED'),
      await people.shows(ipAt(second), 'ALLOCATED'),
    ];
    const addresses = shown.map((status) => stringAt(status, 'address')).toSorted();
    expect(addresses).to.deep.equal(['192.0.2.1', '192.0.2.2']);
    expect(await people.statusAt(`${POOLS}/${pool}`)).to.include({
      total: '6',
      allocated: '2',
      available: '4',
    });
    for (const id of [first, second]) {
      ok(await people.user('DELETE', `${IPS}/${id}`));
      await people.isGone(ipAt(id));
    }
    expect(await people.statusAt(`${POOLS}/${pool}`)).to.include({ available: '6' });
    ok(await people.admin('DELETE', `${POOLS}/${pool}`));
    await people.isGone(`${POOLS}/${pool}`);
  });

  it('an address that was asked for is given, also of an IPv6 pool', async () => {
    const pool = await people.makePool('2001:db8::/64');
    const id = await people.order(pool, { 'fulfillment-ledger/address': '2001:db8::0:42' });
    expect(await people.shows(ipAt(id), 'ALLOCATED')).to.include({ address: '2001:db8::42' });
    const metadata = { name: 'twice', annotations: { 'fulfillment-ledger/address': '2001:db8::42' } };
    const again = await people.user('POST', IPS, { metadata, spec: { pool: { id: pool } } });
    expect([again.status, again.json['message']]).to.deep.equal([400, "address '2001:db8::42' is taken"]);
  });

  it('an order waits while only resting addresses are left, and gets one when its time has come', async () => {
    const pool = await people.makePool('198.51.100.8/32', { 'fulfillment-ledger/quarantine': 'PT3S' });
    const first = await people.order(pool);
    await people.shows(ipAt(first), 'ALLOCATED');
    ok(await people.user('DELETE', `${IPS}/${first}`));
    await people.isGone(ipAt(first));
    const second = await people.order(pool);
    let seen: JsonObject = {};
    await eventually('it says what it waits for', async () => {
      seen = await people.statusAt(ipAt(second));
      return stringAt(seen, 'message') !== '';
    });
    expect(seen).to.include({ state: 'EXTERNAL_IP_STATE_PENDING' });
    expect(seen['message']).to.match(/external IP pool .* rest until 20/);
    expect(await people.shows(ipAt(second), 'ALLOCATED')).to.deep.include({ address: '198.51.100.8' });
    const released = (await whole.log()).filter(({ stream }) => stream === `externalIpPool-${pool}`);
    const [until, assigned] = [
      stringAt(released.find(({ type }) => type === 'AddressReleased')?.data, 'restsUntil'),
      stringAt(released.findLast(({ type }) => type === 'AddressAssigned')?.data, 'at'),
    ];
    expect(assigned >= until).to.equal(true);
  });

  it('one that failed on its hub is tried again when an operator says so', async () => {
    const pool = await people.makePool('198.51.100.16/30');
    const id = await people.order(pool, {
      simulation: 'factor=0.05,failInstall=1,failText=no route,retry=1h',
    });
    expect(await people.shows(ipAt(id), 'FAILED')).to.include({ message: NOT_MADE });
    const { json } = await people.admin('GET', `${LEDGER}/orders/${id}`);
    expect(json).to.deep.include({ kind: 'externalIp', state: 'failed' });
    expect(objectAt(json as JsonObject, 'failure')).to.include({
      reason: 'ProvisioningFailed',
      message: NOT_MADE,
      detail: 'no route',
    });
    ok(await people.admin('POST', `${LEDGER}/orders/${id}/retry`, {}));
    await eventually(
      'it was sent again',
      async () => (await people.statusAt(ipAt(id)))['message'] === undefined,
    );
  });

  it('one that failed is aborted: its address is free again, and it is retried or deleted', async () => {
    const pool = await people.makePool('198.51.100.48/32', { 'fulfillment-ledger/quarantine': 'PT0S' });
    const id = await people.order(pool, {
      simulation: 'factor=0.05,failInstall=1,failText=no route,retry=1h',
    });
    await people.shows(ipAt(id), 'FAILED');
    expect((await people.user('DELETE', `${IPS}/${id}`)).status).to.equal(400);
    const abort = `${LEDGER}/orders/${id}/abort`;
    ok(await people.admin('POST', abort, { reason: 'the route is gone' }));
    await eventually('its address is free', async () => {
      const { allocated } = await people.statusAt(`${POOLS}/${pool}`);
      return allocated === undefined;
    });
    await eventually('it is on no hub', async () => (await people.statusAt(ipAt(id)))['hub'] === undefined);
    const shown = await people.shows(ipAt(id), 'FAILED');
    expect(shown).to.deep.equal({
      state: 'EXTERNAL_IP_STATE_FAILED',
      message: 'aborted: the route is gone',
    });
    ok(await people.admin('POST', abort, { reason: 'again' }));
    expect(await people.statusAt(ipAt(id))).to.deep.equal(shown);
    ok(await people.admin('POST', `${LEDGER}/orders/${id}/retry`, {}));
    await eventually(
      'it failed again',
      async () => (await people.statusAt(ipAt(id)))['message'] === NOT_MADE,
    );
    ok(await people.admin('POST', abort, { reason: 'enough' }));
    ok(await people.user('DELETE', `${IPS}/${id}`));
    await people.isGone(ipAt(id));
    ok(await people.admin('DELETE', `${POOLS}/${pool}`));
    await people.isGone(`${POOLS}/${pool}`);
  });

  it('a pool stays where its external IPs are: it is not aborted while one refers to it', async () => {
    const pool = await people.makePool('198.51.100.80/32', { 'fulfillment-ledger/quarantine': 'PT5S' });
    const { hub } = await people.statusAt(`${POOLS}/${pool}`);
    const first = await people.order(pool);
    await people.shows(ipAt(first), 'ALLOCATED');
    ok(await people.user('DELETE', `${IPS}/${first}`));
    await people.isGone(ipAt(first));
    const second = await people.order(pool);
    await eventually('it waits', async () => (await people.statusAt(ipAt(second)))['message'] !== undefined);
    // Only what is not as it should be is aborted; the next look at the hub shows it ready again.
    const abort = async () => {
      const status = { state: 'EXTERNAL_IP_POOL_STATE_FAILED' };
      ok(await people.admin('PATCH', `${POOLS}/${pool}`, { status }));
      return people.admin('POST', `${LEDGER}/orders/${pool}/abort`, { reason: 'move it' });
    };
    await eventually('it is refused', async () => {
      const refused = await abort();
      expect(refused.status, refused.text).to.equal(400);
      return (
        stringAt(refused.json as JsonObject, 'code') === 'STILL_REFERENCED' && refused.text.includes(second)
      );
    });
    expect(await people.shows(ipAt(second), 'ALLOCATED')).to.deep.include({ hub });
    ok(await people.user('DELETE', `${IPS}/${second}`));
    await people.isGone(ipAt(second));
    await eventually('it is aborted', async () => (await abort()).status === 200);
    await eventually(
      'it is on no hub',
      async () => (await people.statusAt(`${POOLS}/${pool}`))['hub'] === undefined,
    );
  });

  it('an address that comes free goes to what waits for its pool at once', async () => {
    const rest = { 'fulfillment-ledger/quarantine': 'PT1H' };
    const wait = async (cidr: string) => {
      const pool = await people.makePool(cidr, rest);
      const [first, second] = [await people.order(pool), await people.order(pool)];
      for (const id of [first, second]) await people.shows(ipAt(id), 'ALLOCATED');
      ok(await people.user('DELETE', `${IPS}/${first}`));
      await people.isGone(ipAt(first));
      const third = await people.order(pool);
      await eventually('it waits', async () => (await people.statusAt(ipAt(third)))['message'] !== undefined);
      return { pool, second, third };
    };
    const [here, elsewhere] = [await wait('198.51.100.64/31'), await wait('198.51.100.66/31')];
    const metadata = { annotations: { ...rest, 'fulfillment-ledger/quarantine': 'PT0S' } };
    ok(await people.admin('PATCH', `${POOLS}/${here.pool}`, { metadata }));
    ok(await people.user('DELETE', `${IPS}/${here.second}`));
    await people.shows(ipAt(here.third), 'ALLOCATED');
    const fired = (await whole.log()).filter(({ type }) => type === 'TimerFired').map(({ stream }) => stream);
    expect(fired).to.include(`externalIpOrder-${here.third}`);
    expect(fired).to.not.include(`externalIpOrder-${elsewhere.third}`);
  });

  it('what waits is deleted as it is, and a shorter quarantine wakes all that wait', async () => {
    const pool = await people.makePool('198.51.100.96/29', { 'fulfillment-ledger/quarantine': 'PT1H' });
    const first = await Promise.all(Array.from({ length: 6 }, () => people.order(pool)));
    for (const id of first) await people.shows(ipAt(id), 'ALLOCATED');
    for (const id of first) ok(await people.user('DELETE', `${IPS}/${id}`));
    for (const id of first) await people.isGone(ipAt(id));
    const next = await Promise.all(Array.from({ length: 7 }, () => people.order(pool)));
    for (const id of next)
      await eventually('it waits', async () => (await people.statusAt(ipAt(id)))['message'] !== undefined);
    const [given = '', ...kept] = next;
    ok(await people.user('DELETE', `${IPS}/${given}`));
    await people.isGone(ipAt(given));
    const metadata = { annotations: { 'fulfillment-ledger/quarantine': 'PT0S' } };
    ok(await people.admin('PATCH', `${POOLS}/${pool}`, { metadata }));
    for (const id of kept) await people.shows(ipAt(id), 'ALLOCATED');
  });

  it('the timeline tells what happened, and the list of orders shows it', async () => {
    const pool = await people.makePool('198.51.100.32/30');
    const id = await people.order(pool);
    await people.shows(ipAt(id), 'ALLOCATED');
    await eventually('its timeline says so', async () =>
      (await people.user('GET', `${IPS}/${id}/timeline`)).text.includes(
        'Address 198.51.100.33 is allocated.',
      ),
    );
    const listed = itemsOf(await people.admin('GET', `${LEDGER}/orders?kind=externalIp&state=allocated`));
    expect(listed.map((item) => item['id'])).to.include(id);
  });
});
