import { expect } from 'chai';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import {
  appendToy,
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop, type Workshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';
import { indexStage } from './index-stage.ts';

const TOYS = ['t1', 't2', 't3'];
const FAILED: EffectOutcome = { outcome: 'failed', reason: 'Unavailable', message: 'the shop is closed' };

describe('timed reads that show nothing new', () => {
  const { running, dataFile, live } = indexStage();

  /** Toys of one shop that wait for nothing but looks, each looked at by itself once. */
  const stage = async (): Promise<{
    store: ReturnType<typeof toyStore>;
    workshop: Workshop;
    runner: ToyRunner;
  }> => {
    const store = toyStore();
    const workshop = createWorkshop();
    const runner = startToyRunner({ store, workshop, instance: 'a', more: { dataFile: dataFile() } });
    running.push(runner);
    await live(runner);
    for (const id of TOYS) await orderToy(store, { id, parts: [], lookEveryMs: 30, lookTogether: true });
    return { store, workshop, runner };
  };
  const together = (workshop: Workshop, toys = TOYS) =>
    eventually('all are compared at once', () => workshop.compared.at(-1)?.length === toys.length);
  const rounds = (workshop: Workshop, more: number) => {
    const before = workshop.compared.length;
    return eventually('rounds go on', () => workshop.compared.length >= before + more);
  };
  const looks = (workshop: Workshop): number[] => TOYS.map((toy) => workshop.looks(toy));
  const seen = async (store: ReturnType<typeof toyStore>, toy: string): Promise<unknown[]> =>
    (await readAll(store, `toy-${toy}`))
      .filter(({ type }) => type === 'ToySeen')
      .map(({ data }) => data['colour']);

  it('given looks that show what they showed, then one call compares all of a lane, and none is looked at by itself', async () => {
    const { workshop } = await stage();
    await together(workshop);
    const before = looks(workshop);
    await rounds(workshop, 3);
    expect(looks(workshop)).to.deep.equal(before);
    expect(workshop.compared.at(-1)).to.have.members(TOYS);
  });

  it('given one that shows something else, then it alone is looked at by itself, and its news are recorded', async () => {
    const { store, workshop } = await stage();
    await together(workshop);
    const [, second, third] = looks(workshop);
    workshop.colour('t1', 'red');
    await eventually('recorded', async () => (await seen(store, 't1')).includes('red'));
    await together(workshop);
    expect(looks(workshop).slice(1)).to.deep.equal([second, third]);
  });

  it('given a comparison that fails, then each is looked at by itself at once, and joins again', async () => {
    const { workshop } = await stage();
    await together(workshop);
    const before = looks(workshop);
    workshop.comparing(FAILED);
    await eventually('each is looked at', () =>
      looks(workshop).every((count, i) => count > (before[i] ?? 0)),
    );
    workshop.comparing(undefined);
    await together(workshop);
    const after = looks(workshop);
    await rounds(workshop, 2);
    expect(looks(workshop)).to.deep.equal(after);
  });

  it('given a far side that cannot compare, then it is asked once, and looks go on one by one', async () => {
    const { workshop } = await stage();
    workshop.comparing({
      outcome: 'refused',
      reason: 'OneByOne',
      message: 'this shop shows one toy at a time',
    });
    await eventually('looks go on', () => looks(workshop).every((count) => count > 5));
    expect(workshop.compared).to.have.length.below(2);
  });

  it('given a run that was folded further, then its next look is a whole one', async () => {
    const { store, workshop } = await stage();
    await together(workshop);
    const [before = 0] = looks(workshop);
    await appendToy(store, 't1', 'ToyPainted', { colour: 'blue' });
    await eventually('a look by itself', () => workshop.looks('t1') > before);
    await together(workshop);
  });

  it('given a restart, then the first look at each is a whole one, and soon', async () => {
    const { store, workshop, runner } = await stage();
    await together(workshop);
    await runner.stop();
    const before = looks(workshop);
    const next = startToyRunner({ store, workshop, instance: 'b', more: { dataFile: dataFile() } });
    running.push(next);
    await live(next);
    await eventually(
      'looked at',
      () => looks(workshop).every((count, i) => count > (before[i] ?? 0)),
      15_000,
    );
  }).timeout(20_000);
});
