import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { createBreakable } from '../../../src/adapters/kafka/kafkajs-cluster.ts';

describe('work that can be broken off', () => {
  it('keeps nothing of what has ended, so that a connection may send for months', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const breakable = createBreakable();
    const work = async (): Promise<void> => undefined;
    const run = async (count: number): Promise<number> => {
      for (let i = 0; i < count; i += 1) await breakable.run(work);
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await run(1_000);
    const after = await run(50_000);
    // One reaction of a promise for each of them would be 30 MB.
    expect(after - before).to.be.lessThan(4 * 1024 * 1024);
  });

  it('fails when it is broken off, and so does what comes later', async () => {
    const breakable = createBreakable();
    const never = breakable.run(() => new Promise<never>(() => undefined)).catch((error: unknown) => error);
    expect(breakable.isRunning()).to.equal(true);
    const end = new Error('the end');
    breakable.breakOff(end);
    expect(await never).to.equal(end);
    expect(breakable.isRunning()).to.equal(false);
    let begun = false;
    const later = await breakable
      .run(async () => {
        begun = true;
      })
      .catch((error: unknown) => error);
    expect(later).to.equal(end);
    expect(begun).to.equal(false);
  });

  it('takes one piece at a time, and another one after a failure', async () => {
    const breakable = createBreakable();
    const { promise, reject } = Promise.withResolvers<void>();
    const first = breakable.run(() => promise).catch((error: unknown) => error);
    expect(await breakable.run(async () => 2).catch((error: unknown) => error)).to.be.instanceOf(TypeError);
    reject(new Error('refused'));
    expect(await first).to.have.property('message', 'refused');
    expect(await breakable.run(async () => 3)).to.equal(3);
  });
});
