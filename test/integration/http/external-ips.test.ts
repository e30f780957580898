import { expect } from 'chai';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { addressSpace } from '../../../src/domain/networks/address-space.ts';
import { holdingOf } from '../../../src/domain/networks/address-book.ts';
import {
  bookOf,
  externalIpPool,
  type PoolCommand,
} from '../../../src/domain/networks/external-ip-pool.resource.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { PRIVATE_WATCH, summaryOf, watch } from '../../support/http/watch-client.ts';

const POOLS = `${PRIVATE}/external_ip_pools`;
const OFFERED = `${PUBLIC}/external_ip_pools`;
const IPS = `${PUBLIC}/external_ips`;
const READY = { status: { state: 'EXTERNAL_IP_POOL_STATE_READY' } };
const at = '2026-11-23T09:00:00.000Z';

/** External IPs and their pools: what a pool is asked for by workflows is asked for here by hand. */
describe('external IPs and their pools, over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let serial = 0;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    for (const name of ['t1', 't2']) await admin('POST', `${PRIVATE}/tenants`, { metadata: { name } });
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(() => service.close());

  const ok = (reply: Reply): Reply => {
    expect(reply.status, reply.text).to.equal(200);
    return reply;
  };
  const refused = (reply: Reply, code: number, words: string): void => {
    expect([reply.status, reply.json['code']], reply.text).to.deep.equal([400, code]);
    expect(reply.json['message']).to.contain(words);
  };
  const poolOf = async (cidr: string, metadata: object = {}): Promise<string> => {
    const name = `pool-${(serial += 1)}`;
    const spec = { cidrs: [cidr], ip_family: cidr.includes(':') ? 'IP_FAMILY_IPV6' : 'IP_FAMILY_IPV4' };
    ok(await admin('POST', POOLS, { id: name, metadata: { name, ...metadata }, spec }));
    ok(await admin('PATCH', `${POOLS}/${name}`, READY));
    return name;
  };
  const order = (pool: string, wanted?: string, headers = {}): Promise<Reply> => {
    const annotations = wanted === undefined ? {} : { 'fulfillment-ledger/address': wanted };
    const metadata = { name: `ip-${(serial += 1)}`, annotations };
    return user('POST', IPS, { metadata, spec: { pool: { id: pool } } }, headers);
  };
  const tell = async (pool: string, command: PoolCommand): Promise<void> => {
    const context = fakeContext(`address-${(serial += 1)}`, { tenant: 'shared' });
    const outcome = await service.runner.execute(aggregateOf(externalIpPool), pool, command, context);
    expect(outcome.outcome).to.equal('accepted');
    const position = outcome.outcome === 'accepted' ? outcome.loaded.position : undefined;
    if (position !== undefined) await service.models.waitFor('resources', position, { timeoutMs: 5_000 });
  };
  const holder = (id: string) => ({ kind: 'externalIp', id });
  const claim = (pool: string, id: string, wanted?: string): Promise<void> =>
    tell(pool, { type: 'ClaimAddress', at, holder: holder(id), ...(wanted === undefined ? {} : { wanted }) });
  const counters = async (pool: string): Promise<Json | undefined> =>
    ok(await admin('GET', `${POOLS}/${pool}`)).json['status'];

  it('a pool that has nothing to give is not offered, and nobody gets an address of it', async () => {
    const pool = await poolOf('192.0.2.8/32');
    ok(await user('GET', `${OFFERED}/${pool}`));
    await claim(pool, 'one');
    expect(await counters(pool)).to.deep.equal({ ...READY.status, total: '1', allocated: '1' });
    expect((await user('GET', `${OFFERED}/${pool}`)).status).to.equal(404);
    const listed = itemsOf(ok(await user('GET', OFFERED))).map((item) => item['id']);
    expect(listed).to.not.include(pool);
    refused(await order(pool), 9, 'no free address');
    refused(await admin('DELETE', `${POOLS}/${pool}`), 9, '1 external IP(s) are still allocated from it');
  });

  it('one that has only resting addresses is offered: an order waits', async () => {
    const pool = await poolOf('192.0.2.9/32');
    const soon = new Date().toISOString();
    await claim(pool, 'one');
    await tell(pool, { type: 'ReleaseAddress', at: soon, holder: holder('one'), generation: 1 });
    expect(await counters(pool)).to.deep.equal({ ...READY.status, total: '1', available: '1' });
    ok(await user('GET', `${OFFERED}/${pool}`));
    const reply = ok(await order(pool));
    expect(reply.json['status']).to.deep.equal({ state: 'EXTERNAL_IP_STATE_PENDING' });
    refused(await order(pool, '192.0.2.9'), 3, 'rests until');
  });

  it('one that was ordered says that operators cannot cancel it', async () => {
    const id = textAt(ok(await order(await poolOf('192.0.2.10/32'))).json, 'id');
    const reply = await admin('POST', `/api/ledger/v1/orders/${id}/cancel`);
    expect(reply.json, reply.text).to.include({
      detail: "orders of kind 'externalIp' cannot be cancelled",
    });
  });

  const POOL_SPACE = '10.77.0.0/16';
  const claimedRanges = async (): Promise<readonly string[]> => {
    const { state } = await service.runner.load(aggregateOf(addressSpace), addressSpace.onlyId);
    return (addressSpace.lends?.held(state) ?? []).flatMap((claim) =>
      'ranges' in claim ? (claim.ranges as readonly string[]) : [],
    );
  };
  const makePool = (cidrs: readonly string[], metadata: object = {}, headers = {}): Promise<Reply> =>
    admin(
      'POST',
      POOLS,
      {
        metadata: { name: `space-${(serial += 1)}`, ...metadata },
        spec: { cidrs, ip_family: 'IP_FAMILY_IPV4' },
      },
      headers,
    );
  const onHub = (hub: string) => ({ annotations: { 'fulfillment-ledger/hub': hub } });

  it('a pool whose range overlaps that of another one is refused, also as a dry run', async () => {
    const first = textAt(ok(await makePool([POOL_SPACE])).json, 'id');
    for (const headers of [{}, { 'x-dry-run': 'true' }]) {
      const reply = await makePool(['10.76.0.0/16', '10.77.3.0/24'], {}, headers);
      expect([reply.status, reply.json['code'], reply.json['message']], reply.text).to.deep.equal([
        409,
        6,
        `field 'spec.cidrs': '10.77.3.0/24' overlaps '${POOL_SPACE}' of external IP pool '${first}': choose another ` +
          'range, or name a different hub for each pool',
      ]);
    }
    expect(await claimedRanges())
      .to.include(POOL_SPACE)
      .and.not.include('10.76.0.0/16');
    ok(await admin('DELETE', `${POOLS}/${first}`));
    expect(await claimedRanges()).to.not.include(POOL_SPACE);
    for (const id of ['sim-1', 'sim-2'])
      ok(await admin('POST', `${PRIVATE}/hubs`, { id, spec: { namespace: 'osac', zone: 'twice' } }));
    const again = textAt(ok(await makePool([POOL_SPACE], onHub('sim-1'))).json, 'id');
    const other = textAt(ok(await makePool(['10.77.3.0/24'], onHub('sim-2'))).json, 'id');
    expect((await makePool(['10.77.3.0/25'], onHub('sim-2'))).status).to.equal(409);
    const moved = { metadata: onHub('sim-1') };
    refused(await admin('PATCH', `${POOLS}/${other}`, moved), 3, 'is immutable');
    for (const id of [again, other]) ok(await admin('DELETE', `${POOLS}/${id}`));
  });

  it('of 16 pools at once with one range, one is made', async () => {
    const replies = await Promise.all(Array.from({ length: 16 }, () => makePool(['10.78.0.0/24'])));
    expect(replies.filter(({ status }) => status === 200)).to.have.lengthOf(1);
    expect(replies.filter(({ status }) => status === 409)).to.have.lengthOf(15);
    expect((await claimedRanges()).filter((range) => range === '10.78.0.0/24')).to.have.lengthOf(1);
  });

  it('an address that is asked for must be free, and is refused before anything is stored', async () => {
    const pool = await poolOf('198.51.100.0/29', {
      annotations: { 'fulfillment-ledger/quarantine': 'PT0S' },
    });
    await claim(pool, 'one', '198.51.100.3');
    refused(await order(pool, '198.51.100.3'), 3, "address '198.51.100.3' is taken");
    refused(await order(pool, '198.51.100.7'), 3, "no address '198.51.100.7'");
    refused(await order(pool, '2001:db8::1'), 3, "no address '2001:db8::1'");
    refused(await order(pool, 'here'), 3, "no address 'here'");
    ok(await order(pool, '198.51.100.4'));
    await tell(pool, { type: 'ReleaseAddress', at, holder: holder('one'), generation: 1 });
    ok(await order(pool, '198.51.100.3'));
  });

  it('a pool for a zone that no hub has is refused', async () => {
    const spec = { cidrs: ['203.0.113.64/28'], ip_family: 'IP_FAMILY_IPV4' };
    const inZone = (zone: string) =>
      admin('POST', POOLS, {
        metadata: { name: `in-${zone}`, annotations: { 'fulfillment-ledger/zone': zone } },
        spec,
      });
    ok(await admin('POST', `${PRIVATE}/hubs`, { id: 'sim-n', spec: { namespace: 'osac', zone: 'north' } }));
    ok(await inZone('north'));
    refused(await inZone('south'), 9, 'south');
  });

  it('a pool keeps its ranges, and takes them in the spelling in which they were sent', async () => {
    const pool = await poolOf('192.0.2.77/28');
    const before = ok(await admin('GET', `${POOLS}/${pool}`)).json;
    const again = await admin('PATCH', `${POOLS}/${pool}`, { spec: { cidrs: ['192.0.2.77/28'] } });
    expect(ok(again).json).to.deep.equal(before);
    const others = await admin('PATCH', `${POOLS}/${pool}`, { spec: { cidrs: ['192.0.2.77/27'] } });
    expect([others.status, others.json['code']], others.text).to.deep.equal([400, 3]);
  });

  it('a dry run takes none', async () => {
    const pool = await poolOf('192.0.2.16/32');
    const last = await service.store.lastPosition();
    ok(await order(pool, undefined, { 'x-dry-run': 'true' }));
    expect(await service.store.lastPosition()).to.equal(last);
  });

  it('tenants read family and availability of a pool, and nothing else', async () => {
    const pool = await poolOf('2001:db8::/126');
    const reply = ok(await user('GET', `${OFFERED}/${pool}`));
    expect(reply.json['spec']).to.deep.equal({ ip_family: 'IP_FAMILY_IPV6' });
    expect(reply.json['status']).to.deep.equal({ available: '4' });
    const filter = encodeURIComponent('this.spec.ip_family == IP_FAMILY_IPV6 && this.status.available > 3');
    expect(itemsOf(ok(await user('GET', `${OFFERED}?filter=${filter}`))).map(({ id }) => id)).to.include(
      pool,
    );
    const hidden = encodeURIComponent('"2001:db8::/126" in this.spec.cidrs');
    expect((await user('GET', `${OFFERED}?filter=${hidden}`)).status).to.equal(400);
  });

  it('a tenant takes an address of an own or a shared pool, not of another tenant', async () => {
    const foreign = await poolOf('203.0.113.0/30', { tenant: 't2' });
    refused(await order(foreign), 3, 'not found');
    const own = await poolOf('203.0.113.4/30', { tenant: 't1' });
    const { json } = ok(await order(own));
    const filter = encodeURIComponent(`this.spec.pool.id == "${own}"`);
    expect(itemsOf(ok(await user('GET', `${IPS}?filter=${filter}`))).map(({ id }) => id)).to.deep.equal([
      json['id'],
    ]);
  });

  it('a watch of the provider tells of both, with the counters as they move', async () => {
    const token = await service.token({ user: 'root', admin: true });
    const filter = encodeURIComponent('has(event.external_ip_pool) || has(event.external_ip)');
    const seen = await watch(service, token, `${PRIVATE_WATCH}?filter=${filter}`);
    const pool = await poolOf('192.0.2.12/30');
    await claim(pool, 'one');
    const { json } = ok(await order(pool));
    const events = await seen.count(4);
    seen.close();
    expect(events.map(summaryOf)).to.deep.equal([
      `CREATED external_ip_pool ${pool}`,
      `UPDATED external_ip_pool ${pool}`,
      `UPDATED external_ip_pool ${pool}`,
      `CREATED external_ip ${textAt(json, 'metadata', 'name')}`,
    ]);
    const last = events[2]?.['external_ip_pool'];
    expect([last?.['metadata']?.['version'], last?.['status']]).to.deep.equal([
      2,
      { ...READY.status, total: '2', allocated: '1', available: '1' },
    ]);
  });

  it('64 callers at once get as many addresses as there are, each its own', async () => {
    const pool = await poolOf('192.0.2.32/27');
    const aggregate = aggregateOf(externalIpPool);
    const outcomes = await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        service.runner.execute(
          aggregate,
          pool,
          { type: 'ClaimAddress', at, holder: holder(`h${i}`) },
          fakeContext(`claim-${pool}-${i}`),
        ),
      ),
    );
    expect(outcomes.filter(({ outcome }) => outcome === 'accepted')).to.have.length(30);
    const { state } = await service.runner.load(aggregate, pool);
    const addresses = Array.from(
      { length: 64 },
      (_, i) => holdingOf(bookOf(state), holder(`h${i}`))?.address,
    );
    expect(new Set(addresses.filter((address) => address !== undefined)).size).to.equal(30);
    expect(bookOf(state).count).to.equal(30);
  });

  it('ids and texts that are chosen do not lead astray', async () => {
    const pool = await poolOf('192.0.2.128/25');
    await claim(pool, 'constructor');
    await claim(pool, '__proto__');
    const { state } = await service.runner.load(aggregateOf(externalIpPool), pool);
    expect(
      ['constructor', '__proto__'].map((id) => holdingOf(bookOf(state), holder(id))?.address),
    ).to.deep.equal(['192.0.2.129', '192.0.2.130']);
    expect(textAt((await counters(pool)) ?? undefined, 'allocated')).to.equal('2');
  });
});
