import { expect } from 'chai';
import type { AnyWorkflow, LaneStatus } from '../../../src/app/process-runner/types.ts';
import {
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
  toyWorkflow,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger } from '../../support/loggers.ts';

describe('process runner lanes', () => {
  const running: ToyRunner[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });

  it('finishes 100 orders over three shops but those of the dead one, within the lanes’ bounds', async () => {
    const store = toyStore();
    const workshop = createWorkshop({ workMs: 1 });
    workshop.mood('dead', 'silent');
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        settings: { laneConcurrency: 4, effectDeadlineMs: 200, breakerHalfOpenMs: 60_000, stopGraceMs: 0 },
      },
    });
    running.push(runner);
    const shops = ['dead', 'left', 'right'];
    for (let i = 0; i < 100; i += 1) await orderToy(store, { id: `t${i}`, shop: shops[i % 3] ?? '' });
    for (let i = 0; i < 100; i += 1) {
      if (i % 3 !== 0) await eventually(`t${i} is done`, () => isDone(store, `t${i}`));
    }
    expect(workshop.objects.size).to.equal(66);
    for (const shop of shops) expect(workshop.busiest(shop), shop).to.be.at.most(4);
    await eventually('the dead lane is open', () => runner.laneBlocked('shop:dead'), 10_000);
    expect(runner.laneBlocked('shop:left')).to.equal(false);
  });

  it('parks a lane without an event per order, and lets it go on after a probe', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    const seen: LaneStatus['breaker'][] = [];
    const logger = recordingLogger();
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        settings: { breakerFailures: 3, breakerHalfOpenMs: 1_000, laneConcurrency: 2 },
        hooks: { laneChanged: (lane) => void seen.push(lane.breaker) },
        logger,
      },
    });
    running.push(runner);
    for (let i = 0; i < 20; i += 1) await orderToy(store, { id: `t${i}` });
    await eventually('open', () => seen.includes('open'));
    const told = logger.lines.find(({ fields }) => 'lane' in fields && 'reason' in fields);
    expect(told).to.deep.include({ level: 'warn' });
    expect(told?.fields).to.include({ lane: 'shop:one', breaker: 'open', reason: 'Unavailable' });
    let starts = 0;
    for (let i = 0; i < 20; i += 1) {
      starts += (await readAll(store, `toyRun-t${i}`)).filter(({ type }) => type === 'EffectStarted').length;
    }
    expect(starts).to.be.at.most(3 + 2);
    expect(runner.status().lanes[0]).to.include({
      lane: 'shop:one',
      breaker: 'open',
      lastReason: 'Unavailable',
    });
    workshop.mood('one', 'well');
    for (let i = 0; i < 20; i += 1) await eventually(`t${i} is done`, () => isDone(store, `t${i}`));
    expect(seen.slice(-2)).to.deep.equal(['half-open', 'closed']);
  });

  it('is paused and resumed by an operator', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const runner = startToyRunner({ store, workshop, instance: 'a' });
    running.push(runner);
    await eventually('live', () => runner.status().state === 'live');
    runner.pauseLane('shop:one');
    await orderToy(store, { id: 't1' });
    await eventually('parked', () => runner.status().lanes[0]?.waiting === 1);
    expect(runner.laneBlocked('shop:one')).to.equal(true);
    runner.resumeLane('shop:one');
    await eventually('t1 is done', () => isDone(store, 't1'));
  });

  it('begins with what was paused before, and lets nothing of it through until it is resumed', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    const pause = { by: 'u-1', at: '2026-11-21T12:00:00.000Z', reason: 'upgrade' };
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: { pausedLanes: async () => new Map([['shop:one', pause]]) },
    });
    running.push(runner);
    await orderToy(store, { id: 't1' });
    await orderToy(store, { id: 't2', shop: 'two' });
    await eventually('parked', () => runner.status().lanes[0]?.waiting === 1);
    await eventually('t2 is done', () => isDone(store, 't2'));
    expect(runner.status().lanes[0]).to.deep.include({ lane: 'shop:one', paused: true, pause });
    runner.resumeLane('shop:one');
    await eventually('t1 is done', () => isDone(store, 't1'));
  });

  it('wakes what rests after failures as soon as its lane works again, and leaves other lanes alone', async () => {
    const store = toyStore();
    const workshop = createWorkshop();
    for (const shop of ['one', 'other']) workshop.mood(shop, 'dead');
    const rests: typeof toyWorkflow = {
      ...toyWorkflow,
      pending: (state) => {
        const pending = toyWorkflow.pending(state);
        const rested = (time: string): string => new Date(Date.parse(time) + 30 * 60_000).toISOString();
        return {
          ...pending,
          effects: pending.effects.map((effect) =>
            effect.notBefore === undefined ? effect : { ...effect, notBefore: rested(effect.notBefore) },
          ),
        };
      },
    };
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'a',
      more: {
        workflows: [rests as unknown as AnyWorkflow],
        settings: { breakerFailures: 2, laneConcurrency: 2, breakerHalfOpenMs: 50 },
      },
    });
    running.push(runner);
    for (const id of ['t1', 't2']) await orderToy(store, { id });
    await orderToy(store, { id: 't3', shop: 'other' });
    await eventually('each was tried once', () => workshop.calls.length === 3);
    await eventually('the lane is closed off', () =>
      runner.status().lanes.some(({ lane, breaker }) => lane === 'shop:one' && breaker !== 'closed'),
    );
    for (const shop of ['one', 'other']) workshop.mood(shop, 'well');
    await orderToy(store, { id: 't4' });
    for (const id of ['t4', 't1', 't2']) await eventually(`${id} is done`, () => isDone(store, id));
    expect(await isDone(store, 't3'), 'nothing says that the other shop works').to.equal(false);
    runner.probeLane('shop:other');
    await eventually('t3 is done', () => isDone(store, 't3'));
  });
});
