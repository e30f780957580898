import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { createWholeService, type WholeService } from '../../support/audit/whole-service.ts';
import { eventually } from '../../support/eventually.ts';
import {
  PRIVATE,
  PUBLIC,
  itemsOf,
  textAt,
  type Caller,
  type Json,
  type Reply,
} from '../../support/http-service.ts';

const LEDGER = '/api/ledger/v1';
const POOLS = `${PRIVATE}/external_ip_pools`;
const IPS = `${PUBLIC}/external_ips`;
const ipAt = (id: string): string => `${PRIVATE}/external_ips/${id}`;
const QUICK = { simulation: 'factor=0.05' };

/** The whole service with its simulated hubs: what becomes of pools and external IPs there. */
describe('external IPs on a simulated hub', () => {
  let whole: WholeService;
  let admin: Caller;
  let user: Caller;
  let serial = 0;

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    admin = await whole.caller({ sub: 'root', preferred_username: 'root', groups: ['/admins'] });
    ok(await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't1' } }));
    user = await whole.caller({ sub: 'alice', preferred_username: 'alice', organization: ['t1'] });
  });
  after(() => whole.dispose());

  const ok = (reply: Reply): Json => {
    expect(reply.status, reply.text).to.equal(200);
    return reply.json;
  };
  const statusAt = async (path: string): Promise<JsonObject> => {
    const reply = await admin('GET', path);
    return reply.status === 404 ? { state: 'GONE' } : objectAt(ok(reply) as JsonObject, 'status');
  };
  const shows = async (path: string, state: string): Promise<JsonObject> => {
    let status: JsonObject = {};
    await eventually(`${path} shows ${state}`, async () => {
      status = await statusAt(path);
      return String(status['state'] ?? '').endsWith(`_STATE_${state}`);
    });
    return status;
  };
  const isGone = (path: string): Promise<unknown> =>
    eventually(`${path} is gone`, async () => (await statusAt(path))['state'] === 'GONE');
  const makePool = async (cidr: string, annotations: object = {}): Promise<string> => {
    const id = `pool-${(serial += 1)}`;
    const spec = { cidrs: [cidr], ip_family: cidr.includes(':') ? 'IP_FAMILY_IPV6' : 'IP_FAMILY_IPV4' };
    const metadata = { name: id, annotations: { ...QUICK, ...annotations } };
    ok(await admin('POST', POOLS, { id, metadata, spec }));
    await shows(`${POOLS}/${id}`, 'READY');
    return id;
  };
  const order = async (pool: string, annotations: object = {}): Promise<string> => {
    const metadata = { name: `ip-${(serial += 1)}`, annotations: { ...QUICK, ...annotations } };
    return textAt(ok(await user('POST', IPS, { metadata, spec: { pool: { id: pool } } })), 'id');
  };

  it('a pool becomes ready, an IP gets the lowest address, and both go again', async () => {
    const pool = await makePool('192.0.2.0/29', { 'fulfillment-ledger/quarantine': 'PT0S' });
    const [first, second] = [await order(pool), await order(pool)];
    const shown = [await shows(ipAt(first), 'ALLOCATED'), await shows(ipAt(second), 'ALLOCATED')];
    const addresses = shown.map((status) => stringAt(status, 'address')).toSorted();
    expect(addresses).to.deep.equal(['192.0.2.1', '192.0.2.2']);
    expect(await statusAt(`${POOLS}/${pool}`)).to.include({ total: '6', allocated: '2', available: '4' });
    for (const id of [first, second]) {
      ok(await user('DELETE', `${IPS}/${id}`));
      await isGone(ipAt(id));
    }
    expect(await statusAt(`${POOLS}/${pool}`)).to.include({ available: '6' });
    ok(await admin('DELETE', `${POOLS}/${pool}`));
    await isGone(`${POOLS}/${pool}`);
  });

  it('an address that was asked for is given, also of an IPv6 pool', async () => {
    const pool = await makePool('2001:db8::/64');
    const id = await order(pool, { 'fulfillment-ledger/address': '2001:db8::0:42' });
    expect(await shows(ipAt(id), 'ALLOCATED')).to.include({ address: '2001:db8::42' });
    const metadata = { name: 'twice', annotations: { 'fulfillment-ledger/address': '2001:db8::42' } };
    const again = await user('POST', IPS, { metadata, spec: { pool: { id: pool } } });
    expect([again.status, again.json['message']]).to.deep.equal([400, "address '2001:db8::42' is taken"]);
  });

  it('an order waits while only resting addresses are left, and gets one when its time has come', async () => {
    const pool = await makePool('198.51.100.8/32', { 'fulfillment-ledger/quarantine': 'PT3S' });
    const first = await order(pool);
    await shows(ipAt(first), 'ALLOCATED');
    ok(await user('DELETE', `${IPS}/${first}`));
    await isGone(ipAt(first));
    const second = await order(pool);
    let seen: JsonObject = {};
    await eventually('it says what it waits for', async () => {
      seen = await statusAt(ipAt(second));
      return stringAt(seen, 'message') !== '';
    });
    expect(seen).to.include({ state: 'EXTERNAL_IP_STATE_PENDING' });
    expect(seen['message']).to.match(/only addresses that were released are left .* rest until 20/);
    expect(await shows(ipAt(second), 'ALLOCATED')).to.deep.include({ address: '198.51.100.8' });
    const released = (await whole.log()).filter(({ stream }) => stream === `externalIpPool-${pool}`);
    const [until, assigned] = [
      released.find(({ type }) => type === 'AddressReleased')?.data['restsUntil'],
      released.findLast(({ type }) => type === 'AddressAssigned')?.data['at'],
    ];
    expect(String(assigned) >= String(until)).to.equal(true);
  });

  it('one that failed on its hub is tried again when an operator says so', async () => {
    const pool = await makePool('198.51.100.16/30');
    const id = await order(pool, { simulation: 'factor=0.05,failInstall=1,failText=no route,retry=1h' });
    expect(await shows(ipAt(id), 'FAILED')).to.include({ message: 'no route' });
    const { json } = await admin('GET', `${LEDGER}/orders/${id}`);
    expect(json).to.deep.include({ kind: 'externalIp', state: 'failed' });
    expect(objectAt(json as JsonObject, 'failure')).to.include({ reason: 'ProvisioningFailed' });
    ok(await admin('POST', `${LEDGER}/orders/${id}/retry`, {}));
    await eventually('it was sent again', async () => (await statusAt(ipAt(id)))['message'] === undefined);
  });

  it('the timeline tells what happened, and the list of orders shows it', async () => {
    const pool = await makePool('198.51.100.32/30');
    const id = await order(pool);
    await shows(ipAt(id), 'ALLOCATED');
    const told = itemsOf(await user('GET', `${IPS}/${id}/timeline`)).map((item) => item['summary']);
    expect(told).to.include('Address 198.51.100.33 is allocated.');
    const listed = itemsOf(await admin('GET', `${LEDGER}/orders?kind=externalIp&state=allocated`));
    expect(listed.map((item) => item['id'])).to.include(id);
  });
});
