import { expect } from 'chai';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { FAILPOINTS, type FailpointName } from '../../../src/app/process-runner/types.ts';
import {
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop, type Workshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';

/**
 * A crash: from the named point on this incarnation never goes on. Its successor gets what a crash leaves behind: the
 * store and the far side.
 */
const crashAt = (name: FailpointName, occurrence: number) => {
  let seen = 0;
  let crashed = false;
  return {
    crashed: () => crashed,
    failpoint: async (point: FailpointName): Promise<void> => {
      if (point === name) seen += 1;
      if (crashed || seen === occurrence) {
        crashed = true;
        await new Promise<never>(() => undefined);
      }
    },
  };
};

describe('process runner after a crash', () => {
  const running: ToyRunner[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });

  for (const name of FAILPOINTS.filter((point) => point !== 'before-timer')) {
    for (const occurrence of [1, 2]) {
      it(`at ${name} (${occurrence}): the next incarnation finishes, with one object per part`, async () => {
        const store = toyStore();
        const workshop = createWorkshop();
        const crash = crashAt(name, occurrence);
        const first = startToyRunner({
          store,
          workshop,
          instance: 'first',
          more: { failpoint: crash.failpoint, settings: { stopGraceMs: 0 } },
        });
        await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
        await eventually(`crash at ${name}`, crash.crashed);
        await first.stop();
        running.push(startToyRunner({ store, workshop, instance: 'second' }));
        await eventually('t1 is done', () => isDone(store, 't1'));
        expect([...workshop.objects.keys()]).to.deep.equal(['t1-body', 't1-wheel']);
        expect(workshop.calls.filter((call) => call.did === 'created-again')).to.deep.equal([]);
        const run = await readAll(store, 'toyRun-t1');
        const starts = run.filter((event) => event.type === 'EffectStarted').map((event) => event.data);
        const attempts = starts.map((data) => `${data['effectId'] as string}#${data['attempt'] as number}`);
        expect(new Set(attempts).size).to.equal(attempts.length);
        expect(
          (await readAll(store, 'toy-t1')).filter((event) => event.type === 'ToyPartArrived'),
        ).to.have.length(2);
      });
    }
  }

  it('looks before it repeats when the record of an effect is missing', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const crash = crashAt('after-effect-before-record', 1);
    const first = startToyRunner({
      store,
      workshop,
      instance: 'first',
      more: { failpoint: crash.failpoint, settings: { stopGraceMs: 0 } },
    });
    await orderToy(store, { id: 't1' });
    await eventually('crash', crash.crashed);
    await first.stop();
    running.push(startToyRunner({ store, workshop, instance: 'second' }));
    await eventually('t1 is done', () => isDone(store, 't1'));
    const effectId = 'toyRun-t1/body';
    expect(workshop.calls).to.deep.equal([
      { effectId, attempt: 1, mode: 'perform', did: 'created' },
      { effectId, attempt: 2, mode: 'observe', did: 'observed' },
    ]);
    const epochs = (await readAll(store, 'toyRun-t1'))
      .filter((event) => event.type === 'EffectStarted')
      .map((event) => event.data['epoch']);
    expect(epochs).to.deep.equal([1, 2]);
  });

  const crashed = async (name: FailpointName): Promise<{ store: EventStore; workshop: Workshop }> => {
    const store = toyStore();
    const workshop = createWorkshop();
    const crash = crashAt(name, 1);
    const more = { failpoint: crash.failpoint, settings: { stopGraceMs: 0 } };
    const first = startToyRunner({ store, workshop, instance: 'first', more });
    await orderToy(store, { id: 't1' });
    await eventually('crash', crash.crashed);
    await first.stop();
    running.push(startToyRunner({ store, workshop, instance: 'second' }));
    await eventually('t1 is done', () => isDone(store, 't1'));
    return { store, workshop };
  };

  it('between an effect and the command that tells of it: it looks, and the command is the same one', async () => {
    const { store, workshop } = await crashed('before-command');
    expect(workshop.calls.map(({ did }) => did)).to.deep.equal(['created', 'observed']);
    const starts = await readAll(store, 'toyRun-t1');
    expect(starts.map(({ type }) => type)).to.deep.equal(['EffectStarted', 'EffectStarted']);
    const [, arrived, ...more] = await readAll(store, 'toy-t1');
    expect(more).to.deep.equal([]);
    expect(arrived?.metadata['causationId']).to.equal(starts[1]?.id);
  });

  it('between a command and the fold of what it left: that is found in the subject, and nothing is repeated', async () => {
    const { store, workshop } = await crashed('after-command-before-record');
    expect(workshop.calls.map(({ did }) => did)).to.deep.equal(['created']);
    const starts = await readAll(store, 'toyRun-t1');
    expect(starts.map(({ type }) => type)).to.deep.equal(['EffectStarted']);
    const [, arrived, ...more] = await readAll(store, 'toy-t1');
    expect(more).to.deep.equal([]);
    expect(arrived?.metadata).to.include({ causationId: starts[0]?.id, instance: 'first' });
  });

  it('looks before it repeats when the answer was lost', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'loses-answers');
    running.push(startToyRunner({ store, workshop, instance: 'a' }));
    await orderToy(store, { id: 't1' });
    await eventually('t1 is done', () => isDone(store, 't1'));
    expect(workshop.calls.map(({ mode, did }) => `${mode}: ${did}`)).to.deep.equal([
      'perform: created',
      'observe: observed',
    ]);
  });

  it('gives up an effect at its deadline and looks', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'silent');
    running.push(
      startToyRunner({ store, workshop, instance: 'a', more: { settings: { effectDeadlineMs: 30 } } }),
    );
    await orderToy(store, { id: 't1' });
    await eventually('first call', () => workshop.calls.length === 1);
    workshop.mood('one', 'well');
    await eventually('t1 is done', () => isDone(store, 't1'));
    expect(workshop.calls.map(({ mode, did }) => `${mode}: ${did}`)).to.deep.equal([
      'perform: nothing',
      'observe: created',
    ]);
  });
});
