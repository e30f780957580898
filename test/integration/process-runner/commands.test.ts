import { rmSync } from 'node:fs';
import { expect } from 'chai';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { derivedCommandId } from '../../../src/app/log/identifiers.ts';
import type { AnyWorkflow, CommandTarget } from '../../../src/app/process-runner/types.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { eventually } from '../../support/eventually.ts';
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
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { indexStage } from './index-stage.ts';

const typesIn = async (store: EventStore, stream: string): Promise<string[]> =>
  (await readAll(store, stream)).map(({ type }) => type);

describe('what a run tells its subject', () => {
  const { running, dataFile, live } = indexStage();
  const start: typeof startToyRunner = (options) => {
    const runner = startToyRunner(options);
    running.push(runner);
    return runner;
  };
  const closedShop = (): ReturnType<typeof createWorkshop> => {
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    return workshop;
  };
  /** The toy's own commands, as the runner gives them without a target of their own. */
  const toyOf = (store: EventStore): CommandTarget => {
    const clock = systemClock();
    const more = { clock, instance: 'toys', recordRejection: () => undefined };
    const commands = createCommandRunner({ store, codec: toyCodec(), ...more });
    return (id, command, context) => commands.execute(toyAggregate, id, command as ToyCommand, context);
  };

  it('is what the subject records; a command that it has no events for leaves the success to the run', async () => {
    const store = toyStore(false);
    const workshop = closedShop();
    start({ store, workshop, instance: 'a' });
    await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
    await appendToy(store, 't1', 'ToyPartArrived', { part: 'body' });
    workshop.mood('one', 'well');
    await eventually('t1 is done', () => isDone(store, 't1'));
    const own = (await readAll(store, 'toyRun-t1')).filter(({ type }) => type !== 'EffectStarted');
    expect(own.map(({ type, data }) => [type, data['effectId']])).to.deep.equal([
      ['EffectSucceeded', 'body'],
    ]);
    expect(await typesIn(store, 'toy-t1')).to.deep.equal(['ToyOrdered', 'ToyPartArrived', 'ToyPartArrived']);
  });

  it('counts as said when it was carried out before upon another start of the effect', async () => {
    const store = toyStore(false);
    const workshop = closedShop();
    await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
    const commandId = derivedCommandId('toyRun-t1', 'command', 'effect:body');
    await appendToy(store, 't1', 'ToyPartArrived', { part: 'body' }, { commandId, requestHash: commandId });
    workshop.mood('one', 'well');
    start({ store, workshop, instance: 'a' });
    await eventually('t1 is done', () => isDone(store, 't1'));
    const own = (await readAll(store, 'toyRun-t1')).map(({ type, data }) => [type, data['effectId']]);
    expect(own).to.deep.equal([
      ['EffectStarted', 'body'],
      ['EffectSucceeded', 'body'],
      ['EffectStarted', 'wheel'],
    ]);
  });

  it('may be refused: the run records that and what its effect did, in one append', async () => {
    const store = toyStore(false);
    start({ store, workshop: createWorkshop(), instance: 'a' });
    await orderToy(store, { id: 't1', parts: ['cursed'] });
    await eventually('t1 is done', () => isDone(store, 't1'));
    const [started, refused, succeeded] = await readAll(store, 'toyRun-t1');
    expect([started?.type, refused?.type, succeeded?.type]).to.deep.equal([
      'EffectStarted',
      'CommandRefused',
      'EffectSucceeded',
    ]);
    expect(refused?.data).to.include({ key: 'effect:cursed', code: 'CURSED' });
    expect(succeeded?.metadata['commandId']).to.equal(refused?.metadata['commandId']);
    expect(await typesIn(store, 'toy-t1')).to.deep.equal(['ToyOrdered']);
  });

  it('is offered as long as the subject has something to say to it, and no longer', async () => {
    const store = toyStore(false);
    start({ store, workshop: closedShop(), instance: 'a' });
    await orderToy(store, { id: 't1' });
    for (const times of [1, 2]) {
      await appendToy(store, 't1', 'ToyPainted', { colour: 'gold' });
      await eventually('polished', async () => (await toyRunIn(store, 't1')).toy.polished === times);
    }
    const polished = (await readAll(store, 'toy-t1')).filter(({ type }) => type === 'ToyPolished');
    expect(polished.map(({ data }) => data['times'])).to.deep.equal([1, 2]);
    expect((await toyRunIn(store, 't1')).folded.filter((mark) => mark.startsWith('s'))).to.deep.equal([
      's0',
      's1',
      's2',
      's3',
      's4',
    ]);
  });

  it('is repeated as the same command while it stays offered, and keeps the run from nothing else', async () => {
    const store = toyStore(false);
    const toy = toyOf(store);
    const workshop = closedShop();
    const ids: string[] = [];
    const slow: CommandTarget = async (id, command, context) => {
      if (command.type !== 'Polish') return toy(id, command, context);
      ids.push(context.commandId);
      if (workshop.calls.length > 0) return toy(id, command, context);
      const loaded = { state: undefined, revision: 1, version: 1 };
      return { outcome: 'accepted', loaded, events: [], replayed: false };
    };
    await orderToy(store, { id: 't1' });
    await appendToy(store, 't1', 'ToyPainted', { colour: 'gold' });
    start({ store, workshop, instance: 'a', more: { commandTargets: { toy: slow } } });
    await eventually('polished', async () => (await toyRunIn(store, 't1')).toy.polished === 1);
    expect(ids.length).to.be.greaterThan(1);
    expect(new Set(ids).size).to.equal(1);
  });

  it('nothing is appended for what a look shows when the subject knows it, in no stream', async () => {
    const store = toyStore(false);
    const workshop = createWorkshop();
    const runner = start({ store, workshop, instance: 'a' });
    await live(runner);
    await orderToy(store, { id: 't1', parts: [], lookEveryMs: 5 });
    await eventually('seen', async () => (await typesIn(store, 'toy-t1')).includes('ToySeen'));
    const end = await store.lastPosition();
    const looks = workshop.looks('one');
    await eventually('five looks', () => workshop.looks('one') >= looks + 5);
    runner.observe('toyRun', 't1', { colour: 'plain' });
    await eventually('taken', () => runner.status().queuedInputs === 0);
    expect(await store.lastPosition()).to.equal(end);
    expect(await typesIn(store, 'toyRun-t1')).to.deep.equal([]);
  });

  it('what is seen again after something else was seen is told again', async () => {
    const store = toyStore(false);
    const runner = start({ store, workshop: closedShop(), instance: 'a' });
    await orderToy(store, { id: 't1' });
    await eventually('known', () => !runner.isUnknown('toyRun', 't1') && runner.status().state === 'live');
    const seen = async (): Promise<readonly string[]> => (await toyRunIn(store, 't1')).toy.seen;
    const colours = ['red', 'blue', 'red'];
    for (const [i, colour] of colours.entries()) {
      runner.observe('toyRun', 't1', { colour });
      await eventually(`${colour} is told`, async () => (await seen()).length === i + 1);
    }
    expect(await seen()).to.deep.equal(colours);
  });

  it('is not caused by the start of an effect that is still under way', async () => {
    const store = toyStore(false);
    const workshop = createWorkshop();
    workshop.mood('one', 'silent');
    const more = { settings: { effectDeadlineMs: 60_000, stopGraceMs: 0 } };
    const runner = start({ store, workshop, instance: 'a', more });
    await orderToy(store, { id: 't1' });
    await eventually('called', () => workshop.calls.length > 0);
    expect(runner.observe('toyRun', 't1', { colour: 'red' })).to.equal(true);
    await eventually('told', async () => (await typesIn(store, 'toy-t1')).includes('ToySeen'));
    const [ordered, seen] = await readAll(store, 'toy-t1');
    expect(seen?.metadata['causationId']).to.equal(ordered?.id);
  });

  it('is done for the person who decided last, be it in the stream of the run', async () => {
    const store = toyStore(false);
    const runner = start({ store, workshop: closedShop(), instance: 'a' });
    await live(runner);
    runner.pauseLane('shop:one');
    await orderToy(store, { id: 't1' });
    for (const [type, category] of [
      ['ToyPainted', 'toy'],
      ['ToyHurried', 'toyRun'],
    ] as const) {
      const subjectId = `from ${category}`;
      await appendToy(store, 't1', type, { colour: 'x' }, { category, subjectId });
      const end = await store.lastPosition();
      await eventually('folded', () => runner.status().position === end);
      runner.observe('toyRun', 't1', { colour: category });
      await eventually('told', async () => (await toyRunIn(store, 't1')).toy.seen.includes(category));
      const last = (await readAll(store, 'toy-t1')).at(-1);
      expect(last?.metadata['actor']).to.include({ onBehalfOf: subjectId });
    }
  });

  it('is folded with what came to the subject while the command was under way', async () => {
    const store = toyStore(false);
    const toy = toyOf(store);
    const states: string[] = [];
    const noting: typeof toyWorkflow = {
      ...toyWorkflow,
      decide: (state, input) => {
        if (input.kind === 'command-result') states.push(state.folded.join());
        return toyWorkflow.decide(state, input);
      },
    };
    const slow: CommandTarget = async (id, command, context) => {
      await appendToy(store, id, 'ToyPainted', { colour: 'before' });
      const outcome = await toy(id, command, context);
      await appendToy(store, id, 'ToyPainted', { colour: 'loud after' });
      return outcome;
    };
    start({
      store,
      workshop: createWorkshop(),
      instance: 'a',
      more: { commandTargets: { toy: slow }, workflows: [noting as unknown as AnyWorkflow] },
    });
    await orderToy(store, { id: 't1', parts: ['body', 'wheel'] });
    await eventually('t1 is done', () => isDone(store, 't1'));
    // The order, the start, the first colour and the part; the second colour may be read with them.
    expect(states[0]).to.match(/^s0,r0,s1,s2(,s3)?$/);
    expect((await toyRunIn(store, 't1')).colours.slice(0, 2)).to.deep.equal(['before', 'loud after']);
  });

  it('is asked again after a start, for every run with something outstanding', async () => {
    const store = toyStore(false);
    const workshop = closedShop();
    const first = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    await orderToy(store, { id: 't1' });
    await eventually('tried', () => workshop.calls.length > 0);
    await first.stop();
    let settled = 0;
    const counting: typeof toyWorkflow = {
      ...toyWorkflow,
      decide: (state, input) => {
        if (input.kind === 'settle') settled += 1;
        return toyWorkflow.decide(state, input);
      },
    };
    const workflows = [counting as unknown as AnyWorkflow];
    start({ store, workshop, instance: 'b', more: { workflows, dataFile: dataFile() } });
    await eventually('asked', () => settled > 0);
  });

  it('goes on from a rebuilt index whose last events are the subject’s', async () => {
    const store = toyStore(false);
    const workshop = closedShop();
    const first = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    await orderToy(store, { id: 't1' });
    await eventually('tried', async () => (await toyRunIn(store, 't1')).folded.includes('r0'));
    await first.stop();
    const tries = (await readAll(store, 'toyRun-t1')).length;
    await appendToy(store, 't1', 'ToyPainted', { colour: 'loud red' });
    await appendToy(store, 't1', 'ToyPainted', { colour: 'gold' });
    rmSync(dataFile());
    start({ store, workshop, instance: 'b', more: { dataFile: dataFile() } });
    await eventually('noticed', async () => (await toyRunIn(store, 't1')).noticed.length === 1);
    await eventually('polished', async () => (await toyRunIn(store, 't1')).toy.polished === 1);
    workshop.mood('one', 'well');
    await eventually('t1 is done', () => isDone(store, 't1'));
    const starts = (await readAll(store, 'toyRun-t1')).filter(({ type }) => type === 'EffectStarted');
    expect(starts.map(({ data }) => data['attempt'])).to.deep.equal(starts.map((_, i) => i + 1));
    expect(starts.length).to.be.greaterThan(tries);
    expect(starts.at(-1)?.data['facts']).to.deep.equal({ paintedWith: ['loud red', 'gold'] });
  });
});
