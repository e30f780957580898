import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import type { CommandOutcome } from '../../../src/app/commands/command.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Clock } from '../../../src/app/ports.ts';
import type {
  CommandTarget,
  EffectPort,
  ProcessRunnerOptions,
} from '../../../src/app/process-runner/types.ts';
import { reject } from '../../../src/domain/decider.ts';
import {
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyRunIn,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';

const always = (epoch: number): Ownership => ({
  hold: (signal, whileOwner) => whileOwner({ epoch, signal }),
});

/** The monotonic clock of another process begins anywhere. */
const clockFrom = (monotonicMs: number, wallMs = 0): Clock => {
  const system = systemClock();
  return {
    now: () => new Date(Date.parse(system.now()) + wallMs).toISOString(),
    monotonicMs: () => system.monotonicMs() + monotonicMs,
  };
};

describe('what the process runner waits for', function () {
  this.timeout(20_000);
  const running: ToyRunner[] = [];
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'patience-'));
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
    rmSync(folder, { recursive: true });
  });
  const start = (options: Parameters<typeof startToyRunner>[0]): ToyRunner => {
    const runner = startToyRunner(options);
    running.push(runner);
    return runner;
  };

  describe('timers in an index that outlives the process', () => {
    const firstEvent = async (store: EventStore, type: string) =>
      (await readAll(store, 'toyRun-t1')).find((event) => event.type === type);
    const restarted = async (before: Clock, after: Clock, patienceMs: number): Promise<EventStore> => {
      const store = toyStore();
      const workshop = createWorkshop();
      workshop.mood('one', 'dead');
      const dataFile = join(folder, 'processes.sqlite');
      const first = start({ store, workshop, instance: 'a', more: { dataFile, clock: before } });
      await orderToy(store, { id: 't1', patienceMs, at: before.now() });
      await eventually('scheduled', () => first.status().openRuns === 1);
      await first.stop();
      expect(await firstEvent(store, 'TimerFired')).to.equal(undefined);
      start({ store, workshop, instance: 'b', more: { dataFile, clock: after } });
      return store;
    };

    it('are due by the wall clock, wherever the monotonic clock begins', async () => {
      const store = await restarted(clockFrom(1e9), clockFrom(0), 700);
      await eventually('fired', async () => (await firstEvent(store, 'TimerFired')) !== undefined);
      const { deadline = '' } = await toyRunIn(store, 't1');
      const fired = (await firstEvent(store, 'TimerFired'))?.data as { at: string };
      // Two readings of the two clocks may differ by a millisecond or two.
      expect(Date.parse(fired.at) - Date.parse(deadline)).to.be.at.least(-5);
    });

    it('that passed while nothing ran are due at once', async () => {
      const store = await restarted(clockFrom(0), clockFrom(0, 3_600_000), 3_000_000);
      await eventually('fired', async () => (await firstEvent(store, 'TimerFired')) !== undefined);
    });
  });

  describe('an attempt that another runner started', () => {
    const DEADLINE_MS = 1_000;
    /** Milliseconds from the start of the first runner's attempt to the second runner's call. */
    const secondCallAfter = async (
      epochs: readonly [number, number],
      deadlines: Partial<ProcessRunnerOptions> = { settings: { effectDeadlineMs: DEADLINE_MS } },
    ): Promise<number> => {
      const store = toyStore(false);
      const silent = createWorkshop();
      silent.mood('one', 'silent');
      const patient = { effectDeadlineMs: 10_000, stopGraceMs: 0 };
      const more = { ownership: always(epochs[0]), settings: patient };
      start({ store, workshop: silent, instance: 'one', more });
      await orderToy(store, { id: 't1' });
      await eventually('a call', () => silent.calls.length === 1);
      const began = (await readAll(store, 'toyRun-t1')).find(({ type }) => type === 'EffectStarted');
      const workshop = createWorkshop();
      let calledAt = 0;
      const port: EffectPort = (operation, args, call) => {
        calledAt ||= Date.now();
        return workshop.port(operation, args, call);
      };
      start({
        store,
        workshop,
        instance: 'two',
        more: { ownership: always(epochs[1]), effectPorts: { workshop: port }, ...deadlines },
      });
      await eventually('another call', () => calledAt > 0);
      const started = began?.data as { readonly at: string } | undefined;
      return calledAt - Date.parse(started?.at ?? '');
    };

    it('is left alone for as long as it may take while that one may be alive', async () => {
      expect(await secondCallAfter([1, 1])).to.be.at.least(DEADLINE_MS - 5);
    });
    it('is left alone for as long as its own port allows', async () => {
      const deadlines = { settings: { effectDeadlineMs: 10 }, effectDeadlinesMs: { workshop: DEADLINE_MS } };
      expect(await secondCallAfter([1, 1], deadlines)).to.be.at.least(DEADLINE_MS - 5);
    });
    it('is looked at without waiting when that one has lost its lease', async () => {
      const patient = { settings: { effectDeadlineMs: 60_000 } };
      expect(await secondCallAfter([1, 2], patient)).to.be.below(60_000);
    });
  });

  it('tells every attempt how long it may take and when the first one was started', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const seen: (readonly [attempt: number, deadlineMs: number, firstStartedAt: string | undefined])[] = [];
    const port: EffectPort = (operation, args, call) => {
      if (operation === 'make') seen.push([call.attempt, call.deadlineMs, call.firstStartedAt]);
      return workshop.port(operation, args, call);
    };
    const more = { effectPorts: { workshop: port }, effectDeadlinesMs: { workshop: 1_234 } };
    const first = start({ store, workshop, instance: 'a', more });
    await orderToy(store, { id: 't1' });
    await eventually('two attempts', () => seen.length >= 2);
    await first.stop();
    const before = seen.length;
    start({ store, workshop, instance: 'b', more });
    await eventually('another one after a restart', () => seen.length > before);
    const started = (await readAll(store, 'toyRun-t1')).find(({ type }) => type === 'EffectStarted');
    const at = (started?.data as { at: string } | undefined)?.at;
    expect(seen).to.deep.equal(seen.map((_, n) => [n + 1, 1_234, at]));
  });

  it('reads the log no further than it has room for', async () => {
    const store = toyStore();
    const gate = Promise.withResolvers<void>();
    const held: EventStore = {
      ...store,
      append: async (stream, ...rest) => {
        if (stream.startsWith('toyRun-')) await gate.promise;
        return store.append(stream, ...rest);
      },
    };
    const settings = { maxQueuedInputs: 4, concurrency: 1 };
    const more = { ownership: always(1), settings };
    const runner = start({ store: held, workshop: createWorkshop(), instance: 'a', more });
    await eventually('live', () => runner.status().state === 'live');
    for (let i = 0; i < 40; i += 1) await orderToy(store, { id: `t${i}` });
    let most = 0;
    for (let turn = 0; turn < 300; turn += 1) {
      most = Math.max(most, runner.status().queuedInputs);
      await nextTurn();
    }
    expect(most).to.be.within(4, 5);
    gate.resolve();
    for (let i = 0; i < 40; i += 1) await eventually(`t${i} is done`, () => isDone(store, `t${i}`));
  });

  it('repeats a command whose stream others kept changing, as the same command and without telling the run', async () => {
    const store = toyStore();
    const outcomes: string[] = [];
    const ids: string[] = [];
    const loaded = { state: undefined, revision: 0, version: 0 };
    const crowded: CommandOutcome<unknown> = {
      outcome: 'rejected',
      rejection: reject('conflict', 'CONFLICT', 'others were faster'),
      loaded,
    };
    const toy: CommandTarget = async (_id, _command, { commandId }) => {
      ids.push(commandId);
      return ids.length < 4 ? crowded : { outcome: 'accepted', loaded, events: [], replayed: false };
    };
    start({
      store,
      workshop: createWorkshop(),
      instance: 'a',
      more: {
        commandTargets: { toy },
        hooks: { commandFinished: ({ outcome }) => void outcomes.push(outcome) },
      },
    });
    await orderToy(store, { id: 't1' });
    await eventually('t1 is done', () => isDone(store, 't1'));
    expect(outcomes).to.deep.equal(['accepted']);
    expect(ids).to.have.length(4);
    expect(new Set(ids).size).to.equal(1);
  });
});
