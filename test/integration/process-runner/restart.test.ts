import type { Anchor } from '../../../src/app/log/resume-point.ts';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { AnyWorkflow } from '../../../src/app/process-runner/types.ts';
import { ReferencesBusy } from '../../../src/app/references/reference-guard.ts';
import {
  appendToy,
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyAggregate,
  toyCodec,
  toyRunIn,
  toyStore,
  toyWorkflow,
  type ToyCommand,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { indexStage } from './index-stage.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

/** A store that remembers what was read of it. */
const watched = (
  store: EventStore,
): EventStore & { readonly streamsRead: string[]; subscribedAfter: string | undefined } => {
  const seen = {
    streamsRead: [] as string[],
    subscribedAfter: undefined as string | undefined,
  };
  return Object.assign(seen, {
    ...store,
    readStream: (...args: Parameters<EventStore['readStream']>) => {
      seen.streamsRead.push(args[0]);
      return store.readStream(...args);
    },
    subscribe: (options: Parameters<EventStore['subscribe']>[0]) => {
      seen.subscribedAfter = options.after;
      return store.subscribe(options);
    },
  });
};

describe('process runner and its index', () => {
  const { running, dataFile, live } = indexStage();

  it('resumes from its checkpoint without reading closed runs again', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const first = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    for (let i = 0; i < 50; i += 1) await orderToy(store, { id: `t${i}` });
    for (let i = 0; i < 50; i += 1) await eventually(`t${i} is done`, () => isDone(store, `t${i}`));
    const end = await store.lastPosition();
    await eventually('all taken in', () => first.status().position === end);
    await first.stop();
    const seen = watched(store);
    const second = startToyRunner({ store: seen, workshop, instance: 'b', more: { dataFile: dataFile() } });
    running.push(second);
    await live(second);
    expect(seen.subscribedAfter).to.equal(end);
    expect(seen.streamsRead.filter((stream) => stream.startsWith('toyRun-'))).to.deep.equal([]);
    expect(second.status()).to.include({ openRuns: 0, closedRuns: 50 });
    await orderToy(store, { id: 'later' });
    await eventually('later is done', () => isDone(store, 'later'));
  });

  it('has kept whatever the checkpoint passed, also of a run that is in the middle of something', async () => {
    const store = toyStore();
    const held = { next: false, reached: false };
    const never = new Promise<void>(() => undefined);
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const runner: ToyRunner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        dataFile: dataFile(),
        settings: { stopGraceMs: 0 },
        failpoint: async (name) => {
          if (name === 'before-run-append' && held.next) {
            held.reached = true;
            await never;
          }
          // The note of the painted colour is in the log and not folded yet; another colour waits behind it.
          if (name !== 'after-run-append' || held.next) return;
          const events = await readAll(store, 'toyRun-open');
          if (!events.some(({ type }) => type === 'ColourNoticed')) return;
          await appendToy(store, 'open', 'ToyPainted', { colour: 'loud green' });
          held.next = true;
        },
      },
    });
    running.push(runner);
    await orderToy(store, { id: 'open', patienceMs: 3_600_000 });
    await eventually('at work', async () =>
      (await readAll(store, 'toyRun-open')).some(({ type }) => type === 'EffectStarted'),
    );
    await appendToy(store, 'open', 'ToyPainted', { colour: 'loud red' });
    await eventually('held', () => held.reached);
    const end = await store.lastPosition();
    await eventually('all passed', () => resumesAfter(dataFile()) === end);
    const events = await readAll(store, 'toyRun-open');
    expect(rowIn(dataFile(), 'toyRun-open')).to.deep.equal({
      revision: events.at(-1)?.revision,
      subject_revision: 2,
      work: 1,
    });
  });

  it('stops the one run of which nobody can say what is pending, neither the others nor a new start', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    let isBroken = true;
    const workflow: typeof toyWorkflow = {
      ...toyWorkflow,
      pending: (state) => {
        if (isBroken && state.status === 'working' && state.shop === 'bad') throw new Error('a bug');
        return toyWorkflow.pending(state);
      },
    };
    const workflows = [workflow as unknown as AnyWorkflow];
    const begin = (instance: string, file: string): ToyRunner => {
      const runner = startToyRunner({ store, workshop, instance, more: { workflows, dataFile: file } });
      running.push(runner);
      return runner;
    };
    const first = begin('a', dataFile());
    await orderToy(store, { id: 'bad', shop: 'bad' });
    await eventually('parked', () => first.parkedFor('toyRun', 'bad') === 'a bug');
    await orderToy(store, { id: 'good' });
    await eventually('good is done', () => isDone(store, 'good'));
    const end = await store.lastPosition();
    await eventually('all passed', () => resumesAfter(dataFile()) === end);
    expect(first.status()).to.include({ state: 'live' });
    await first.stop();

    for (const [instance, file] of [
      ['b', dataFile()],
      ['c', ':memory:'],
    ] as const) {
      const next = begin(instance, file);
      await orderToy(store, { id: instance });
      await eventually('the next is done', () => isDone(store, instance));
      await eventually('parked again', () => next.parkedFor('toyRun', 'bad') === 'a bug');
      isBroken = instance === 'b';
      if (isBroken) await next.stop();
      else expect(await next.retryRun('toyRun', 'bad')).to.equal(true);
    }
    await eventually('bad is done', () => isDone(store, 'bad'));
  });

  for (const fate of ['kept', 'deleted', 'damaged'] as const) {
    it(`finds the same pending work with its file ${fate}, and takes nothing in twice`, async () => {
      const store = toyStore();
      const workshop = createWorkshop();
      workshop.mood('one', 'dead');
      const settings = { stopGraceMs: 200 };
      const first = startToyRunner({
        store,
        workshop,
        instance: 'a',
        more: { dataFile: dataFile(), settings },
      });
      await orderToy(store, { id: 'done', shop: 'two' });
      await orderToy(store, { id: 'open', parts: ['body', 'wheel'], patienceMs: 3_600_000 });
      await appendToy(store, 'open', 'ToyPainted', { colour: 'loud red' });
      await eventually('done', () => isDone(store, 'done'));
      const noticed = async (): Promise<readonly string[]> => (await toyRunIn(store, 'open')).noticed;
      await eventually('red', async () => (await noticed()).length === 1);
      await first.stop();
      await appendToy(store, 'open', 'ToyPainted', { colour: 'loud blue' });
      await orderToy(store, { id: 'new', shop: 'two' });
      if (fate === 'deleted') rmSync(dataFile());
      if (fate === 'damaged') writeFileSync(dataFile(), 'this is no database');
      const second = startToyRunner({
        store,
        workshop,
        instance: 'b',
        more: { dataFile: dataFile(), settings },
      });
      running.push(second);
      await live(second);
      await eventually('new is done', () => isDone(store, 'new'));
      await eventually('blue', async () => (await noticed()).length === 2);
      expect(second.status()).to.include({ openRuns: 1, closedRuns: 2 });
      workshop.mood('one', 'well');
      second.resumeLane('shop:one');
      await eventually('open is done', () => isDone(store, 'open'));
      expect(await noticed()).to.deep.equal(['loud red', 'loud blue']);
      expect(workshop.calls.filter((call) => call.did === 'created-again')).to.deep.equal([]);
    });
  }

  it('takes in again what was waiting for its run when the process died', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    let hangs = false;
    let hung = false;
    const first = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        dataFile: dataFile(),
        settings: { stopGraceMs: 20 },
        failpoint: (name) => {
          if (!hangs || name !== 'before-run-append') return undefined;
          hung = true;
          return new Promise(() => undefined);
        },
      },
    });
    await orderToy(store, { id: 't1', patienceMs: 3_600_000 });
    await eventually('taken in', () => first.status().openRuns === 1);
    hangs = true;
    await appendToy(store, 't1', 'ToyPainted', { colour: 'loud red' });
    await eventually('it hangs', () => hung);
    await appendToy(store, 't1', 'ToyPainted', { colour: 'loud blue' });
    const painted = await store.lastPosition();
    await eventually('seen', () => first.status().lagSeconds > 0);
    expect(first.status().position).to.not.equal(painted);
    await first.stop();
    const second = startToyRunner({ store, workshop, instance: 'b', more: { dataFile: dataFile() } });
    running.push(second);
    await eventually('both are noticed', async () => (await toyRunIn(store, 't1')).noticed.length === 2);
  });

  it('waits for a log that cannot be read when it resumes, instead of breaking down', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const first = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    await orderToy(store, { id: 't1' });
    await eventually('t1 is done', () => isDone(store, 't1'));
    await first.stop();
    let refusals = 2;
    const away: EventStore = {
      ...store,
      idAt: async (position, signal) => {
        refusals -= 1;
        if (refusals >= 0) throw new StoreUnavailable('not reachable');
        return store.idAt(position, signal);
      },
    };
    const logged: string[] = [];
    const logger = {
      ...silentLogger,
      error: (_fields: object, message: string) => void logged.push(message),
    };
    const more = { dataFile: dataFile(), logger: { ...logger, child: () => logger } };
    const second = startToyRunner({ store: away, workshop, instance: 'b', more });
    running.push(second);
    await live(second);
    expect(refusals).to.equal(-1);
    expect(logged).to.deep.equal([]);
  });

  it('waits out a deletion that keeps a command from referring to something, instead of parking the run', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const clock = systemClock();
    const commands = createCommandRunner({
      store,
      codec: toyCodec(),
      clock,
      instance: 'a',
      recordRejection: () => undefined,
    });
    let busy = 2;
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        commandTargets: {
          toy: (id, command, context) => {
            busy -= 1;
            if (busy >= 0) return Promise.reject(new ReferencesBusy());
            return commands.execute(toyAggregate, id, command as ToyCommand, context);
          },
        },
      },
    });
    running.push(runner);
    await orderToy(store, { id: 't1' });
    await eventually('t1 is done', () => isDone(store, 't1'));
    expect(busy).to.be.lessThan(0);
  });

  it('starts a file anew that turns out to be damaged inside', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const first = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    for (let i = 0; i < 20; i += 1) await orderToy(store, { id: `t${i}`, patienceMs: 3_600_000 });
    await eventually('taken in', () => first.status().openRuns === 20);
    await first.stop();
    const bytes = readFileSync(dataFile());
    writeFileSync(
      dataFile(),
      Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 0x55)]),
    );
    workshop.mood('one', 'well');
    const second = startToyRunner({ store, workshop, instance: 'b', more: { dataFile: dataFile() } });
    running.push(second);
    for (let i = 0; i < 20; i += 1) await eventually(`t${i} is done`, () => isDone(store, `t${i}`), 10_000);
    expect(workshop.objects.size).to.equal(20);
    expect(second.status().parkedRuns).to.deep.equal([]);
  });

  it('starts a file anew that knows more than the log holds (a backup came back, a write-ahead log was cut)', async () => {
    const former = toyStore();
    const workshop = createWorkshop();
    const before = startToyRunner({ store: former, workshop, instance: 'a', more: { dataFile: dataFile() } });
    for (const id of ['t1', 't2', 't3']) await orderToy(former, { id });
    await eventually(
      'all are done',
      async () => (await isDone(former, 't1')) && (await isDone(former, 't3')),
    );
    await before.stop();

    const restored = Object.assign(toyStore(), { storeId: former.storeId });
    await orderToy(restored, { id: 't9' });
    running.push(
      startToyRunner({
        store: restored,
        workshop: createWorkshop(),
        instance: 'b',
        more: { dataFile: dataFile() },
      }),
    );
    await eventually('t9 is done', () => isDone(restored, 't9'));
    expect(running[0]?.status().closedRuns).to.equal(1);
  });
});

const look = (file: string, sql: string, ...values: string[]): { [column: string]: unknown } | undefined => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return db.prepare(sql).get(...values);
  } finally {
    db.close();
  }
};
const resumesAfter = (file: string): string => {
  const anchor = look(file, "SELECT value FROM meta WHERE key = 'anchor'")?.['value'];
  return typeof anchor === 'string' ? (JSON.parse(anchor) as Anchor).position : '';
};
const rowIn = (file: string, key: string): unknown => ({
  ...look(file, 'SELECT revision, subject_revision, work FROM runs WHERE key = ?', key),
});
