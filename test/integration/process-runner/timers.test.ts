import { expect } from 'chai';
import {
  isDone,
  orderToy,
  appendToy,
  readAll,
  settableClock,
  startToyRunner,
  toyRunIn,
  toyStore,
  type ToyRunner,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop, type Workshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';

const HOUR = 3_600_000;

describe('process runner timers', () => {
  const running: ToyRunner[] = [];
  const start = (...args: Parameters<typeof startToyRunner>): ToyRunner => {
    const runner = startToyRunner(...args);
    running.push(runner);
    return runner;
  };
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
  });
  const closedShop = (): Workshop => {
    const workshop = createWorkshop();
    workshop.mood('one', 'dead');
    return workshop;
  };
  const settings = { clockCheckMs: 20, stopGraceMs: 100 };
  const fired = async (store: ReturnType<typeof toyStore>, id: string): Promise<boolean> =>
    (await readAll(store, `toyRun-${id}`)).some((event) => event.type === 'TimerFired');

  it('fires when it is due', async () => {
    const store = toyStore();
    start({ store, workshop: closedShop(), instance: 'a' });
    await orderToy(store, { id: 't1', patienceMs: 50 });
    await eventually('fired', () => fired(store, 't1'));
    const run = await readAll(store, 'toyRun-t1');
    const at = run.find((event) => event.type === 'TimerFired')?.data['at'] as string;
    expect(Date.parse(at)).to.be.at.least(Date.parse((await toyRunIn(store, 't1')).deadline ?? ''));
  });

  it('fires after a restart when it fell due meanwhile', async () => {
    const store = toyStore();
    const clock = settableClock();
    const first = startToyRunner({ store, workshop: closedShop(), instance: 'a', more: { clock, settings } });
    await orderToy(store, { id: 't1', patienceMs: HOUR });
    await eventually('scheduled', () => first.status().openRuns === 1);
    await first.stop();
    clock.jump(2 * HOUR);
    start({ store, workshop: closedShop(), instance: 'b', more: { clock, settings } });
    await eventually('fired', () => fired(store, 't1'));
  });

  for (const jump of [HOUR, -HOUR]) {
    it(`is neither early nor late when the wall clock jumps by ${jump / HOUR} h; the jump is recorded`, async () => {
      const store = toyStore();
      const clock = settableClock();
      const diverged: number[] = [];
      const runner = start({
        store,
        workshop: closedShop(),
        instance: 'a',
        more: { clock, settings, hooks: { clockDiverged: (ms) => void diverged.push(ms) } },
      });
      await orderToy(store, { id: 'long', patienceMs: HOUR / 2 });
      await orderToy(store, { id: 'short', patienceMs: 400 });
      await eventually('scheduled', () => runner.status().openRuns === 2);
      clock.jump(jump);
      await eventually('recorded', async () => (await readAll(store, 'sys-clock')).length === 1);
      await eventually('the short one fired', () => fired(store, 'short'));
      expect(await fired(store, 'long')).to.equal(false);
      const [record] = await readAll(store, 'sys-clock');
      expect(record?.type).to.equal('ClockDiverged');
      expect(record?.data['deltaMs'] as number).to.be.closeTo(jump, 100);
      expect(diverged).to.have.length(1);
      expect(runner.status().clockDivergences).to.equal(1);
      await orderToy(store, { id: 'after', patienceMs: 30, at: clock.now() });
      await eventually('one scheduled after the jump fired', () => fired(store, 'after'));
      expect(await fired(store, 'long')).to.equal(false);
    });
  }

  it('is on time when it was set after a jump, while the run is busy with something older', async () => {
    const store = toyStore();
    const clock = settableClock();
    const workshop = createWorkshop();
    workshop.mood('one', 'silent');
    const more = { clock, settings: { ...settings, effectDeadlineMs: 60_000 } };
    start({ store, workshop, instance: 'a', more });
    await orderToy(store, { id: 't1' });
    await eventually('called', () => workshop.calls.length > 0);
    clock.jump(HOUR);
    await appendToy(store, 't1', 'ToyPatienceSet', { at: clock.now(), patienceMs: 30 });
    await eventually('fired', () => fired(store, 't1'));
  });

  it('does not delay a retry when the wall clock jumps back', async () => {
    const store = toyStore();
    const clock = settableClock();
    const workshop = closedShop();
    start({
      store,
      workshop,
      instance: 'a',
      more: { clock, settings: { ...settings, breakerFailures: 1_000 } },
    });
    await orderToy(store, { id: 't1' });
    await eventually('first attempt', () => workshop.calls.length > 0);
    clock.jump(-HOUR);
    const before = workshop.calls.length;
    await eventually('further attempts', () => workshop.calls.length > before + 1);
  });

  it('counts as due for every run that keeps it when a wake event comes', async () => {
    const store = toyStore();
    const runner = start({ store, workshop: closedShop(), instance: 'a' });
    await orderToy(store, { id: 't1', patienceMs: HOUR });
    await orderToy(store, { id: 't2', patienceMs: HOUR });
    await eventually('taken in', () => runner.status().openRuns === 2);
    await appendToy(store, 'shop', 'ToyShopOpened', { shop: 'one' });
    await eventually('t1 fired', () => isDone(store, 't1'));
    await eventually('t2 fired', () => isDone(store, 't2'));
  });
});
