import { expect } from 'chai';
import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { POOL_KINDS } from '../../../src/app/pools/pool-kinds.ts';
import { createPoolRegistry, type PoolRegistry } from '../../../src/app/pools/pool-registry.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { externalIpPool } from '../../../src/domain/networks/external-ip-pool.resource.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { eventually } from '../../support/eventually.ts';
import { commandContext } from '../../support/hubs/hub-fixture.ts';
import {
  callerOf,
  itemsOf,
  PRIVATE,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { silentLogger } from '../../support/loggers.ts';

const POOLS = '/api/ledger/v1/pools';
const VLANS = {
  id: 'vlans-east',
  fabric: 'leaf-east',
  zone: 'east',
  ranges: ['100-119'],
  reason: 'first pool',
};
const PREFIXES = {
  id: 'nets-east',
  vrf: 'tenants',
  zone: 'east',
  ranges: ['10.20.0.0/16', 'fd20::/48'],
  reason: 'r',
};
const holder = { kind: 'cluster', id: 'c1' };

describe('pools over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let registry: PoolRegistry;
  const end = new AbortController();
  let following: Promise<void>;

  before(async () => {
    // Follows the log of the service that asks it.
    const pools: Pick<PoolRegistry, 'ready' | 'pools'> = {
      ready: (signal) => registry.ready(signal),
      pools: (kind) => registry.pools(kind),
    };
    service = await startTestService({ ledger: { pools } });
    const { store } = service;
    const codec = createEventCodec(eventTypes);
    registry = createPoolRegistry({ store, codec, timers: systemTimers(), logger: silentLogger });
    following = registry.run(end.signal);
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't1' } });
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(async () => {
    end.abort();
    await following;
    await service.close();
  });

  const ok = (reply: Reply): Reply['json'] => {
    expect(reply.status, reply.text).to.equal(200);
    return reply.json;
  };
  const refused = (reply: Reply, status: number, words: string): void => {
    expect(reply.status, reply.text).to.equal(status);
    expect(reply.json['detail']).to.contain(words);
  };
  const listed = async (id: string) => {
    const find = async () => itemsOf(await admin('GET', POOLS)).find((item) => textAt(item, 'id') === id);
    await eventually(`pool ${id}`, async () => (await find()) !== undefined);
    return find();
  };

  it('are created by admins, once', async () => {
    refused(await user('POST', `${POOLS}/vlan`, VLANS), 403, 'only provider admins');
    refused(await user('GET', POOLS), 403, 'only provider admins');
    const made = ok(await admin('POST', `${POOLS}/vlan`, VLANS));
    expect(made).to.deep.equal({
      kind: 'vlan',
      id: 'vlans-east',
      state: 'open',
      zone: 'east',
      fabric: 'leaf-east',
      ranges: ['100-119'],
      reserved: [],
      quarantine_seconds: 3_600,
      counts: [{ size: '20', free: '20', used: '0', quarantined: '0' }],
      pressure: false,
      holders: [],
    });
    ok(await admin('POST', `${POOLS}/vlan`, VLANS));
    refused(await admin('POST', `${POOLS}/vlan`, { ...VLANS, zone: 'west' }), 409, 'exists with other');
    const twin = { ...VLANS, id: 'twin', ranges: ['110-130'] };
    refused(
      await admin('POST', `${POOLS}/vlan`, twin),
      409,
      "'110-130' overlaps '100-119' of pool 'vlans-east'",
    );
    ok(await admin('POST', `${POOLS}/vlan`, { ...twin, fabric: 'leaf-west' }));
    const counts = ok(await admin('POST', `${POOLS}/prefix`, { ...PREFIXES, reserved: ['10.20.0.0/24'] }))[
      'counts'
    ];
    expect(counts).to.deep.equal([
      { family: 'v4', size: '65280', free: '65280', used: '0', quarantined: '0' },
      { family: 'v6', size: String(2n ** 80n), free: String(2n ** 80n), used: '0', quarantined: '0' },
    ]);
    expect(await listed('nets-east')).to.include({ kind: 'prefix', vrf: 'tenants' });
    expect(itemsOf(await admin('GET', `${POOLS}/vlan`)).map((item) => item['id'])).to.deep.equal([
      'twin',
      'vlans-east',
    ]);
  });

  it('name what is wrong with a request', async () => {
    for (const [body, words] of [
      [{ ...VLANS, id: 'x', ranges: ['1-10'] }, "field 'ranges' must stay within 2-4094"],
      [{ ...VLANS, id: 'x', ranges: ['4095'] }, "field 'ranges' must stay within 2-4094"],
      [{ ...VLANS, id: 'x', ranges: 'all' }, "field 'ranges' must be a list of texts"],
      [{ ...VLANS, id: 'x', ranges: [7] }, "field 'ranges' must be a list of texts"],
      [{ ...VLANS, id: 'X/Y' }, "field 'id' must be 1 to 63"],
      [{ ...VLANS, id: 'x', reason: '' }, "field 'reason' is needed"],
      [{ ...VLANS, id: 'x', quarantine_seconds: -1 }, "field 'quarantine_seconds' must be a whole number"],
      [{ ...VLANS, id: 'x', colour: 'red' }, "unknown field 'colour'"],
      [{ ...VLANS, id: 'x', ranges: ['9'.repeat(65)] }, "field 'ranges' must hold texts of at most 64"],
    ] as const)
      refused(await admin('POST', `${POOLS}/vlan`, body), 400, words);
    for (const [ranges, words] of [
      [['10.0.0.0/8', '10.1.0.0/16'], 'overlaps another of its ranges'],
      [['10.0.0.0/40'], "field 'ranges' must be an IPv4 range"],
      [['::/0'], "field 'ranges' must be an IPv6 range"],
      [[], "field 'ranges' must hold a CIDR"],
    ] as const)
      refused(await admin('POST', `${POOLS}/prefix`, { ...PREFIXES, id: 'x', ranges }), 400, words);
    refused(await admin('GET', `${POOLS}/vlan/nobody`), 404, "vlan pool 'nobody' not found");
    refused(await admin('POST', `${POOLS}/vlan/nobody/retire`, { reason: 'r' }), 404, "'nobody' not found");
    refused(await admin('GET', `${POOLS}/address/__proto__`), 404, 'not found');
  });

  it('show who holds what, and shrink no further than that', async () => {
    const { vlan, prefix } = POOL_KINDS;
    const at = new Date().toISOString();
    const asked = { type: 'AllocateFromPool', at, holder, purpose: 'net' } as const;
    await service.runner.execute(
      vlan.aggregate,
      'vlans-east',
      { ...asked, request: {} },
      commandContext('a1'),
    );
    const lengths = { v4: 26, v6: 64 };
    await service.runner.execute(
      prefix.aggregate,
      'nets-east',
      { ...asked, request: lengths },
      commandContext('a2'),
    );
    const shown = ok(await admin('GET', `${POOLS}/vlan/vlans-east`));
    expect(shown['holders']).to.deep.equal([{ ...holder, purpose: 'net', generation: 1, vlan_id: 100 }]);
    expect(ok(await admin('GET', `${POOLS}/prefix/nets-east`))['holders']).to.deep.equal([
      {
        ...holder,
        purpose: 'net',
        generation: 1,
        prefixes: ['10.20.1.0/26', 'fd20::/64'],
        gateways: ['10.20.1.1', 'fd20::1'],
      },
    ]);
    const to = async (ranges: readonly string[]) =>
      admin('POST', `${POOLS}/vlan/vlans-east/resize`, { ranges, reason: 'less' });
    refused(await to(['101-119']), 400, "field 'ranges' must keep VLAN 100: cluster 'c1' holds it");
    expect(ok(await to(['100-100']))).to.deep.include({ pressure: true, ranges: ['100-100'] });
    const back = { type: 'ReleaseToPool', at, holder, generation: 1 } as const;
    await service.runner.execute(vlan.aggregate, 'vlans-east', back, commandContext('a3'));
    const after = ok(await admin('GET', `${POOLS}/vlan/vlans-east`));
    expect(after['counts']).to.deep.equal([{ size: '1', free: '0', used: '0', quarantined: '1' }]);
    expect(after['next_release']).to.be.a('string');
  });

  it('once retired give out nothing more', async () => {
    const retired = ok(await admin('POST', `${POOLS}/vlan/twin/retire`, { reason: 'moved' }));
    expect(retired['state']).to.equal('retired');
    refused(
      await admin('POST', `${POOLS}/vlan/twin/resize`, { ranges: ['9'], reason: 'r' }),
      400,
      'is retired',
    );
    ok(
      await admin('POST', `${POOLS}/vlan`, {
        ...VLANS,
        id: 'heir',
        fabric: 'leaf-west',
        ranges: ['110-130'],
      }),
    );
  });

  it('of addresses are the external IP pools', async () => {
    const spec = { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' };
    ok(
      await admin('POST', `${PRIVATE}/external_ip_pools`, {
        id: 'public',
        metadata: { name: 'public' },
        spec,
      }),
    );
    const aggregate = aggregateOf(externalIpPool);
    const claim = { type: 'ClaimAddress', at: new Date().toISOString(), holder } as const;
    await service.runner.execute(aggregate, 'public', claim, commandContext('a4'));
    expect(ok(await admin('GET', `${POOLS}/address/public`))).to.deep.equal({
      kind: 'address',
      id: 'public',
      name: 'public',
      state: 'PENDING',
      ranges: ['192.0.2.0/29'],
      reserved: [],
      quarantine_seconds: 86_400,
      counts: [{ family: 'v4', size: '6', free: '5', used: '1', quarantined: '0' }],
      pressure: false,
      holders: [{ ...holder, generation: 1, address: '192.0.2.1' }],
    });
    expect(itemsOf(await admin('GET', `${POOLS}/address`))).to.have.length(1);
  });
});
