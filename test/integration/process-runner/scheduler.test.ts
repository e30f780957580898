import { expect } from 'chai';
import fc from 'fast-check';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import type { EffectPort } from '../../../src/app/process-runner/types.ts';
import { createScheduler, declareCapacities, hubCapacity } from '../../../src/app/hubs/scheduler.ts';
import type { PlaceResult } from '../../../src/domain/hubs/placement.ts';
import { claimOf, NOTHING } from '../../../src/domain/hubs/capacity.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { aggregateOf, cluster } from '../../../src/domain/kinds.ts';
import {
  commandContext,
  effectCall,
  fakeCluster,
  hubFixture,
  type HubFixture,
} from '../../support/hubs/hub-fixture.ts';
import { INHERITED_NAMES } from '../../support/arbitraries/hostile-names.ts';
import { checkAsync } from '../../support/property.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { ordered } from '../../unit/domain/clusters/samples.ts';

const reachable = { of: ({ id }: { id: string }) => (id === 'unreachable' ? undefined : fakeCluster(id)) };

describe('scheduler', function () {
  this.timeout(30_000);
  const fixtures: HubFixture[] = [];
  afterEach(async () => {
    await Promise.all(fixtures.splice(0).map((fixture) => fixture.stop()));
  });
  const setUp = (blocked: ReadonlySet<string> = new Set(), refusesSimulated = false) => {
    const fixture = hubFixture(reachable);
    fixtures.push(fixture);
    const { registry, commandRunner } = fixture;
    const scheduler = createScheduler({
      registry,
      commandRunner,
      clock: systemClock(),
      logger: silentLogger,
      isBlocked: (hub) => blocked.has(hub),
      refusesSimulated,
    });
    return { ...fixture, scheduler };
  };
  const known = (fixture: HubFixture, count: number) =>
    eventually(`${count} hubs`, () => fixture.registry.hubs().length === count);
  const held = (id: string) => ({ kind: 'cluster', id });
  const request = (id: string, more: JsonObject = {}): JsonObject => ({
    holder: held(id),
    tenant: 'acme',
    template: 'small',
    claim: { controlPlanes: 1, nodes: { fc430: 2 } },
    ...more,
  });
  const place = async (
    scheduler: EffectPort,
    args: JsonObject,
    call = effectCall(),
  ): Promise<PlaceResult> => {
    const outcome = await scheduler('place', args, call);
    if (outcome.outcome !== 'done') throw new Error(`${outcome.reason}: ${outcome.message}`);
    return outcome.result as unknown as PlaceResult;
  };
  const capacityOf = async (fixture: HubFixture, hub: string) =>
    (await fixture.commandRunner.load(hubCapacity, hub)).state;

  it('chooses a hub, reserves there, and says how it came to that', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { zone: 'north', capacity: { control_planes: 2 } });
    await fixture.register('sim-b', { zone: 'south' });
    await known(fixture, 2);
    const result = await place(fixture.scheduler, request('c1', { zone: 'north' }));
    expect(result).to.deep.include({ placed: true, hub: 'sim-a', namespace: 'orders', mode: 'operator' });
    expect(result.decision.candidates.map(({ hub, fits }) => ({ hub, fits }))).to.deep.equal([
      { hub: 'sim-a', fits: true },
      { hub: 'sim-b', fits: false },
    ]);
    const events = await readAll(fixture.store, 'hubCapacity-sim-a');
    expect(events.map((event) => event.type)).to.deep.equal(['HubCapacityDeclared', 'HubCapacityReserved']);
    expect(events[1]?.metadata).to.deep.include({ tenant: 'acme', causationId: 'causation', hub: 'sim-a' });
  });

  it("puts a tenant's orders into the namespace that the hub keeps for it", async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { namespaces: { acme: 'acme-orders' } });
    await known(fixture, 1);
    const result = await place(fixture.scheduler, request('c1'));
    expect(result).to.deep.include({ placed: true, namespace: 'acme-orders' });
  });

  it('waits with a reason when nothing fits, and reserves nothing', async () => {
    const fixture = setUp(new Set(['sim-blocked']));
    await fixture.register('unreachable');
    await fixture.register('sim-blocked');
    await known(fixture, 2);
    const result = await place(fixture.scheduler, request('c1'));
    expect(result.placed).to.equal(false);
    expect(result)
      .to.have.property('message')
      .that.includes('the provider takes no orders for it at the moment');
    expect(await readAll(fixture.store, 'hubCapacity-sim-blocked')).to.deep.equal([]);
  });

  it('passes simulated hubs over where they are refused', async () => {
    const fixture = setUp(new Set(), true);
    await fixture.register('sim-a');
    await known(fixture, 1);
    const result = await place(fixture.scheduler, request('c1'));
    expect(result.placed).to.equal(false);
    expect(result.decision.candidates[0]).to.deep.include({
      fits: false,
      reasons: ['simulated hubs are refused in production'],
    });
    expect(await readAll(fixture.store, 'hubCapacity-sim-a')).to.deep.equal([]);
  });

  it('goes on without a hub whose capacity cannot be read, and says so', async () => {
    const fixture = setUp();
    await fixture.register('sim-a');
    await fixture.register('sim-b');
    await known(fixture, 2);
    const { registry, commandRunner } = fixture;
    const logged: object[] = [];
    const scheduler = createScheduler({
      registry,
      commandRunner: {
        ...commandRunner,
        peek: (aggregate, id, options) =>
          id === 'sim-a'
            ? Promise.reject(new TypeError('not what it should be'))
            : commandRunner.peek(aggregate, id, options),
        load: (aggregate, id, options) =>
          id === 'sim-a'
            ? Promise.reject(new TypeError('not what it should be'))
            : commandRunner.load(aggregate, id, options),
      },
      clock: systemClock(),
      logger: { ...silentLogger, error: (fields) => void logged.push(fields) },
      isBlocked: () => false,
    });
    const result = await place(scheduler, request('c1'));
    expect(result).to.deep.include({ placed: true, hub: 'sim-b' });
    expect(result.decision.candidates[0]).to.deep.include({
      hub: 'sim-a',
      fits: false,
      reasons: ['its capacity cannot be read'],
    });
    expect(logged[0]).to.include({ hub: 'sim-a', tenant: 'acme' });
    const released = await scheduler(
      'release',
      { holder: held('c1'), hub: 'sim-b' },
      effectCall({ attempt: 3 }),
    );
    expect(released.outcome).to.equal('done');
    expect((await capacityOf(fixture, 'sim-b')).used.controlPlanes).to.equal(0);
  });

  it('places the orders of others after one whose id is a name that every object has', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { capacity: { control_planes: 10 } });
    await known(fixture, 1);
    for (const id of [...INHERITED_NAMES, 'c1'])
      expect(await place(fixture.scheduler, request(id), effectCall({ effectId: id }))).to.include({
        placed: true,
      });
    const { used } = await capacityOf(fixture, 'sim-a');
    expect(used.controlPlanes).to.equal(INHERITED_NAMES.length + 1);
    for (const id of INHERITED_NAMES)
      expect(
        (await fixture.scheduler('release', { holder: held(id) }, effectCall({ effectId: `${id}-2` })))
          .outcome,
      ).to.equal('done');
    expect((await capacityOf(fixture, 'sim-a')).used.controlPlanes).to.equal(1);
  });

  it('returns the hub on which the cluster holds capacity already', async () => {
    const fixture = setUp();
    await fixture.register('sim-a');
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    await fixture.register('sim-b');
    await known(fixture, 2);
    const again = await place(fixture.scheduler, request('c1'), effectCall({ attempt: 2, mode: 'observe' }));
    expect(again).to.deep.include({ placed: true, hub: 'sim-a' });
    const reservations = (await readAll(fixture.store, 'hubCapacity-sim-a')).filter(
      (event) => event.type === 'HubCapacityReserved',
    );
    expect(reservations).to.have.length(1);
  });

  it('counts what an order holds already as free for it, and its own cluster not against the hub', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { capacity: { control_planes: 1, nodes: { fc430: 2 } } });
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    await fixture.register('sim-b');
    await known(fixture, 2);
    await eventually('counted', () => fixture.registry.holdersOf('sim-a', 'acme') === 1);
    const again = await place(fixture.scheduler, request('c1'), effectCall({ attempt: 2, mode: 'observe' }));
    expect(again).to.deep.include({ placed: true, hub: 'sim-a' });
    const spread = again.decision.candidates.map(({ hub, fits, scores }) => [hub, fits, scores['spread']]);
    expect(spread).to.deep.equal([
      ['sim-a', true, 100],
      ['sim-b', true, 100],
    ]);
    // It is full for everybody else.
    expect(await place(fixture.scheduler, request('c2'), effectCall({ effectId: 'c2' }))).to.include({
      hub: 'sim-b',
    });
  });

  for (const [what, args] of [
    ['of the hub that it names', { holder: held('c1'), hub: 'sim-a' }],
    ['of any hub where it names none', { holder: held('c1') }],
  ] as const)
    it(`does not report a release done while the capacity ${what} cannot be read`, async () => {
      const fixture = setUp();
      await fixture.register('sim-a');
      await known(fixture, 1);
      await place(fixture.scheduler, request('c1'));
      const { registry, commandRunner } = fixture;
      let damaged = true;
      const scheduler = createScheduler({
        registry,
        commandRunner: {
          ...commandRunner,
          load: (aggregate, id, options) =>
            damaged && id === 'sim-a'
              ? Promise.reject(new TypeError('not what it should be'))
              : commandRunner.load(aggregate, id, options),
        },
        clock: systemClock(),
        logger: silentLogger,
        isBlocked: () => false,
      });
      const release = (attempt: number) =>
        scheduler('release', args, effectCall({ effectId: 'release', attempt })).then(
          ({ outcome }) => outcome,
          (error: unknown) => error,
        );
      expect(await release(1)).to.be.instanceOf(TypeError);
      damaged = false;
      expect(await release(2)).to.equal('done');
      expect(claimOf(await capacityOf(fixture, 'sim-a'), held('c1'))).to.equal(undefined);
    });

  it('places nothing on a hub that is about to be deregistered, until its document changes', async () => {
    const fixture = setUp();
    await fixture.register('sim-a');
    await known(fixture, 1);
    const close = { type: 'CloseCapacity', at: systemClock().now(), hub: 'sim-a', hubRevision: 0 } as const;
    await fixture.commandRunner.execute(hubCapacity, 'sim-a', close, commandContext('close'));
    const refused = await place(fixture.scheduler, request('c1'));
    expect(refused).to.deep.include({ placed: false });
    expect(refused.decision.candidates[0]?.reasons).to.deep.equal(['hub is being deregistered']);
    await fixture.revise('sim-a', { zone: 'north' });
    await eventually('revised', () => fixture.registry.get('sim-a')?.revision === 1);
    expect(await place(fixture.scheduler, request('c1'))).to.deep.include({ placed: true, hub: 'sim-a' });
  });

  it('places orders on a hub that was registered again, by what it declares now', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { capacity: { control_planes: 1 } });
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    await fixture.scheduler('release', { holder: held('c1') }, effectCall());
    const close = { type: 'CloseCapacity', at: systemClock().now(), hub: 'sim-a', hubRevision: 0 } as const;
    await fixture.commandRunner.execute(hubCapacity, 'sim-a', close, commandContext('close'));
    await fixture.deregister('sim-a');
    await known(fixture, 0);
    await fixture.register('sim-a', { zone: 'south', capacity: { control_planes: 2 } });
    await known(fixture, 1);
    expect(fixture.registry.get('sim-a')).to.deep.include({ revision: 2, limits: { controlPlanes: 2 } });
    for (const cluster of ['c2', 'c3'])
      expect(await place(fixture.scheduler, request(cluster, { zone: 'south' }))).to.include({
        placed: true,
      });
    expect(await place(fixture.scheduler, request('c4'))).to.include({ placed: false });
    expect((await capacityOf(fixture, 'sim-a')).used.controlPlanes).to.equal(2);
  });

  it('moves a reservation whose hub no longer fits', async () => {
    const fixture = setUp();
    await fixture.register('sim-a');
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    await fixture.revise('sim-a', { templates: ['large'] });
    await fixture.register('sim-b');
    await known(fixture, 2);
    await eventually('revised', () => fixture.registry.get('sim-a')?.facts.templates.length === 1);
    const again = await place(fixture.scheduler, request('c1'));
    expect(again).to.deep.include({ placed: true, hub: 'sim-b' });
    expect(claimOf(await capacityOf(fixture, 'sim-a'), held('c1'))).to.equal(undefined);
  });

  it('leaves an order that may stay where it is until another hub takes it', async () => {
    const blocked = new Set<string>();
    const fixture = setUp(blocked);
    await fixture.register('sim-a');
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    blocked.add('sim-a');
    const stays = await place(fixture.scheduler, request('c1', { mayStay: true }));
    expect(stays).to.deep.include({ placed: true, hub: 'sim-a' });
    expect(claimOf(await capacityOf(fixture, 'sim-a'), held('c1'))).to.not.equal(undefined);
    await fixture.register('sim-b');
    await known(fixture, 2);
    const goes = await place(fixture.scheduler, request('c1', { mayStay: true }));
    expect(goes).to.deep.include({ placed: true, hub: 'sim-b' });
    expect(claimOf(await capacityOf(fixture, 'sim-a'), held('c1'))).to.equal(undefined);
  });

  it('never reserves more than a hub declares, whatever comes at once', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 12 }),
        async (limits, orders) => {
          const fixture = setUp();
          for (const [i, limit] of limits.entries()) {
            await fixture.register(`sim-${i}`, { capacity: { control_planes: limit } });
          }
          await known(fixture, limits.length);
          const results = await Promise.all(
            Array.from({ length: orders }, (_, i) =>
              fixture.scheduler('place', request(`c${i}`), effectCall()),
            ),
          );
          const placed = results.filter(
            (each) => each.outcome === 'done' && (each.result as unknown as PlaceResult).placed,
          ).length;
          const crowded = results.filter((each) => each.outcome === 'failed').length;
          const room = limits.reduce((sum, limit) => sum + (limit === 0 ? 0 : limit), 0);
          let used = 0;
          for (const [i, limit] of limits.entries()) {
            const state = await capacityOf(fixture, `sim-${i}`);
            expect(state.used.controlPlanes).to.be.at.most(limit);
            used += state.used.controlPlanes;
          }
          expect(used).to.equal(placed);
          if (crowded === 0) expect(placed).to.equal(Math.min(orders, room));
        },
      ),
      { numRuns: 20 },
    );
  });

  it('grows, refuses to grow, shrinks and gives back', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { capacity: { control_planes: 1, nodes: { fc430: 4 } } });
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    const resize = (nodes: number) =>
      fixture.scheduler(
        'resize',
        { hub: 'sim-a', holder: held('c1'), claim: { controlPlanes: 1, nodes: { fc430: nodes } } },
        effectCall(),
      );
    expect(await resize(4)).to.deep.equal({ outcome: 'done', result: { resized: true } });
    const refused = await resize(5);
    expect(refused.outcome === 'done' && refused.result).to.deep.include({ resized: false });
    expect(refused.outcome === 'done' && refused.result['message']).to.include(
      '5 fc430 nodes wanted, 4 left',
    );
    expect(await resize(1)).to.deep.equal({ outcome: 'done', result: { resized: true } });
    const release = () => fixture.scheduler('release', { holder: held('c1'), hub: 'sim-a' }, effectCall());
    expect(await release()).to.deep.equal({ outcome: 'done', result: {} });
    expect(await release()).to.deep.equal({ outcome: 'done', result: {} });
    expect((await capacityOf(fixture, 'sim-a')).used).to.deep.equal({ controlPlanes: 0, nodes: {} });
  });

  it('gives back what a cluster holds on a hub that was deregistered', async () => {
    const fixture = setUp();
    await fixture.register('sim-a');
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    await fixture.deregister('sim-a');
    await known(fixture, 0);
    await fixture.scheduler('release', { holder: held('c1'), hub: 'sim-a' }, effectCall());
    expect(claimOf(await capacityOf(fixture, 'sim-a'), held('c1'))).to.equal(undefined);
  });

  it('counts the clusters of a tenant per hub', async () => {
    const fixture = setUp();
    await fixture.register('sim-a');
    await known(fixture, 1);
    await place(fixture.scheduler, request('c1'));
    await place(fixture.scheduler, request('c2'));
    await eventually('counted', () => fixture.registry.holdersOf('sim-a', 'acme') === 2);
    await fixture.scheduler('release', { holder: held('c1') }, effectCall());
    await eventually('counted', () => fixture.registry.holdersOf('sim-a', 'acme') === 1);
    expect(fixture.registry.holdersOf('sim-a', 'other')).to.equal(0);
  });

  it('reserves what the kind of its holder claims, where the request says nothing of it', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { capacity: { control_planes: 1, nodes: { fc430: 3 } } });
    await known(fixture, 1);
    const order = (id: string, size: number) =>
      fixture.commandRunner.execute(
        aggregateOf(cluster),
        id,
        {
          ...ordered,
          type: 'OrderCluster',
          id,
          nodeSets: { workers: { hostType: { id: 'fc430', name: 'fc430' }, size } },
        },
        commandContext(`order-${id}`, 'acme'),
      );
    for (const [id, size] of [
      ['large', 4],
      ['fits', 3],
    ] as const)
      expect((await order(id, size)).outcome).to.equal('accepted');
    const asked = (id: string) => place(fixture.scheduler, { holder: held(id), tenant: 'acme' });
    expect(await asked('large')).to.include({ placed: false });
    expect(await asked('fits')).to.include({ placed: true });
    expect(claimOf(await capacityOf(fixture, 'sim-a'), held('fits'))).to.deep.equal({
      controlPlanes: 1,
      nodes: { fc430: 3 },
    });
  });

  it('reserves a place for what takes no room, which closes no hub under it and crowds out nobody', async () => {
    const fixture = setUp();
    await fixture.register('sim-a', { capacity: { control_planes: 1 } });
    await known(fixture, 1);
    const pool = { kind: 'externalIpPool', id: 'p1' };
    const args = { holder: pool, tenant: 'acme', withoutAutomation: true };
    expect(await place(fixture.scheduler, args)).to.include({ placed: true, hub: 'sim-a' });
    expect(claimOf(await capacityOf(fixture, 'sim-a'), pool)).to.deep.equal(NOTHING);
    await eventually('its tenant is known there', () => fixture.registry.tenantsOn('sim-a').includes('acme'));
    expect(fixture.registry.holdersOf('sim-a', 'acme', 'cluster'), 'a pool is no cluster').to.equal(0);
    expect(fixture.registry.holdersOf('sim-a', 'acme')).to.equal(1);
    const close = { type: 'CloseCapacity', at: systemClock().now(), hub: 'sim-a', hubRevision: 0 } as const;
    const closing = (id: string) =>
      fixture.commandRunner.execute(hubCapacity, 'sim-a', close, commandContext(id));
    expect((await closing('held')).outcome).to.equal('rejected');
    expect(await place(fixture.scheduler, request('c1')), 'there is room').to.include({ placed: true });
    for (const holder of [pool, held('c1')])
      await fixture.scheduler('release', { holder, hub: 'sim-a' }, effectCall());
    expect((await closing('empty')).outcome).to.equal('accepted');
    const late = await place(fixture.scheduler, { ...args, holder: { ...pool, id: 'p2' } });
    expect(late).to.include({ placed: false });
    expect((await capacityOf(fixture, 'sim-a')).used).to.deep.equal(NOTHING);
  });

  it('tells the capacity stream when a hub declares something else', async () => {
    const fixture = setUp();
    const { registry, commandRunner } = fixture;
    let owner = true;
    const stop = declareCapacities({
      registry,
      commandRunner,
      clock: systemClock(),
      logger: silentLogger,
      isOwner: () => owner,
    });
    await fixture.register('sim-a', { capacity: { control_planes: 1 } });
    const limit = async () => (await capacityOf(fixture, 'sim-a')).limits.controlPlanes;
    await eventually('declared', async () => (await limit()) === 1);
    await fixture.revise('sim-a', { capacity: { control_planes: 3 } });
    await eventually('declared', async () => (await limit()) === 3);
    owner = false;
    await fixture.revise('sim-a', { capacity: { control_planes: 5 } });
    await eventually('seen', () => registry.get('sim-a')?.limits.controlPlanes === 5);
    expect(await limit()).to.equal(3);
    stop();
  });

  it('refuses an operation that it does not know', async () => {
    const { scheduler } = setUp();
    expect(await scheduler('juggle', {}, effectCall())).to.deep.include({ outcome: 'refused' });
  });
});
