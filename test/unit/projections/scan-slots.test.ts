import { expect } from 'chai';
import { ListRefused } from '../../../src/projections/read-models.ts';
import {
  createScanSlots,
  type Leave,
  type ScanLimits,
} from '../../../src/projections/resources/scan-slots.ts';

const never = (): AbortSignal => new AbortController().signal;

const slotsOf = (limits: Partial<ScanLimits> = {}) => {
  const slots = createScanSlots({ running: 2, held: 6, heldOfOne: 4, callers: 4, ...limits });
  const running: { caller: string; leave: Leave }[] = [];
  const refused: string[] = [];
  const enter = (caller: string, signal = never()): void =>
    void slots.enter(caller, signal).then(
      (leave) => running.push({ caller, leave }),
      (error: unknown) => refused.push(`${caller} ${error instanceof ListRefused ? error.reason : 'fault'}`),
    );
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    enter,
    refused,
    /** Who runs now. */
    now: async (): Promise<string[]> => {
      await settled();
      return running.map(({ caller }) => caller);
    },
    leave: (caller: string): void => {
      const at = running.findIndex((one) => one.caller === caller);
      running.splice(at, 1)[0]?.leave();
    },
  };
};

describe('slots of scans', () => {
  it('one caller has half of what runs, however much it has waiting', async () => {
    const { enter, now } = slotsOf();
    for (let i = 0; i < 4; i += 1) enter('hog');
    expect(await now()).to.deep.equal(['hog']);
    enter('admin');
    expect(await now()).to.deep.equal(['hog', 'admin']);
  });

  it('go round over the callers', async () => {
    const { enter, now, leave } = slotsOf({ running: 1 });
    for (const caller of ['a', 'a', 'a', 'b', 'c']) enter(caller);
    const order: (string | undefined)[] = [];
    for (let i = 0; i < 5; i += 1) {
      const [running] = await now();
      order.push(running);
      leave(running ?? '');
    }
    expect(order).to.deep.equal(['a', 'b', 'c', 'a', 'a']);
  });

  it('past the bounds a caller is let in with its first one, and nobody with more', async () => {
    const { enter, now, refused } = slotsOf();
    for (let i = 0; i < 5; i += 1) enter('a');
    for (let i = 0; i < 3; i += 1) enter('b');
    for (let i = 0; i < 2; i += 1) enter('c');
    enter('__proto__');
    enter('e');
    await now();
    expect(refused).to.deep.equal(['a busy', 'b busy', 'c busy', 'e busy']);
  });

  it('one who leaves while waiting takes no place', async () => {
    const { enter, now, leave, refused } = slotsOf();
    const gone = new AbortController();
    enter('a');
    enter('a', gone.signal);
    enter('a');
    gone.abort();
    enter('a', gone.signal);
    await now();
    expect(refused).to.deep.equal(['a cancelled', 'a cancelled']);
    leave('a');
    expect(await now()).to.deep.equal(['a']);
    leave('a');
    expect(await now()).to.deep.equal([]);
  });
});
