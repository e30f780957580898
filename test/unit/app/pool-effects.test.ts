import { expect } from 'chai';
import { createPoolEffects } from '../../../src/app/pools/pool-effects.ts';
import { POOL_KINDS, type AnyDefinition, type PoolKindName } from '../../../src/app/pools/pool-kinds.ts';
import { createPoolRegistry } from '../../../src/app/pools/pool-registry.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { eventually } from '../../support/eventually.ts';
import { commandContext, effectCall, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../support/loggers.ts';
import { manualTime } from '../../support/manual-time.ts';

const holder = (id: string) => ({ kind: 'cluster', id });
const purpose = 'cluster-network';
const common = { zone: 'east', reserved: [], quarantineSeconds: 0 };

const poolFixture = () => {
  const { commandRunner, store, codec, stop } = hubFixture();
  const { clock } = manualTime();
  const registry = createPoolRegistry({ store, codec, timers: systemTimers(), logger: silentLogger });
  const ending = new AbortController();
  const running = registry.run(ending.signal);
  const effects = createPoolEffects({ registry, commandRunner, clock });
  return {
    registry,
    create: async (kind: PoolKindName, id: string, definition: AnyDefinition) => {
      const command = { type: 'CreatePool', at: clock.now(), reason: 'test', definition } as const;
      const { aggregate } = POOL_KINDS[kind];
      const { outcome } = await commandRunner.execute(aggregate, id, command, commandContext(`create-${id}`));
      expect(outcome).to.equal('accepted');
      await eventually(`pool ${id}`, () => registry.pools().some((pool) => pool.id === id));
    },
    ask: async (operation: string, args: object, more: Parameters<typeof effectCall>[0] = {}) => {
      const outcome = await effects(operation, args as JsonObject, effectCall(more));
      return outcome.outcome === 'done' ? outcome.result : outcome;
    },
    stop: async () => {
      ending.abort();
      await Promise.all([running, stop()]);
    },
  };
};

describe('what orders ask of pools', () => {
  const fixture = poolFixture();
  const { ask, create, registry } = fixture;
  after(fixture.stop);

  it('waits where a zone has no pool', async () => {
    expect(await ask('vlan', { holder: holder('a'), zone: 'east', purpose })).to.deep.equal({
      waiting: "zone 'east' has no vlan pool",
    });
  });

  it('gets a VLAN of the pools of its zone, the same one when it asks again', async () => {
    await create('vlan', 'small', { ...common, fabric: 'one', ranges: ['100'] });
    await create('vlan', 'spare', { ...common, fabric: 'two', ranges: ['200'] });
    await create('vlan', 'far', { ...common, fabric: 'three', zone: 'west', ranges: ['300'] });
    const given = { pool: 'small', fabric: 'one', vlanId: 100, generation: 1 };
    expect(await ask('vlan', { holder: holder('a'), zone: 'east', purpose })).to.deep.equal(given);
    expect(await ask('vlan', { holder: holder('a'), zone: 'east', purpose })).to.deep.equal(given);
    const second = { pool: 'spare', fabric: 'two', vlanId: 200, generation: 1 };
    expect(await ask('vlan', { holder: holder('b'), zone: 'east', purpose })).to.deep.equal(second);
    expect(await ask('vlan', { holder: holder('b'), zone: 'east', purpose }, { attempt: 2 })).to.deep.equal(
      second,
    );
    expect(await ask('look', { holder: holder('b') })).to.deep.equal({
      vlans: [{ ...second, purpose }],
      prefixes: [],
    });
    expect(registry.poolsOf('east').vlan.map(({ id }) => id)).to.deep.equal(['small', 'spare']);
  });

  it('waits while all pools of the zone are exhausted, with the reason of each', async () => {
    const waiting = "pool 'small' is exhausted; pool 'spare' is exhausted";
    for (const _again of [1, 2])
      expect(await ask('vlan', { holder: holder('c'), zone: 'east', purpose })).to.deep.equal({ waiting });
  });

  it('gives back what it names, and that again without harm', async () => {
    const back = { holder: holder('a'), pool: 'small', generation: 1 };
    expect(await ask('release-vlan', { ...back, holder: holder('b') })).to.include({
      outcome: 'refused',
      reason: 'NOT_THE_HOLDER',
    });
    expect(await ask('release-vlan', back)).to.deep.equal({});
    expect(await ask('release-vlan', back)).to.deep.equal({});
    expect(await ask('release-vlan', { holder: holder('c') })).to.deep.equal({});
    expect(await ask('vlan', { holder: holder('c'), zone: 'east', purpose })).to.deep.include({
      pool: 'small',
      generation: 2,
    });
    expect(await ask('release-vlan', back)).to.deep.equal({});
    expect(await ask('look', { holder: holder('c') })).to.have.nested.property('vlans[0].vlanId', 100);
  });

  it('gives back all that a holder has who does not know what it was given', async () => {
    expect(await ask('release-vlan', { holder: holder('c') })).to.deep.equal({});
    expect(await ask('look', { holder: holder('c') })).to.deep.equal({ vlans: [], prefixes: [] });
    expect(await ask('vlan', { holder: holder('c'), zone: 'east', purpose })).to.deep.include({
      pool: 'small',
      generation: 3,
    });
  });

  it('gets prefixes of both families or none', async () => {
    const ranges = ['10.20.0.0/24', 'fd20::/64'];
    await create('prefix', 'p', { ...common, vrf: 'tenants', ranges });
    const lengths = { v4: 25, v6: 64 };
    const given = {
      pool: 'p',
      vrf: 'tenants',
      prefixes: ['10.20.0.0/25', 'fd20::/64'],
      gateways: ['10.20.0.1', 'fd20::1'],
      generation: 1,
    };
    expect(await ask('prefix', { holder: holder('a'), zone: 'east', purpose, lengths })).to.deep.equal(given);
    expect(await ask('prefix', { holder: holder('b'), zone: 'east', purpose, lengths })).to.deep.equal({
      waiting: "pool 'p' is exhausted",
    });
    expect(await ask('look', { holder: holder('b') })).to.deep.include({ prefixes: [] });
    const small = { holder: holder('b'), zone: 'east', purpose, lengths: { v4: 25 } };
    expect(await ask('prefix', small)).to.have.deep.property('prefixes', ['10.20.0.128/25']);
    expect(await ask('prefix', { ...small, holder: holder('c'), lengths: { v4: 33 } })).to.include({
      outcome: 'refused',
      reason: 'INVALID_LENGTH',
    });
    expect(await ask('prefix', { ...small, holder: holder('c'), lengths: { v4: 16 } })).to.deep.equal({
      waiting: "pool 'p': no IPv4 range of the pool holds a /16",
    });
    expect(await ask('release-prefix', { holder: holder('a'), pool: 'p', generation: 1 })).to.deep.equal({});
    expect(
      await ask('prefix', { holder: holder('c'), zone: 'east', purpose, lengths: { v6: 64 } }),
    ).to.include({
      generation: 3,
    });
  });
});
