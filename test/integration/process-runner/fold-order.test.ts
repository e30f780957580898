import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { WrongExpectedRevision, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { AnyWorkflow, LanePause } from '../../../src/app/process-runner/types.ts';
import { eventually } from '../../support/eventually.ts';
import { checkAsync } from '../../support/property.ts';
import {
  appendToy,
  orderToy,
  startToyRunner,
  toyRunIn,
  toyStore,
  toyWorkflow,
  type ToyRun,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop, type Workshop } from '../../support/process-runner/toy-workshop.ts';

/** Owns without asking anybody, so that two runners work at once. */
const always: Ownership = { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) };

/** Somebody who lost a race appends again. */
const append = async (...args: Parameters<typeof appendToy>): Promise<void> => {
  for (;;) {
    try {
      return await appendToy(...args);
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error;
    }
  }
};

const paint = (store: EventStore, colour: string): Promise<void> =>
  append(store, 't1', 'ToyPainted', { colour });
const decide = (store: EventStore): Promise<void> =>
  append(store, 't1', 'ToyHurried', {}, { category: 'toyRun' });

describe('the order in which a run is folded from its two streams', function () {
  this.timeout(60_000);
  const running: ToyRunner[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });

  /** A runner, and the newest state that it asked the workflow about. Its lane is held back but for a workshop of its own. */
  const watched = (
    store: EventStore,
    instance: string,
    workshop?: Workshop,
  ): { readonly runner: ToyRunner; readonly state: () => ToyRun | undefined } => {
    let last: ToyRun | undefined;
    const workflow: typeof toyWorkflow = {
      ...toyWorkflow,
      isClosed: (state) => {
        if (state.id === 't1') last = state;
        return toyWorkflow.isClosed(state);
      },
    };
    const settings = { effectDeadlineMs: 60, breakerHalfOpenMs: 30, stopGraceMs: 300 };
    const workflows = [workflow as unknown as AnyWorkflow];
    const pause = { by: 'u-1', at: '2026-11-21T12:00:00.000Z', reason: 'a test' };
    const pausedLanes = async (): Promise<ReadonlyMap<string, LanePause>> =>
      new Map(workshop === undefined ? [['shop:one', pause]] : []);
    const more = { ownership: always, settings, workflows, pausedLanes };
    const runner = startToyRunner({ store, workshop: workshop ?? createWorkshop(), instance, more });
    running.push(runner);
    return { runner, state: () => last };
  };
  const agrees = (store: EventStore, what: string, state: () => ToyRun | undefined) =>
    eventually(
      `${what} is what the streams hold`,
      async () => JSON.stringify(state()) === JSON.stringify(await toyRunIn(store, 't1')),
      15_000,
    );
  const live = ({ runner }: { readonly runner: ToyRunner }) =>
    eventually('live', () => runner.status().state === 'live');

  it('an own event comes right behind what of the subject it was appended upon', async () => {
    const store = toyStore();
    const { runner, state } = watched(store, 'a');
    await live({ runner });
    await orderToy(store, { id: 't1' });
    await paint(store, 'loud red');
    await eventually('noticed', () => state()?.noticed.length === 1);
    await paint(store, 'blue');
    await agrees(store, 'the live state', state);
    expect(state()?.folded).to.deep.equal(['s0', 's1', 'r0', 's2']);
  });

  it("a person's decision comes where the log has it, be it the first event of the run", async () => {
    const store = toyStore();
    const { runner, state } = watched(store, 'a');
    await live({ runner });
    await orderToy(store, { id: 't1' });
    await paint(store, 'red');
    await decide(store);
    await paint(store, 'blue');
    await agrees(store, 'the live state', state);
    expect(state()).to.deep.include({ folded: ['s0', 's1', 'r0', 's2'], hurried: true });
    const rebuilt = watched(store, 'b');
    await agrees(store, 'a rebuilt index', rebuilt.state);
  });

  it('what another instance appended upon less than was folded here is put in its place', async () => {
    const store = toyStore(false);
    const deaf: EventStore = {
      ...store,
      async *subscribe(options) {
        for await (const item of store.subscribe(options))
          if (item.kind !== 'event' || item.event.type !== 'ToyPainted') yield item;
      },
    };
    await orderToy(store, { id: 't1' });
    const first = watched(deaf, 'deaf');
    const second = watched(store, 'hearing');
    await live(first);
    await live(second);
    await paint(store, 'red');
    await eventually('painted', () => second.state()?.folded.join() === 's0,s1');
    first.runner.resumeLane('shop:one');
    await eventually('put in its place', () => second.state()?.folded.slice(0, 3).join() === 's0,r0,s1');
    await agrees(store, 'the live state', second.state);
    const rebuilt = watched(store, 'rebuilt');
    await live(rebuilt);
    await agrees(store, 'the rebuilt index', rebuilt.state);
  });

  it('is the same in both of two runners, and in an index rebuilt from the log', async () => {
    const action = fc.constantFrom('paint', 'shout', 'decide', 'gold', 'look', 'wait');
    await checkAsync(
      fc.asyncProperty(
        fc.array(fc.tuple(action, fc.nat({ max: 3 })), { minLength: 1, maxLength: 12 }),
        fc.constantFrom('well', 'dead', 'loses-answers'),
        async (actions, mood) => {
          const store = toyStore(false);
          const workshop = createWorkshop();
          workshop.mood('one', mood);
          const first = watched(store, 'one', workshop);
          const second = watched(store, 'two', workshop);
          await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
          for (const [i, [what, turns]] of actions.entries()) {
            if (what === 'paint') await paint(store, `colour ${i}`);
            if (what === 'shout') await paint(store, `loud ${i}`);
            if (what === 'gold') await paint(store, 'gold');
            if (what === 'decide') await decide(store);
            if (what === 'look') second.runner.observe('toyRun', 't1', { colour: `seen ${i}` });
            for (let turn = 0; turn < turns; turn += 1) await nextTurn();
          }
          // What is open goes on being tried, so that only a run at its end stands still.
          workshop.mood('one', 'well');
          await eventually('closed', async () => (await toyRunIn(store, 't1')).status === 'closed', 15_000);
          await agrees(store, 'the first', first.state);
          await agrees(store, 'the second', second.state);
          const rebuilt = watched(store, 'three', workshop);
          await agrees(store, 'the rebuilt index', rebuilt.state);
          await Promise.all(running.splice(0).map((runner) => runner.stop()));
        },
      ),
      { numRuns: 25 },
    );
  });
});
