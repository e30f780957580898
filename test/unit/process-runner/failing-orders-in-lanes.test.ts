import { expect } from 'chai';
import fc from 'fast-check';
import { createLanes, type Slot } from '../../../src/app/process-runner/lanes.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { manualTime } from '../../support/manual-time.ts';
import { checkAsync } from '../../support/property.ts';

const done: EffectOutcome = { outcome: 'done', result: {} };
const failed = (reason: string, message = `${reason}!`): EffectOutcome => ({
  outcome: 'failed',
  reason,
  message,
});
const denied = failed('Forbidden', 'clusterorders "a" is forbidden');
const away = failed('Unavailable', 'connect ECONNREFUSED');
const LANE = 'hub:north';
const MINUTE = 60_000;

describe('orders that fail in a lane', () => {
  const settings = { laneConcurrency: 4, breakerFailures: 5, breakerHalfOpenMs: MINUTE };
  const setUp = () => {
    const time = manualTime();
    const woken: string[] = [];
    const lanes = createLanes({
      settings,
      timers: time.timers,
      nowMs: () => time.clock.monotonicMs(),
      wake: (lane, howMany) => woken.push(`${lane} ${howMany}`),
    });
    /** Orders whose effects were let through and have not ended. */
    const running: { readonly order: string; readonly slot: Slot }[] = [];
    const tried: string[] = [];
    const ask = (order: string, effect = 'apply:0', priority: 'work' | 'read' = 'work'): void =>
      lanes.enqueue(
        LANE,
        (slot) => {
          running.push({ order, slot });
          tried.push(order);
        },
        { tenant: 't1', priority, order, effect },
      );
    const end = (order: string, outcome: EffectOutcome): void => {
      const at = running.findIndex((each) => each.order === order);
      if (at === -1) throw new Error(`nothing of ${order} runs`);
      running.splice(at, 1)[0]?.slot.release(outcome);
    };
    const call = (order: string, outcome: EffectOutcome, effect?: string): void => {
      ask(order, effect);
      end(order, outcome);
    };
    const status = () => {
      const [lane] = lanes.status();
      if (lane === undefined) throw new Error('the lane is idle');
      return lane;
    };
    return { time, lanes, running, tried, ask, end, call, status, woken };
  };

  it('two orders that are denied never close the lane of ten others, however often and in whatever order they call', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.array(fc.record({ order: fc.oneof(fc.nat(1), fc.nat(11)), afterMs: fc.nat(300_000) }), {
          minLength: 20,
          maxLength: 60,
        }),
        async (calls) => {
          const { lanes, call, time } = setUp();
          for (const { order, afterMs } of calls) {
            await time.pass(afterMs);
            call(`o${order}`, order < 2 ? denied : done);
            expect(lanes.blocked(LANE)).to.equal(false);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('an order with 5xx of its own is set aside while others pass, and named with its last error', async () => {
    const { time, call, status, lanes } = setUp();
    call('well', done);
    for (let i = 0; i < 50; i += 1) {
      call('bad', failed('Unavailable', `500 of a webhook, ${i}`));
      if (i % 10 === 9) call('well', done);
      await time.pass(10_000);
      expect(lanes.blocked(LANE)).to.equal(false);
    }
    expect(status().failing).to.deep.equal([
      { order: 'bad', failures: 50, reason: 'Unavailable', message: '500 of a webhook, 49', setAside: true },
    ]);
  });

  it('a hub that is gone closes the lane, with one order or with many', () => {
    for (const orders of [1, 2, 20]) {
      const { call, lanes } = setUp();
      for (let i = 0; i < 5; i += 1) call(`o${i % orders}`, away);
      expect(lanes.blocked(LANE), `${orders} orders`).to.equal(true);
    }
  });

  for (const orders of [1, 2])
    it(`a quiet hub on which nothing but ${orders} of its orders is tried, and fails, takes a new one`, async () => {
      const { time, call, ask, end, lanes } = setUp();
      for (let i = 0; i < 5; i += 1) call(`o${i % orders}`, away);
      await time.pass(2_000);
      expect(lanes.blocked(LANE)).to.equal(false);
      ask('new');
      end('new', done);
      expect(lanes.status()[0]?.breaker).to.equal('closed');
    });

  it('a hub that takes new orders takes not the one that fails there, which asks for a place again', async () => {
    const { time, call, ask, end, lanes } = setUp();
    for (let i = 0; i < 5; i += 1) call('o0', away);
    await time.pass(2_000);
    lanes.keep('o0', []);
    expect(lanes.blocked(LANE, 'o0')).to.equal(true);
    expect(lanes.blocked(LANE, 'new')).to.equal(false);
    ask('new');
    end('new', done);
    expect(lanes.blocked(LANE, 'o0')).to.equal(false);
  });

  it('a hub that fails for every order that comes takes no further one', async () => {
    const { time, call, ask, end, lanes } = setUp();
    for (let i = 0; i < 5; i += 1) call('o0', away);
    for (const order of ['o1', 'o2']) {
      await time.pass(10_000);
      expect(lanes.blocked(LANE), `before ${order}`).to.equal(false);
      ask(order);
      end(order, away);
    }
    await time.pass(30_000);
    expect(lanes.blocked(LANE)).to.equal(true);
  });

  it('a hub that denies everything closes the lane once several orders met it', () => {
    const { call, lanes } = setUp();
    for (let i = 0; i < 40; i += 1) call(`o${i % 2}`, denied);
    expect(lanes.blocked(LANE)).to.equal(false);
    call('o3', denied);
    expect(lanes.blocked(LANE)).to.equal(true);
  });

  it('orders take turns at trying a closed lane', async () => {
    const { time, call, ask, end, tried, running, lanes } = setUp();
    for (let i = 0; i < 5; i += 1) call(`o${i}`, away);
    for (let i = 0; i < 5; i += 1) ask(`o${i}`);
    expect(lanes.blocked(LANE)).to.equal(true);
    tried.length = 0;
    for (let turn = 0; turn < 10; turn += 1) {
      await time.pass(MINUTE);
      expect(running, 'one at a time').to.have.lengthOf(1);
      const [{ order } = { order: '' }] = running;
      end(order, away);
      ask(order);
    }
    expect(tried).to.deep.equal(['o0', 'o1', 'o2', 'o3', 'o4', 'o0', 'o1', 'o2', 'o3', 'o4']);
  });

  it('an order that no longer wants what failed is named no more', () => {
    const { call, lanes, status } = setUp();
    call('o1', denied);
    call('o2', denied);
    lanes.keep('o1', [{ lane: LANE, operation: 'apply:0' }]);
    lanes.keep('o2', [
      { lane: LANE, operation: 'delete:0' },
      { lane: 'hub:south', operation: 'apply:0' },
    ]);
    expect(status().failing.map(({ order }) => order)).to.deep.equal(['o1']);
    expect(status()).to.include({ failingOrders: 1 });
    lanes.keep('o1', []);
    expect(lanes.status()).to.deep.equal([]);
  });

  it('a new order tries a closed lane nearly at once, and opens it for all', async () => {
    const { time, call, ask, end, running, lanes, woken } = setUp();
    for (let i = 0; i < 5; i += 1) call(`o${i % 3}`, denied);
    ask('o0');
    expect(lanes.blocked(LANE)).to.equal(true);
    await time.pass(30_000);
    expect(running).to.deep.equal([]);
    expect(lanes.blocked(LANE), 'new orders may be placed').to.equal(false);
    ask('new');
    await time.pass(1_000);
    expect(running.map(({ order }) => order)).to.deep.equal(['new']);
    end('new', done);
    expect(lanes.status()[0]?.breaker).to.equal('closed');
    expect(
      running.map(({ order }) => order),
      'what waited goes at once',
    ).to.deep.equal(['o0']);
    expect(woken, 'and what rested').to.deep.equal([`${LANE} all`]);
    end('o0', denied);
    for (let i = 0; i < 30; i += 1) call(`o${i % 3}`, denied);
    expect(lanes.blocked(LANE), 'those that failed then count no more').to.equal(false);
  });

  it('new orders do not hammer a hub that is gone: each that fails makes the next one wait twice as long', async () => {
    const { time, call, ask, end, running, lanes } = setUp();
    for (let i = 0; i < 5; i += 1) call(`o${i}`, away);
    let tries = 0;
    for (let second = 0; second < 600; second += 1) {
      ask(`new${second}`);
      await time.pass(1_000);
      for (const { order } of running.slice()) {
        tries += 1;
        end(order, away);
      }
    }
    expect(lanes.blocked(LANE)).to.equal(true);
    expect(tries).to.be.within(10, 18);
  });

  it('with refused credentials no new order tries: the next one would fare the same', async () => {
    const { time, call, ask, running } = setUp();
    call('o1', failed('Unauthorized'));
    ask('new');
    await time.pass(MINUTE - 1);
    expect(running).to.deep.equal([]);
    await time.pass(1);
    expect(running).to.have.lengthOf(1);
  });

  it('says what closed it as long as it is closed, whatever its tries meet', async () => {
    const { time, call, ask, end, status, running } = setUp();
    for (let i = 0; i < 5; i += 1) call('o1', away);
    expect(status().openedBy).to.deep.equal({
      order: 'o1',
      reason: 'Unavailable',
      message: 'connect ECONNREFUSED',
    });
    ask('o2');
    await time.pass(1_000);
    expect(running).to.have.lengthOf(1);
    end('o2', denied);
    expect(status().openedBy).to.include({ order: 'o1' });
    expect(status()).to.include({ failingOrders: 2, lastReason: 'Forbidden' });
    ask('o2');
    await time.pass(MINUTE);
    end('o2', done);
    expect(status()).to.not.have.property('openedBy');
  });

  it('a hub that is well again wakes what rests, and one alone where nothing waits to try a closed lane', () => {
    const { call, lanes, woken } = setUp();
    lanes.probe(LANE);
    for (let i = 0; i < 5; i += 1) call('o1', away);
    lanes.probe(LANE);
    lanes.pause(LANE);
    lanes.probe(LANE);
    expect(woken).to.deep.equal([`${LANE} all`, `${LANE} one`]);
    lanes.resume(LANE);
    expect(woken.at(-1)).to.equal(`${LANE} all`);
  });

  it('forgets what failed and was not tried again, since its order was deleted or went elsewhere', async () => {
    const { time, call, lanes } = setUp();
    call('gone', denied);
    await time.pass(44 * MINUTE);
    expect(lanes.status()[0]).to.include({ failingOrders: 1 });
    await time.pass(2 * MINUTE);
    expect(lanes.status()).to.deep.equal([]);
  });

  it('names five of many orders that fail, and says how many there are', () => {
    const { call, status } = setUp();
    for (let i = 0; i < 600; i += 1) {
      call(`o${i}`, failed('Forbidden', 'x'.repeat(5_000)));
      call('well', done);
    }
    expect(status().failing.map(({ order }) => order)).to.deep.equal([
      'o599',
      'o598',
      'o597',
      'o596',
      'o595',
    ]);
    expect(status().failing[0]?.message).to.have.lengthOf(300);
    expect(status().failingOrders).to.equal(500);
  });
});
