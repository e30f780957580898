import { copyFileSync, rmSync } from 'node:fs';
import { expect } from 'chai';
import {
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { indexStage } from './index-stage.ts';
import { eventually } from '../../support/eventually.ts';

describe('process runner and its index', () => {
  const { running, dataFile, live } = indexStage();

  it('reads what changed on a timer without an event per read', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const first = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    await orderToy(store, { id: 't1', lookEveryMs: 20 });
    await eventually('three looks', () => workshop.looks('one') >= 3);
    const seen = async (): Promise<unknown[]> =>
      (await readAll(store, 'toy-t1'))
        .filter((event) => event.type === 'ToySeen')
        .map((event) => event.data['colour']);
    expect(await seen()).to.deep.equal(['plain']);
    workshop.colour('one', 'red');
    await eventually('red', async () => (await seen()).length === 2);
    const starts = (await readAll(store, 'toyRun-t1')).filter((event) => event.type === 'EffectStarted');
    expect(starts.every((event) => event.data['effectId'] === 'body')).to.equal(true);
    await first.stop();
    const before = workshop.looks('one');
    running.push(startToyRunner({ store, workshop, instance: 'b', more: { dataFile: dataFile() } }));
    await eventually('looks go on', () => workshop.looks('one') > before + 1);
  });

  it('does not wait out a long interval when a shorter one is wanted meanwhile', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const runner = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    running.push(runner);
    await live(runner);
    await orderToy(store, { id: 't1', lookEveryMs: 3_600_000 });
    await eventually('the first look', () => workshop.looks('one') === 1);
    runner.observe('toyRun', 't1', { colour: 'hurry' });
    await eventually('looks follow each other', () => workshop.looks('one') >= 4);
  });

  it('does not wait out a long interval either when the shorter one was wanted just before a crash', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const start = (instance: string): ToyRunner =>
      startToyRunner({ store, workshop, instance, more: { dataFile: dataFile() } });
    const calm = start('a');
    await live(calm);
    // Nothing but the looks is outstanding, so that only their alarm wakes this run.
    await orderToy(store, { id: 't1', parts: [], lookEveryMs: 3_600_000 });
    await eventually('the first look', () => workshop.looks('one') === 1);
    await calm.stop();
    // What the index held before the hurry: a crash loses what was not committed.
    copyFileSync(dataFile(), `${dataFile()}.before`);
    const hurried = start('b');
    await live(hurried);
    hurried.observe('toyRun', 't1', { colour: 'hurry' });
    await eventually('the hurry is recorded', () => workshop.looks('one') >= 3);
    await hurried.stop();
    copyFileSync(`${dataFile()}.before`, dataFile());
    for (const suffix of ['-wal', '-shm']) rmSync(dataFile() + suffix, { force: true });
    const looks = workshop.looks('one');
    const restarted = start('c');
    running.push(restarted);
    await eventually('looks follow each other', () => workshop.looks('one') >= looks + 2);
  });

  describe('told to look', () => {
    const HOUR_MS = 3_600_000;
    const stage = async (order: object = {}) => {
      const store = toyStore();
      const workshop = createWorkshop();
      const runner = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
      running.push(runner);
      await live(runner);
      await orderToy(store, { id: 't1', parts: [], lookEveryMs: HOUR_MS, ...order });
      await eventually('the first look', () => workshop.looks('t1') === 1);
      await eventually('it is answered', async () =>
        (await readAll(store, 'toy-t1')).some(({ type }) => type === 'ToySeen'),
      );
      return { store, workshop, runner };
    };

    it('looks at once, and records what is new', async () => {
      const { store, workshop, runner } = await stage();
      workshop.colour('t1', 'red');
      expect(runner.lookNow('toyRun', 't1')).to.equal(true);
      await eventually('red', async () =>
        (await readAll(store, 'toy-t1')).some(({ data }) => data['colour'] === 'red'),
      );
      expect(workshop.looks('t1')).to.equal(2);
    });

    it('looks again after a look that is under way, which may be older; often told, once', async () => {
      const { store, workshop, runner } = await stage();
      const { promise, resolve } = Promise.withResolvers<void>();
      workshop.answerLooksAfter(promise);
      runner.lookNow('toyRun', 't1');
      await eventually('it looks', () => workshop.looks('t1') === 2);
      workshop.colour('t1', 'red');
      for (let i = 0; i < 5; i += 1) runner.lookNow('toyRun', 't1');
      await eventually('it is told', () => runner.status().queuedInputs === 0);
      resolve();
      await eventually('red', async () =>
        (await readAll(store, 'toy-t1')).some(({ data }) => data['colour'] === 'red'),
      );
      expect(workshop.looks('t1')).to.equal(3);
    });

    it('looks at one by itself that is looked at together with others', async () => {
      const { workshop, runner } = await stage({ lookTogether: true });
      for (const looks of [2, 3, 4]) {
        runner.lookNow('toyRun', 't1');
        await eventually('it looks', () => workshop.looks('t1') === looks);
        await eventually('it is done', () => runner.status().effectsInFlight === 0);
      }
      expect(workshop.compared).to.deep.equal([]);
    });

    it('says so where there is nothing to look at', async () => {
      const { runner, store } = await stage({ parts: ['wheel'] });
      await eventually('it is done', async () =>
        (await readAll(store, 'toy-t1')).some(({ type }) => type === 'ToyPartArrived'),
      );
      await eventually('it is closed', () => runner.isClosed('toyRun', 't1'));
      const told = ['t1', 'nobody'].map((id) => runner.lookNow('toyRun', id));
      await runner.stop();
      expect([...told, runner.lookNow('toyRun', 't1')]).to.deep.equal([false, false, false]);
    });
  });

  it('takes in what a watch shows', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const runner = startToyRunner({ store, workshop, instance: 'a' });
    running.push(runner);
    await orderToy(store, { id: 't1' });
    await eventually('started', () => runner.status().openRuns === 1);
    runner.observe('toyRun', 't1', { colour: 'red' });
    runner.observe('toyRun', 'nobody', { colour: 'red' });
    await eventually('taken', async () =>
      (await readAll(store, 'toy-t1')).some((event) => event.type === 'ToySeen'),
    );
    expect(await readAll(store, 'toyRun-nobody')).to.deep.equal([]);
    const unknown = (): boolean[] => ['t1', 'nobody'].map((id) => runner.isUnknown('toyRun', id));
    expect(unknown()).to.deep.equal([false, true]);
    await runner.stop();
    expect(unknown(), 'who does not own the processes cannot tell').to.deep.equal([false, false]);
  });
});
