import { expect } from 'chai';
import type { Timers } from '../../../src/app/ports.ts';
import { createWaiters } from '../../../src/projections/runner/supervisor.ts';

/** Timers that fire when told to. */
const manualTimers = () => {
  const due = new Set<() => void>();
  const timers: Timers = {
    after: (_ms, run) => {
      due.add(run);
      return () => due.delete(run);
    },
  };
  return { timers, pending: () => due.size, fire: () => [...due].forEach((run) => run()) };
};

describe('waiting for a position', () => {
  it('answers at once what is applied already', async () => {
    const { timers } = manualTimers();
    const waiters = createWaiters(timers, 10);
    waiters.applied('05');
    expect(await waiters.wait('05', 100)).to.equal(true);
    expect(await waiters.wait('04', 0)).to.equal(true);
  });

  it('knows the lowest position that somebody waits for', () => {
    const waiters = createWaiters(manualTimers().timers, 10);
    expect(waiters.next()).to.equal(undefined);
    for (const position of ['07', '03', '05']) void waiters.wait(position, 100);
    expect(waiters.next()).to.equal('03');
    waiters.applied('04');
    expect(waiters.next()).to.equal('05');
    waiters.end();
    expect(waiters.next()).to.equal(undefined);
  });

  it('answers everyone up to the applied position, whatever order they came in', async () => {
    const { timers, pending } = manualTimers();
    const waiters = createWaiters(timers, 10);
    const order: string[] = [];
    const all = ['07', '03', '05', '09', '05'].map((position) =>
      waiters.wait(position, 100).then((reached) => order.push(`${position} ${reached}`)),
    );
    waiters.applied('02');
    waiters.applied('05');
    await Promise.all(all.filter((_, i) => [1, 2, 4].includes(i)));
    expect(order).to.deep.equal(['03 true', '05 true', '05 true']);
    waiters.applied('04'); // never goes back
    waiters.applied('09');
    await Promise.all(all);
    expect(order.slice(3)).to.deep.equal(['07 true', '09 true']);
    expect(pending()).to.equal(0);
  });

  it('says no past the bound, on the signal, at the end, and when too many wait', async () => {
    const { timers, fire, pending } = manualTimers();
    const waiters = createWaiters(timers, 2);
    const controller = new AbortController();
    const late = waiters.wait('01', 100);
    const aborted = waiters.wait('01', 100, controller.signal);
    expect(await waiters.wait('01', 100), 'a third one').to.equal(false);
    controller.abort();
    expect(await aborted).to.equal(false);
    fire();
    expect(await late).to.equal(false);
    expect(await waiters.wait('01', 0)).to.equal(false);
    expect(await waiters.wait('01', 100, AbortSignal.abort())).to.equal(false);

    const ending = waiters.wait('01', 100);
    waiters.end();
    expect(await ending).to.equal(false);
    expect(await waiters.wait('01', 100)).to.equal(false);
    expect(pending()).to.equal(0);
  });
});
