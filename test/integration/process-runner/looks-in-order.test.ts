import type { FakeOrders } from '../../support/hubs/fake-orders.ts';
import { expect } from 'chai';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import { createHubObserver } from '../../../src/app/hubs/hub-observer.ts';
import { createManagementClusterEffects } from '../../../src/app/hubs/management-cluster-effects.ts';
import {
  CLUSTER_ORDER,
  type ObservedClusterOrder,
  type ObservedHostedCluster,
} from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import type { ClusterObservation } from '../../../src/domain/clusters/observed.ts';
import { effectCall, fakeCluster, hubFixture } from '../../support/hubs/hub-fixture.ts';
import {
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

const HUB = 'hub-1';
const CLUSTER = 'c1';
const NAME = 'order-c1';
type Read = { answer(hosted: ObservedHostedCluster | undefined): void };
/** Long enough for everything that waits for nobody. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
};
const PLACE = { hub: HUB, namespace: 'orders', name: NAME, id: CLUSTER, object: 'ClusterOrder' };

const shownOrder: ObservedClusterOrder = {
  name: NAME,
  namespace: 'orders',
  uid: 'uid-1',
  id: CLUSTER,
  resourceVersion: '7',
  generation: 1,
  creationTimestamp: '2026-01-01T00:00:00Z',
  finalizers: [],
  annotations: {},
  spec: { templateID: 'small', templateParameters: '{}', nodeRequests: [] },
  conditions: [],
  jobs: [],
};
const hostedAs = (type: string): ObservedHostedCluster => ({
  name: NAME,
  namespace: `orders-${NAME}`,
  conditions: [{ type, status: 'True' }],
});

/**
 * The order never changes here: what differs is its HostedCluster, which is read by the watch's changes and on a timer
 * side by side, and answers when the test lets it.
 */
describe('looks at one cluster, by the watch of its hub and on a timer', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  const stage = async () => {
    const reads: Read[] = [];
    const told: string[] = [];
    const versions: (string | undefined)[] = [];
    const tell = (by: string, observation: ClusterObservation): void => {
      const { order, hostedCluster } = observation;
      versions.push(order?.resourceVersion);
      told.push(`${by}: ${order === null ? 'gone' : (hostedCluster?.conditions[0]?.type ?? 'nothing')}`);
    };
    const watched: HubObjectEvent<ObservedClusterOrder>[] = [];
    let news = Promise.withResolvers<void>();
    let there: ObservedClusterOrder | undefined = shownOrder;
    const cluster: Partial<FakeOrders> = {
      getClusterOrder: async () => there,
      findClusterOrders: async () => [],
      getHostedCluster: () => {
        const answered = Promise.withResolvers<ObservedHostedCluster | undefined>();
        reads.push({ answer: answered.resolve });
        return answered.promise;
      },
      watchClusterOrders: async function* (_namespace, signal) {
        signal.addEventListener('abort', () => news.resolve(), { once: true });
        while (!signal.aborted) {
          yield* watched.splice(0);
          await news.promise;
          news = Promise.withResolvers();
        }
      },
    };
    const fixture = hubFixture({ of: ({ id }) => fakeCluster(id, cluster) });
    const looks = createObjectLooks();
    const clock = systemClock();
    const secrets = { reveal: async () => undefined };
    const port = createManagementClusterEffects({ registry: fixture.registry, secrets, clock, looks });
    const observer = createHubObserver({
      objects: [CLUSTER_ORDER],
      registry: fixture.registry,
      looks,
      observe: (_kind, _id, observation) => {
        tell('watch', observation as unknown as ClusterObservation);
        return true;
      },
      clock,
      timers: systemTimers(),
      logger: silentLogger,
    });
    const stop = new AbortController();
    const ended = observer.run(stop.signal);
    closing.push(() => fixture.stop());
    closing.push(async () => {
      stop.abort();
      for (const { answer } of reads) answer(undefined);
      await ended;
    });
    await fixture.register(HUB);
    await eventually('it is watched', () => observer.status().length === 1);
    return {
      reads,
      told,
      versions,
      change: (to: ObservedClusterOrder): void => {
        there = to;
      },
      show: (event: HubObjectEvent<ObservedClusterOrder>): void => {
        watched.push(event);
        if (event.type === 'deleted') there = undefined;
        news.resolve();
      },
      read: async (id = CLUSTER): Promise<void> => {
        const outcome = await port('observeObject', { ...PLACE, id }, effectCall());
        if (outcome.outcome !== 'done') throw new Error(outcome.reason);
        tell('timer', outcome.result as unknown as ClusterObservation);
      },
    };
  };

  /** Of two questions the hub answers the later one first where it is asked both. */
  const answeredLateFirst = async (reads: readonly Read[]): Promise<void> => {
    await turns();
    reads[1]?.answer(hostedAs('Newer'));
    await turns();
    reads[0]?.answer(hostedAs('Older'));
    await eventually('both are read', () => reads.length === 2);
    reads[1]?.answer(hostedAs('Newer'));
  };

  it('a timed read that begins while the watch still reads is told after it', async () => {
    const { reads, told, show, read } = await stage();
    show({ type: 'applied', object: shownOrder });
    await eventually('the watch reads', () => reads.length === 1);
    const timed = read();
    await answeredLateFirst(reads);
    await timed;
    await eventually('both are told', () => told.length === 2);
    expect(told).to.deep.equal(['watch: Older', 'timer: Newer']);
  });

  it('a change that the watch shows while a timed read waits for its answer is told after that', async () => {
    const { reads, told, show, read } = await stage();
    const timed = read();
    await eventually('the timer reads', () => reads.length === 1);
    show({ type: 'applied', object: shownOrder });
    await answeredLateFirst(reads);
    await timed;
    await eventually('both are told', () => told.length === 2);
    expect(told).to.deep.equal(['timer: Older', 'watch: Newer']);
  });

  it('what was read of an order before its end is not told after it', async () => {
    const { reads, told, show, read } = await stage();
    show({ type: 'applied', object: shownOrder });
    await eventually('the watch reads', () => reads.length === 1);
    reads[0]?.answer(hostedAs('First'));
    await eventually('it is told', () => told.length === 1);
    const timed = read();
    await eventually('the timer reads', () => reads.length === 2);
    show({ type: 'deleted', object: shownOrder });
    await turns();
    reads[1]?.answer(hostedAs('Second'));
    await timed;
    await eventually('the end is told', () => told.length === 3);
    expect(told).to.deep.equal(['watch: First', 'timer: Second', 'watch: gone']);
  });

  it('a change that the watch keeps for a while is not told after a read that showed a newer one', async () => {
    const { reads, told, versions, show, read, change } = await stage();
    const answer = async (index: number, type: string): Promise<void> => {
      await eventually('it is read', () => reads.length === index + 1);
      reads[index]?.answer(hostedAs(type));
    };
    show({ type: 'applied', object: shownOrder });
    await answer(0, 'First');
    await eventually('it is told', () => told.length === 1);
    show({ type: 'applied', object: { ...shownOrder, resourceVersion: '8' } });
    change({ ...shownOrder, resourceVersion: '9' });
    const timed = read();
    await answer(1, 'Second');
    await timed;
    await answer(2, 'Third');
    await eventually('what the watch kept is told', () => told.length === 3);
    expect(versions).to.deep.equal(['7', '9', '9']);
  });

  it('one cluster does not wait for another', async () => {
    const { reads, told, read } = await stage();
    const first = read();
    await eventually('the first is read', () => reads.length === 1);
    await read('c2');
    expect(told).to.deep.equal(['timer: gone']);
    reads[0]?.answer(hostedAs('Answered'));
    await first;
  });
});

describe('what a run is told by a watch and by its own reads', () => {
  const running: ToyRunner[] = [];
  afterEach(async () => {
    for (const runner of running.splice(0)) await runner.stop();
  });

  it('is taken in the order in which it was told, also where a later observation replaces one that waits', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const held = Promise.withResolvers<void>();
    const answers = Promise.withResolvers<void>();
    let hold = false;
    let recording = false;
    let looking = false;
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        failpoint: async (name) => {
          if (name !== 'before-command' || !hold) return;
          recording = true;
          await held.promise;
        },
        effectPorts: {
          workshop: async (operation, args, call) => {
            if (operation !== 'look') return workshop.port(operation, args, call);
            if (looking) await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
            looking = true;
            await answers.promise;
            return { outcome: 'done', result: { colour: 'blue' } };
          },
        },
      },
    });
    running.push(runner);
    await eventually('live', () => runner.status().state === 'live');
    await orderToy(store, { id: 't1', parts: [], lookEveryMs: 3_600_000 });
    await eventually('it is looked at', () => looking);
    hold = true;
    runner.observe('toyRun', 't1', { colour: 'white' });
    await eventually('it is being recorded', () => recording);
    runner.observe('toyRun', 't1', { colour: 'red' });
    answers.resolve();
    await eventually('the look is answered', () => runner.status().queuedInputs === 2);
    runner.observe('toyRun', 't1', { colour: 'green' });
    expect(runner.status().queuedInputs).to.equal(2);
    held.resolve();
    const seen = async (): Promise<unknown[]> =>
      (await readAll(store, 'toy-t1'))
        .filter(({ type }) => type === 'ToySeen')
        .map(({ data }) => data['colour']);
    await eventually('all is taken', async () => (await seen()).length === 3);
    expect(await seen()).to.deep.equal(['white', 'blue', 'green']);
  });
});
