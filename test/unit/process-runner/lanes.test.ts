import { expect } from 'chai';
import { createLanes, type Lanes, type Slot } from '../../../src/app/process-runner/lanes.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { manualTime } from '../../support/manual-time.ts';

const done: EffectOutcome = { outcome: 'done', result: {} };
const failed = (reason: string): EffectOutcome => ({ outcome: 'failed', reason, message: '' });
const refused: EffectOutcome = { outcome: 'refused', reason: 'Invalid', message: '' };
const unknown: EffectOutcome = { outcome: 'unknown', reason: 'LostAnswer', message: '' };

describe('lanes', () => {
  const settings = { laneConcurrency: 2, breakerFailures: 3, breakerHalfOpenMs: 60_000 };
  const setUp = () => {
    const time = manualTime();
    const lanes = createLanes({ settings, timers: time.timers });
    const granted: Slot[] = [];
    const ask = (count: number, lane = 'a'): void => {
      for (let i = 0; i < count; i += 1) lanes.enqueue(lane, (slot) => granted.push(slot));
    };
    /** Runs one effect after the other with this end. */
    const end = (outcome: EffectOutcome | 'unused', count = 1): void => {
      for (let i = 0; i < count; i += 1) {
        if (granted.length === 0) ask(1);
        granted.shift()?.release(outcome);
      }
    };
    return { time, lanes, granted, ask, end };
  };
  const breaker = (lanes: Lanes): string | undefined => lanes.status()[0]?.breaker;

  it('grants as many slots as may be in flight, in order of arrival', () => {
    const { lanes, granted, ask } = setUp();
    ask(5);
    expect(granted).to.have.length(2);
    expect(lanes.status()[0]).to.include({ inFlight: 2, waiting: 3 });
    granted.shift()?.release(done);
    expect(granted).to.have.length(2);
  });

  it('keeps lanes apart', () => {
    const { granted, ask } = setUp();
    ask(5, 'a');
    ask(1, 'b');
    expect(granted.map((slot) => slot.lane)).to.deep.equal(['a', 'a', 'b']);
  });

  it('counts a slot once, however often it is released', () => {
    const { granted, ask, lanes } = setUp();
    ask(4);
    const [slot] = granted;
    slot?.release(done);
    slot?.release(done);
    expect(granted).to.have.length(3);
    expect(lanes.status()[0]?.inFlight).to.equal(2);
  });

  it('forgets a lane that is idle and healthy', () => {
    const { lanes, end } = setUp();
    end(done, 3);
    expect(lanes.status()).to.deep.equal([]);
  });

  for (const bad of [failed('Unavailable'), unknown]) {
    it(`opens after consecutive failures (${bad.outcome}), not before`, () => {
      const { lanes, end } = setUp();
      end(bad, 2);
      end(done);
      end(bad, 2);
      expect(lanes.blocked('a')).to.equal(false);
      end(bad);
      expect(lanes.blocked('a')).to.equal(true);
    });
  }

  for (const good of [
    refused,
    failed('Conflict'),
    failed('Throttled'),
    failed('AutomationThrottled'),
    failed('NotFound'),
  ]) {
    it(`stays closed when the far side answers (${good.outcome === 'failed' ? good.reason : 'refused'})`, () => {
      const { lanes, end } = setUp();
      end(good, 10);
      expect(lanes.blocked('a')).to.equal(false);
    });
  }

  for (const reason of ['Unauthorized', 'AutomationUnauthorized', 'DifferentCluster']) {
    it(`opens at once when the credentials are refused (${reason})`, () => {
      const { lanes, end } = setUp();
      end(failed(reason));
      expect(lanes.blocked('a')).to.equal(true);
    });
  }

  it('counts a slot that was not used neither way', () => {
    const { lanes, end } = setUp();
    end(failed('Unavailable'), 2);
    end('unused');
    end(failed('Unavailable'));
    expect(breaker(lanes)).to.equal('open');
  });

  it('lets one through after a while: a success closes it, a failure opens it for as long again', async () => {
    const { time, lanes, granted, ask, end } = setUp();
    end(failed('Unavailable'), 3);
    ask(4);
    expect(granted).to.have.length(0);
    await time.pass(59_999);
    expect(granted).to.have.length(0);
    await time.pass(1);
    expect(granted).to.have.length(1);
    expect(breaker(lanes)).to.equal('half-open');
    end(failed('Unavailable'));
    expect(breaker(lanes)).to.equal('open');
    await time.pass(60_000);
    expect(granted).to.have.length(1);
    end(done);
    expect(breaker(lanes)).to.equal('closed');
    expect(granted).to.have.length(2);
  });

  it('parks a paused lane until it is resumed, which also closes its breaker', () => {
    const { lanes, granted, ask, end } = setUp();
    end(failed('Unavailable'), 3);
    lanes.pause('a');
    ask(1);
    expect(granted).to.have.length(0);
    lanes.resume('a');
    expect(granted).to.have.length(1);
    expect(lanes.blocked('a')).to.equal(false);
  });

  it('grants nothing once closed', () => {
    const { lanes, granted, ask } = setUp();
    ask(3);
    lanes.close();
    granted.shift()?.release(done);
    expect(granted).to.have.length(1);
  });

  it('tries one at once when something says that the far side works again', () => {
    const { lanes, granted, ask, end } = setUp();
    end(failed('Unauthorized'));
    ask(3);
    expect(granted).to.have.length(0);
    lanes.probe('a');
    expect(granted).to.have.length(1);
    expect(breaker(lanes)).to.equal('half-open');
    end(done);
    expect(breaker(lanes)).to.equal('closed');
    lanes.pause('a');
    lanes.probe('a');
    expect(lanes.blocked('a'), 'a pause is an operator’s').to.equal(true);
    lanes.probe('nobody knows it');
  });

  it('counts the calls of a lane, also of one that is idle by now', () => {
    const { lanes, end } = setUp();
    end(done, 3);
    end(failed('Unavailable'));
    end(refused);
    end('unused');
    expect(lanes.status()).to.deep.equal([]);
    expect(lanes.calls('a')).to.deep.equal({ attempts: 5, failures: 1 });
  });

  describe('that are paced', () => {
    const pacedSetUp = (pacing = { callsPerSecond: 10, burst: 2 }) => {
      const time = manualTime();
      const pace = { now: pacing as typeof pacing | undefined };
      const lanes = createLanes({
        settings: { ...settings, laneConcurrency: 100 },
        timers: time.timers,
        nowMs: () => time.clock.monotonicMs(),
        pacingOf: (lane) => (lane === 'a' ? pace.now : undefined),
      });
      const granted: { readonly lane: string; readonly at: number; readonly slot: Slot }[] = [];
      const ask = (count: number, lane = 'a'): void => {
        for (let i = 0; i < count; i += 1)
          lanes.enqueue(lane, (slot) => granted.push({ lane, at: time.clock.monotonicMs(), slot }));
      };
      return { time, lanes, granted, ask, pace };
    };

    it('a burst goes at once, the rest at its pace; other lanes are not held back', async () => {
      const { time, granted, ask } = pacedSetUp();
      ask(5);
      ask(5, 'b');
      expect(granted.map(({ lane }) => lane)).to.deep.equal(['a', 'a', 'b', 'b', 'b', 'b', 'b']);
      await time.pass(1_000);
      expect(granted.filter(({ lane }) => lane === 'a').map(({ at }) => at)).to.deep.equal([
        0, 0, 100, 200, 300,
      ]);
    });
    it('an idle lane does not forget that it has just burst', async () => {
      const { time, lanes, granted, ask } = pacedSetUp();
      ask(2);
      for (const { slot } of granted) slot.release(done);
      expect(lanes.status()).to.deep.equal([]);
      ask(1);
      expect(granted).to.have.length(2);
      await time.pass(100);
      expect(granted).to.have.length(3);
    });
    it('a slot that was not used costs nothing, and another pace holds from the next one on', async () => {
      const { time, granted, ask, pace } = pacedSetUp();
      ask(2);
      granted[0]?.slot.release('unused');
      ask(1);
      expect(granted).to.have.length(3);
      pace.now = { callsPerSecond: 1, burst: 1 };
      ask(2);
      await time.pass(1_000);
      expect(granted).to.have.length(4);
      pace.now = undefined;
      ask(1);
      expect(granted).to.have.length(6);
    });
    it('a lane that was forgotten while it waited for its pace takes no other one along', async () => {
      const { time, lanes, granted, ask } = pacedSetUp({ callsPerSecond: 1, burst: 1 });
      ask(2);
      for (let i = 0; i < 2; i += 1) granted[i]?.slot.release('unused');
      expect(lanes.status()).to.deep.equal([]);
      lanes.pause('a');
      ask(1);
      await time.pass(2_000);
      expect(lanes.blocked('a')).to.equal(true);
      lanes.resume('a');
      expect(granted).to.have.length(3);
    });
    it('what waits for a slow pace does not wait for it any more once the pace is another', async () => {
      const { time, granted, ask, pace } = pacedSetUp({ callsPerSecond: 0.1, burst: 1 });
      ask(2);
      pace.now = { callsPerSecond: 100, burst: 1 };
      ask(1);
      await time.pass(20);
      expect(granted.map(({ at }) => at)).to.deep.equal([0, 10, 20]);
    });
  });

  it('a hub that hangs for ten minutes delays no order of another hub, and its own go on afterwards', async () => {
    const time = manualTime();
    const lanes = createLanes({
      settings: { laneConcurrency: 16, breakerFailures: 5, breakerHalfOpenMs: 60_000 },
      timers: time.timers,
      nowMs: () => time.clock.monotonicMs(),
      pacingOf: () => ({ callsPerSecond: 20, burst: 40 }),
    });
    const TEN_MINUTES = 600_000;
    /** Milliseconds from the order until its call was answered, by hub. */
    const took = new Map<string, number[]>();
    const call = (hub: string, tenant: string, ordered = time.clock.monotonicMs()): void =>
      lanes.enqueue(
        `hub:${hub}`,
        (slot) => {
          const hangs = hub === 'hung' && time.clock.monotonicMs() < TEN_MINUTES;
          time.timers.after(hangs ? 30_000 : 50, () => {
            slot.release(hangs ? unknown : done);
            if (hangs) call(hub, tenant, ordered);
            else took.set(hub, [...(took.get(hub) ?? []), time.clock.monotonicMs() - ordered]);
          });
        },
        { tenant, priority: 'work', order: `${hub}-${tenant}-${ordered}`, effect: 'apply' },
      );
    for (let second = 0; second < 60; second += 1) {
      for (const hub of ['hung', 'well', 'good']) for (const tenant of ['a', 'b']) call(hub, tenant);
      await time.pass(10_000);
    }
    for (const hub of ['well', 'good']) {
      expect(took.get(hub)).to.have.length(120);
      expect(Math.max(...(took.get(hub) ?? [])), hub).to.equal(50);
    }
    expect(took.get('hung') ?? []).to.have.length(0);
    await time.pass(120_000);
    expect(took.get('hung')).to.have.length(120);
  }).timeout(20_000);
});
