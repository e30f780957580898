import { expect } from 'chai';
import type { EventStore, RecordedEvent, SubscriptionItem } from '../../../src/app/log/event-store.ts';
import type { AnyWorkflow } from '../../../src/app/process-runner/types.ts';
import { eventually } from '../../support/eventually.ts';
import {
  appendToy,
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  toyWorkflow,
  type ToyRun,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';

/** What a runner makes of a log that tells something twice, or leaves one event out, and of a turn that comes too late. */

/** A store whose subscriptions yield so many of an event: 2 = again, at once; 0 = it is left out. */
const yielding = (store: EventStore, times: (event: RecordedEvent) => number): EventStore => ({
  ...store,
  async *subscribe(options): AsyncGenerator<SubscriptionItem> {
    for await (const item of store.subscribe(options))
      for (let left = item.kind === 'event' ? times(item.event) : 1; left > 0; left -= 1) yield item;
  },
});

describe('process runner', () => {
  const running: ToyRunner[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });
  const start = (...args: Parameters<typeof startToyRunner>): ToyRunner => {
    const runner = startToyRunner(...args);
    running.push(runner);
    return runner;
  };
  const noticed = async (store: EventStore): Promise<unknown[]> =>
    (await readAll(store, 'toyRun-open'))
      .filter(({ type }) => type === 'ColourNoticed')
      .map(({ data }) => data['colour']);
  /** A toy that stays where it is: its shop is dead. */
  const openToy = async (store: EventStore): Promise<ReturnType<typeof createWorkshop>> => {
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    await orderToy(store, { id: 'open', patienceMs: 3_600_000 });
    return workshop;
  };

  it('takes in once what it is told twice, be it the last that it was told', async () => {
    const store = toyStore();
    const workshop = await openToy(store);
    const runner = start({ store: yielding(store, () => 2), workshop, instance: 'a' });
    await eventually('live', () => runner.status().state === 'live');
    for (const colour of ['loud red', 'loud blue']) {
      await appendToy(store, 'open', 'ToyPainted', { colour });
      const end = await store.lastPosition();
      await eventually('taken in', async () => (await noticed(store)).includes(colour));
      await eventually('all of it', () => (runner.status().position ?? '') >= (end ?? ''));
    }
    expect(await noticed(store)).to.deep.equal(['loud red', 'loud blue']);
  });

  for (const stream of ['toy', 'toyRun'])
    for (const missing of [1, 2])
      it(`reads both streams of a run where the log left out ${missing} of ${stream}'s events`, async () => {
        const store = toyStore();
        const workshop = await openToy(store);
        const first = start({ store, workshop, instance: 'a' });
        const colours = ['loud red', 'loud blue', 'loud green', 'loud white'];
        for (const colour of colours) await appendToy(store, 'open', 'ToyPainted', { colour });
        await eventually('painted', async () => (await noticed(store)).length === colours.length);
        await first.stop();

        const left = colours.slice(1, 1 + missing);
        const seen: ToyRun[] = [];
        const noting: typeof toyWorkflow = {
          ...toyWorkflow,
          decide: (state, input) => {
            if (state.colours.includes('last')) seen.push(state);
            return toyWorkflow.decide(state, input);
          },
        };
        const holed = yielding(store, (event) =>
          event.stream === `${stream}-open` && left.some((colour) => event.data['colour'] === colour) ? 0 : 1,
        );
        const second = start({
          store: holed,
          workshop,
          instance: 'b',
          more: { workflows: [noting as unknown as AnyWorkflow] },
        });
        await eventually('live', () => second.status().state === 'live');
        await appendToy(store, 'open', 'ToyPainted', { colour: 'last' });
        await eventually('decided', () => seen.length > 0);
        expect(seen[0]?.colours).to.deep.equal([...colours, 'last']);
        expect(seen[0]?.noticed).to.deep.equal(colours);
      });

  it('begins no effect once it is told to stop, be its turn granted before', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const held = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const called: string[] = [];
    let isHolding = false;
    let isAtGate = false;
    const runner = start({
      store,
      workshop,
      instance: 'a',
      more: {
        settings: { laneConcurrency: 1, effectDeadlineMs: 60_000, stopGraceMs: 60_000 },
        effectPorts: {
          workshop: async (operation, args, call) => {
            called.push(call.runId);
            if (call.runId === 'first') await held.promise;
            return workshop.port(operation, args, call);
          },
        },
        failpoint: async (name) => {
          if (name !== 'before-run-append' || !isHolding) return;
          isHolding = false;
          isAtGate = true;
          await gate.promise;
        },
      },
    });
    await orderToy(store, { id: 'first', parts: ['body', 'wheel'] });
    await eventually('the lane is taken', () => called.length === 1);
    await orderToy(store, { id: 'second' });
    await eventually('the second waits for it', () =>
      runner.status().lanes.some(({ lane, waiting }) => lane === 'shop:one' && waiting === 1),
    );
    // It is busy with something else when its turn comes.
    isHolding = true;
    await appendToy(store, 'second', 'ToyPainted', { colour: 'loud red' });
    await eventually('the second is busy', () => isAtGate);
    held.resolve();
    await eventually('the turn is granted', () =>
      runner
        .status()
        .lanes.some(
          ({ lane, inFlight, waiting }) => lane === 'shop:one' && inFlight + waiting > 0 && waiting < 2,
        ),
    );
    await eventually('the first is made', async () =>
      (await readAll(store, 'toy-first')).some(({ type }) => type === 'ToyPartArrived'),
    );
    const stopped = runner.stop();
    await eventually(
      'it takes nothing in any more',
      () => !runner.observe('toyRun', 'second', { colour: 'x' }),
    );
    gate.resolve();
    await stopped;
    expect(called.filter((run) => run === 'second')).to.deep.equal([]);
    const types = (await readAll(store, 'toyRun-second')).map(({ type }) => type);
    expect(types).to.deep.equal(['ColourNoticed']);
  });
});
