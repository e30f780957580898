import { expect } from 'chai';
import { repairCapacity } from '../../../src/app/hubs/capacity-repair.ts';
import { StoreUnavailable } from '../../../src/app/log/event-store.ts';
import { createHolders } from '../../../src/app/hubs/holders.ts';
import type { HubRegistry } from '../../../src/app/hubs/hub-registry.ts';
import { hubCapacity } from '../../../src/app/hubs/scheduler.ts';
import { claimedBy } from '../../../src/domain/hubs/capacity.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { externalIpPool } from '../../../src/domain/networks/external-ip-pool.resource.ts';
import { eventually } from '../../support/eventually.ts';
import { commandContext, hubFixture, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../support/loggers.ts';
import { manualTime } from '../../support/manual-time.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';

const MINUTE = 60_000;
/** Workflows of the kinds here. */
const RUNS = ['clusterOrder', 'externalIpPoolOrder'];

/**
 * An order gives back what it knows to hold. A reservation whose answer was lost may be stored after that: the network
 * was slow, or the instance that sent it was suspended and repeats it.
 */
describe('capacity of orders that are over', () => {
  let fixture: HubFixture;
  beforeEach(() => {
    fixture = hubFixture();
  });
  afterEach(() => fixture.stop());

  const reserve = async (
    clusterId: string,
    tenant: string,
    kind = 'cluster',
    hub = 'sim-a',
  ): Promise<void> => {
    const at = '2026-01-01T00:00:00.000Z';
    const claim = { controlPlanes: 1, nodes: { fc430: 2 } };
    const command = {
      type: 'ReserveCapacity',
      at,
      holder: { kind, id: clusterId },
      claim,
    } as const;
    const context = commandContext(`reserve-${hub}-${clusterId}`, tenant);
    expect((await fixture.commandRunner.execute(hubCapacity, hub, command, context)).outcome).to.equal(
      'accepted',
    );
  };
  const held = async (hub = 'sim-a'): Promise<readonly string[]> =>
    claimedBy((await fixture.commandRunner.load(hubCapacity, hub)).state).map(({ id }) => id);
  const registered = async (): Promise<void> => {
    await fixture.register('sim-a');
    await eventually('the hub is known', () => fixture.registry.hubs().length === 1);
  };
  const pools = aggregateOf(externalIpPool);
  const makePool = (id: string) =>
    fixture.commandRunner.execute(
      pools,
      id,
      {
        type: 'CreateDocument',
        at: '2026-01-01T00:00:00.000Z',
        id,
        name: id,
        tenant: 'acme',
        project: '',
        creator: 'ann',
        document: { spec: { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' } },
      },
      commandContext(`make-${id}`, 'acme'),
    );
  /** Time in which the repair runs passes; then it is stopped. */
  const repairing = async (
    over: readonly string[],
    during: (pass: (ms: number) => Promise<void>) => Promise<void>,
    commandRunner = fixture.commandRunner,
    registry: Pick<HubRegistry, 'hubs' | 'tenantOf'> = fixture.registry,
  ): Promise<void> => {
    const time = manualTime();
    const stop = new AbortController();
    const known = createHolders(
      {
        isClosed: (workflow, id) => RUNS.includes(workflow) && over.includes(id),
        isUnknown: (workflow, id) => RUNS.includes(workflow) && id.startsWith('unknown'),
      },
      fixture.commandRunner,
    );
    const ended = repairCapacity({
      registry,
      commandRunner,
      holders: {
        ...known,
        // Of the clusters here nothing but their places is in the log.
        ownerOf: async (holder, signal) =>
          holder.kind === 'cluster'
            ? { tenant: 'globex', project: 'default', archived: false }
            : known.ownerOf(holder, signal),
      },
      ...time,
      logger: silentLogger,
      signal: stop.signal,
    });
    await during(time.pass);
    stop.abort();
    await ended;
  };

  it('is given back when it was reserved after their end, and that of others stays', async () => {
    await registered();
    await reserve('goes-on', 'acme');
    await repairing(['over'], async (pass) => {
      await pass(MINUTE);
      await reserve('over', 'globex');
      await pass(2 * MINUTE);
      expect(await held()).to.deep.equal(['goes-on']);
    });
    const events = await readAll(fixture.store, 'hubCapacity-sim-a');
    const last = events.at(-1);
    expect(last?.type).to.equal('HubCapacityReleased');
    expect(last?.metadata).to.deep.include({ tenant: 'globex', hub: 'sim-a' });
  });

  it('is given back of every kind, also where its holder never came to be, in the name of whoever owns it', async () => {
    await registered();
    for (const id of ['over', 'unknown-yet']) expect((await makePool(id)).outcome).to.equal('accepted');
    for (const id of ['over', 'unknown-yet', 'unknown', 'goes-on'])
      await reserve(id, 'acme', 'externalIpPool');
    await repairing(['over'], (pass) => pass(MINUTE));
    expect(await held(), 'what its runner has only not heard of yet keeps its place').to.have.members([
      'goes-on',
      'unknown-yet',
    ]);
    const released = (await readAll(fixture.store, 'hubCapacity-sim-a')).filter(
      ({ type }) => type === 'HubCapacityReleased',
    );
    const tenantOf = new Map(
      released.map(({ data, metadata }) => [stringAt(objectAt(data, 'holder'), 'id'), metadata['tenant']]),
    );
    expect(Object.fromEntries(tenantOf)).to.deep.equal({ over: 'acme', unknown: 'acme' });
    await eventually(
      'those that have a place are counted',
      () => fixture.registry.holdersOf('sim-a', 'acme') === 2,
    );
  });

  it('is given back of what was aborted and of which nothing is left, until it is retried', async () => {
    await registered();
    const at = '2026-01-01T00:00:00.000Z';
    const tell = async (id: string, type: 'AbortOrder' | 'ConfirmAbsence' | 'RetryOrder'): Promise<void> => {
      const command = { type, at, reason: 'a mistake' };
      const context = commandContext(`${type}-${id}`, 'acme');
      expect((await fixture.commandRunner.execute(pools, id, command, context)).outcome).to.equal('accepted');
    };
    for (const id of ['withdrawn', 'retried', 'being-undone', 'under-way']) {
      expect((await makePool(id)).outcome).to.equal('accepted');
      if (id !== 'under-way') await tell(id, 'AbortOrder');
      if (id === 'withdrawn' || id === 'retried') await tell(id, 'ConfirmAbsence');
      if (id === 'retried') await tell(id, 'RetryOrder');
      await reserve(id, 'acme', 'externalIpPool');
    }
    await repairing([], (pass) => pass(61 * MINUTE));
    expect(await held()).to.have.members(['retried', 'being-undone', 'under-way']);
  });

  it('is given back where an order has it twice, on the hub that it is not on', async () => {
    for (const hub of ['sim-a', 'sim-b']) await fixture.register(hub);
    await eventually('the hubs are known', () => fixture.registry.hubs().length === 2);
    const place = async (id: string, hub: string): Promise<void> => {
      const at = '2026-01-01T00:00:00.000Z';
      const where = {
        hub,
        namespace: 'osac',
        objectName: id,
        simulated: true,
        controller: 'operator',
      } as const;
      const command = { type: 'PlaceOnHub', at, ...where } as const;
      const context = commandContext(`place-${id}`, 'acme');
      expect((await fixture.commandRunner.execute(pools, id, command, context)).outcome).to.equal('accepted');
    };
    for (const id of ['on-a', 'on-b', 'nowhere', 'once']) {
      expect((await makePool(id)).outcome).to.equal('accepted');
      if (id !== 'once') await reserve(id, 'acme', 'externalIpPool', 'sim-a');
      await reserve(id, 'acme', 'externalIpPool', 'sim-b');
      if (id !== 'nowhere') await place(id, id === 'on-b' ? 'sim-b' : 'sim-a');
    }
    const both = [
      ['on-a', 'on-b', 'nowhere'],
      ['on-a', 'on-b', 'nowhere', 'once'],
    ];
    await repairing([], async (pass) => {
      await pass(1);
      expect([await held('sim-a'), await held('sim-b')], 'one look is not enough').to.deep.equal(both);
      await pass(2 * MINUTE);
      expect(await held('sim-a')).to.deep.equal(['on-a', 'nowhere']);
      expect(await held('sim-b')).to.deep.equal(['on-b', 'nowhere', 'once']);
    });
  });

  it('counts no more among the clusters of its tenant there', async () => {
    await registered();
    await reserve('over', 'globex');
    await eventually('it is counted', () => fixture.registry.holdersOf('sim-a', 'globex') === 1);
    await repairing(['over'], (pass) => pass(MINUTE));
    await eventually('it is not counted', () => fixture.registry.holdersOf('sim-a', 'globex') === 0);
  });

  it('is found also after the store was away', async () => {
    await registered();
    await reserve('over', 'globex');
    let away = true;
    const { commandRunner } = fixture;
    const loses: typeof commandRunner = {
      ...commandRunner,
      execute: (...args) =>
        away ? Promise.reject(new StoreUnavailable('away', 'down')) : commandRunner.execute(...args),
    };
    await repairing(
      ['over'],
      async (pass) => {
        await pass(MINUTE);
        expect(await held()).to.deep.equal(['over']);
        away = false;
        await pass(2 * MINUTE);
        expect(await held()).to.deep.equal([]);
      },
      loses,
    );
  });

  it('is found also after what lists the places broke down', async () => {
    await registered();
    await reserve('over', 'globex');
    let isBroken = true;
    const hubs = () => {
      if (isBroken) throw new Error('database disk image is malformed');
      return fixture.registry.hubs();
    };
    const pass = async (passed: (ms: number) => Promise<void>): Promise<void> => {
      await passed(MINUTE);
      isBroken = false;
      await passed(MINUTE);
    };
    await repairing(['over'], pass, fixture.commandRunner, { ...fixture.registry, hubs });
    expect(await held()).to.deep.equal([]);
  });
});
