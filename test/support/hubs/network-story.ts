import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { WholeService } from '../service/whole-service.ts';
import { eventually } from '../eventually.ts';
import { PRIVATE, PUBLIC, textAt, type Caller, type Json, type Reply } from '../http/service.ts';

export const POOLS = `${PRIVATE}/external_ip_pools`;
export const IPS = `${PUBLIC}/external_ips`;
export const ipAt = (id: string): string => `${PRIVATE}/external_ips/${id}`;
/** Of objects on simulated hubs. */
const QUICK = { simulation: 'factor=0.05' };

export const ok = (reply: Reply): Json => {
  expect(reply.status, reply.text).to.equal(200);
  return reply.json;
};

/** A started service with a tenant, and what its people do with pools and external IPs. */
export const networkStory = async (whole: WholeService) => {
  const admin = await whole.caller({ sub: 'root', preferred_username: 'root', groups: ['/admins'] });
  ok(await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't1' } }));
  const user: Caller = await whole.caller({
    sub: 'alice',
    preferred_username: 'alice',
    organization: ['t1'],
  });
  let serial = 0;

  const statusAt = async (path: string): Promise<JsonObject> => {
    const reply = await admin('GET', path);
    return reply.status === 404 ? { state: 'GONE' } : objectAt(ok(reply) as JsonObject, 'status');
  };
  const shows = async (path: string, state: string): Promise<JsonObject> => {
    let status: JsonObject = {};
    const last = () => `${path} shows ${state}: ${JSON.stringify(status)}`;
    await eventually(last, async () => {
      status = await statusAt(path);
      return stringAt(status, 'state').endsWith(`_STATE_${state}`);
    });
    return status;
  };
  const isGone = (path: string): Promise<void> =>
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
  return { admin, user, statusAt, shows, isGone, makePool, order, until: eventually };
};

export type NetworkStory = Awaited<ReturnType<typeof networkStory>>;
