import { expect } from 'chai';
import { createWholeService, type WholeService } from '../../support/audit/whole-service.ts';
import { eventually } from '../../support/eventually.ts';
import { PRIVATE, PUBLIC, textAt, type Caller, type Json, type Reply } from '../../support/http-service.ts';

const POOLS = `${PRIVATE}/external_ip_pools`;
const IPS = `${PUBLIC}/external_ips`;
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
  const statusAt = async (path: string, by = admin): Promise<Json> => {
    const reply = await by('GET', path);
    return reply.status === 404 ? { state: 'GONE' } : ((ok(reply)['status'] ?? {}) as Json);
  };
  const shows = async (path: string, state: string): Promise<Json> => {
    let status: Json = {};
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
    const at = (id: string): string => `${PRIVATE}/external_ips/${id}`;
    const addresses = [await shows(at(first), 'ALLOCATED'), await shows(at(second), 'ALLOCATED')].map((status) => status['address']);
    expect([...addresses].toSorted()).to.deep.equal(['192.0.2.1', '192.0.2.2']);
    expect(await statusAt(`${POOLS}/${pool}`)).to.include({ total: '6', allocated: '2', available: '4' });
    for (const id of [first, second]) {
      ok(await user('DELETE', `${IPS}/${id}`));
      await isGone(at(id));
    }
    expect(await statusAt(`${POOLS}/${pool}`)).to.include({ available: '6' });
    ok(await admin('DELETE', `${POOLS}/${pool}`));
    await isGone(`${POOLS}/${pool}`);
  });
});
