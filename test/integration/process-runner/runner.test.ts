import { expect } from 'chai';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { AnyWorkflow } from '../../../src/app/process-runner/types.ts';
import {
  appendToy,
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyRunIn,
  toyStore,
  toyWorkflow,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';

describe('process runner', () => {
  const running: ToyRunner[] = [];
  const start = (...args: Parameters<typeof startToyRunner>): ToyRunner => {
    const runner = startToyRunner(...args);
    running.push(runner);
    return runner;
  };
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });

  it('drives an order to its end with one event of its own for each part: the order tells the rest', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    start({ store, workshop, instance: 'a' });
    await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
    await eventually('t1 is done', () => isDone(store, 't1'));
    const types = (await readAll(store, 'toyRun-t1')).map((event) => event.type);
    expect(types).to.deep.equal(['EffectStarted', 'EffectStarted']);
    expect((await readAll(store, 'toy-t1')).map((event) => event.type)).to.deep.equal([
      'ToyOrdered',
      'ToyPartArrived',
      'ToyPartArrived',
    ]);
    expect([...workshop.objects.keys()]).to.deep.equal(['t1-body', 't1-wheel']);
  });

  it('stops when it is told to at any moment of its start', async () => {
    const lateLease: Ownership = {
      // The stop comes while the lease is being taken: it is over when it is there.
      hold: async (signal, whileOwner) => {
        await eventually('told to stop', () => signal.aborted, 60_000);
        await whileOwner({ epoch: 1, signal });
      },
    };
    const runner = startToyRunner({
      store: toyStore(),
      workshop: createWorkshop(),
      instance: 'a',
      more: { ownership: lateLease },
    });
    await runner.stop();
    expect(runner.status().state).to.equal('stopped');
  });

  it('stops although the lease comes only after it was told to', async () => {
    const store = toyStore();
    const runner = startToyRunner({
      store,
      workshop: createWorkshop(),
      instance: 'a',
      more: {
        ownership: {
          hold: async (signal, whileOwner) => {
            await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
            await whileOwner({ epoch: 1, signal });
          },
        },
      },
    });
    let ended = false;
    void runner.stop().then(() => {
      ended = true;
    });
    await eventually('it has stopped', () => ended);
  });

  it('writes metadata that leads back to the order', async () => {
    const store = toyStore();
    start({ store, workshop: createWorkshop(), instance: 'a' });
    await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
    await eventually('t1 is done', () => isDone(store, 't1'));
    const [order, arrived] = await readAll(store, 'toy-t1');
    const run = await readAll(store, 'toyRun-t1');
    const orderer = (order?.metadata['actor'] as { subjectId?: string } | undefined)?.subjectId;
    expect(orderer).to.be.a('string').and.not.to.equal('system');
    expect(arrived?.metadata['actor']).to.include({ subjectId: 'system', onBehalfOf: orderer });
    expect(run).to.have.length(2);
    for (const [part, event] of run.entries()) {
      expect(event.metadata).to.include({
        tenant: 'tenant-of-t1',
        correlationId: 'correlation-of-t1',
        instance: 'a',
        ticket: 'ticket-of-t1',
        traceparent: 'trace-of-t1',
      });
      expect(event.metadata['actor']).to.deep.equal({
        subjectId: 'system',
        roles: [],
        authMethod: 'internal',
        onBehalfOf: orderer,
        via: 'workflow:toyRun',
      });
      expect(event.metadata['inputs']).to.deep.equal({ 'toy-t1': part });
    }
    expect(run[0]?.metadata['causationId']).to.equal(order?.id);
    expect(arrived?.metadata).to.include({
      correlationId: 'correlation-of-t1',
      tenant: 'tenant-of-t1',
      ticket: 'ticket-of-t1',
      traceparent: 'trace-of-t1',
    });
    // Once it knows its hub, it says so.
    expect(run[0]?.metadata).not.to.have.property('hub');
    expect(run.at(-1)?.metadata).to.include({ hub: 'hub of one' });
    expect(arrived?.metadata, 'tenants may read it').not.to.have.property('hub');
    expect(arrived?.metadata['causationId']).to.equal(run[0]?.id);
    expect(run[1]?.metadata['causationId']).to.equal(arrived?.id);
  });

  it('takes in what was ordered while nothing ran', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    for (let i = 0; i < 30; i += 1) await orderToy(store, { id: `t${i}` });
    start({ store, workshop, instance: 'a' });
    for (let i = 0; i < 30; i += 1) await eventually(`t${i} is done`, () => isDone(store, `t${i}`));
    expect(workshop.objects.size).to.equal(30);
    expect(workshop.calls.every((call) => call.did === 'created')).to.equal(true);
  });

  it('parks the run that a bug stops, keeps the others going, and tries it again on request', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const runner = start({ store, workshop, instance: 'a' });
    await orderToy(store, { id: 'bad' });
    await appendToy(store, 'bad', 'ToyPainted', { colour: 'poison' });
    await eventually('parked', () => runner.status().parkedRuns.length === 1);
    expect(runner.status().parkedRuns[0]).to.deep.equal({
      run: 'toyRun-bad',
      error: 'this colour is poison',
    });
    await orderToy(store, { id: 'good', shop: 'two' });
    await eventually('good is done', () => isDone(store, 'good'));
    expect(await runner.retryRun('toyRun', 'bad')).to.equal(true);
    await eventually('parked again', () => runner.status().parkedRuns.length === 1);
    expect(await runner.retryRun('toyRun', 'never-heard-of')).to.equal(false);
    await eventually('parked', () => runner.parkedFor('toyRun', 'bad') === 'this colour is poison');
    expect(runner.parkedFor('toyRun', 'good')).to.equal(undefined);
  });

  it('takes no observation of a parked run, loses none after it goes on, and none of a closed one', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    let broken = true;
    const workflow: typeof toyWorkflow = {
      ...toyWorkflow,
      decide: (state, input) => {
        if (broken && state.colours.length > 0) throw new Error('a bug');
        return toyWorkflow.decide(state, input);
      },
    };
    const runner = start({
      store,
      workshop,
      instance: 'a',
      more: { workflows: [workflow as unknown as AnyWorkflow] },
    });
    await orderToy(store, { id: 'bad' });
    await appendToy(store, 'bad', 'ToyPainted', { colour: 'blue' });
    await eventually('parked', () => runner.status().parkedRuns.length === 1);
    expect(runner.observe('toyRun', 'bad', { colour: 'red' })).to.equal(false);
    broken = false;
    expect(await runner.retryRun('toyRun', 'bad')).to.equal(true);
    await eventually('goes on', () => runner.status().parkedRuns.length === 0);
    expect(runner.observe('toyRun', 'bad', { colour: 'green' })).to.equal(true);
    await eventually('observed', async () => (await toyRunIn(store, 'bad')).toy.seen.includes('green'));
    await orderToy(store, { id: 'good', shop: 'two' });
    await eventually('good is done', () => isDone(store, 'good'));
    expect(runner.observe('toyRun', 'good', { colour: 'red' })).to.equal(false);
  });
});
