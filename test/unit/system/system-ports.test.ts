import { expect } from 'chai';
import { validate, version } from 'uuid';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';

describe('ids', () => {
  it('are UUIDv7, all different, in the order in which they were made', () => {
    const ids = systemIds();
    const made = Array.from({ length: 10_000 }, () => ids.uuidv7());
    expect(made.every((id) => validate(id) && version(id) === 7)).to.equal(true);
    expect(new Set(made).size).to.equal(made.length);
    expect(made).to.deep.equal(made.toSorted());
  });

  it('go on in order when the clock goes back', () => {
    let wall = 1_800_000_000_000;
    const ids = systemIds(() => wall);
    const before = ids.uuidv7();
    wall -= 3_600_000;
    const after = ids.uuidv7();
    expect(after > before).to.equal(true);
  });
});

describe('clock', () => {
  it('shows each millisecond as it is, forward and back', () => {
    let wall = Date.parse('2026-11-21T10:00:00.000Z');
    const clock = systemClock(() => wall);
    const shown = [0, 0, 1, 1, -5000, 5000].map((step) => {
      wall += step;
      return clock.now();
    });
    expect(shown).to.deep.equal(
      ['00.000', '00.000', '00.001', '00.002', '', '00.002'].map((second, i) =>
        i === 4 ? '2026-11-21T09:59:55.002Z' : `2026-11-21T10:00:${second}Z`,
      ),
    );
  });
});

describe('timers', () => {
  it('run once, unless they were cancelled', async () => {
    const timers = systemTimers();
    const ran: string[] = [];
    const cancel = timers.after(0, () => ran.push('cancelled'));
    cancel();
    await new Promise<void>((resolve) => {
      timers.after(5, () => {
        ran.push('kept');
        resolve();
      });
    });
    expect(ran).to.deep.equal(['kept']);
  });
});
