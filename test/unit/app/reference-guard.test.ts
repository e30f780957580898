import { expect } from 'chai';
import fc from 'fast-check';
import { createReferenceGuard, ReferencesBusy } from '../../../src/app/references/reference-guard.ts';
import { createFakeTimers } from '../../support/commands/fake-incarnation.ts';
import { checkAsync } from '../../support/property.ts';

const turns = async (count = 20): Promise<void> => {
  for (let i = 0; i < count; i += 1) await Promise.resolve();
};
const open = () => {
  const timers = createFakeTimers();
  return { timers, guard: createReferenceGuard({ timers }) };
};
/** What a promise has come to so far. */
const watch = <T>(promise: Promise<T>) => {
  const seen: { value?: T; error?: unknown } = {};
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  );
  return seen;
};

describe('guard of what is referred to', () => {
  it('many share a key, one closes it when they have left, and nothing is left behind', async () => {
    const { guard } = open();
    const [one, two] = await Promise.all([guard.share(['a', 'b', 'a']), guard.share(['a'])]);
    const closing = watch(guard.close('a'));
    one();
    await turns();
    expect(closing.value).to.equal(undefined);
    two();
    await turns();
    expect(closing.value).to.be.a('function');
    closing.value?.();
    expect(guard.size()).to.equal(0);
  });

  it('who comes after a deletion waits for it, and holds nothing of the rest meanwhile', async () => {
    const { guard } = open();
    const first = await guard.share(['a']);
    const closing = watch(guard.close('a'));
    const late = watch(guard.share(['a', 'b']));
    await turns();
    (await guard.close('b'))();
    expect(late.value).to.equal(undefined);
    first();
    await turns();
    expect(late.value).to.equal(undefined);
    closing.value?.();
    await turns();
    expect(late.value).to.be.a('function');
    late.value?.();
    expect(guard.size()).to.equal(0);
  });

  it('a stream of creations keeps no deletion from its turn', async () => {
    const { guard } = open();
    let shares = 0;
    let closed = false;
    const stream = async (): Promise<void> => {
      while (!closed && shares < 10_000) {
        const leave = await guard.share(['a']);
        shares += 1;
        await turns(3);
        leave();
      }
    };
    const streams = Promise.all([stream(), stream(), stream()]);
    await turns();
    const open_ = await guard.close('a');
    closed = true;
    open_();
    await streams;
    expect(shares).to.be.within(1, 100);
    expect(guard.size()).to.equal(0);
  });

  it('a stream of refused deletions keeps no creation from its turn', async () => {
    const { guard } = open();
    let closes = 0;
    let shared = false;
    // As the commands on one object come: one after another.
    const deletions = (async () => {
      while (!shared && closes < 1_000) {
        const reopen = await guard.close('a');
        closes += 1;
        await turns(3);
        reopen();
        await turns(3);
      }
    })();
    const leave = await guard.share(['a']);
    shared = true;
    leave();
    await deletions;
    expect(closes).to.be.below(5);
  });

  it('who cannot wait shares what nobody closes or waits to close, and nothing of the rest', async () => {
    const { guard } = open();
    const leave = guard.shareNow(['a', 'b', 'a']);
    expect(leave).to.not.equal(undefined);
    const closing = watch(guard.close('a'));
    await turns();
    expect(guard.shareNow(['b', 'a'])).to.equal(undefined);
    leave?.();
    await turns();
    expect(guard.shareNow(['a'])).to.equal(undefined);
    closing.value?.();
    guard.shareNow(['a'])?.();
    expect(guard.size()).to.equal(0);
  });

  it('gives up when the time is up or the caller is gone, and lets the others in', async () => {
    const { guard, timers } = open();
    const leave = await guard.share(['a']);
    const closing = watch(guard.close('a'));
    const waiting = watch(guard.share(['a']));
    const caller = new AbortController();
    const gone = watch(guard.share(['a'], caller.signal));
    await turns();
    caller.abort(new Error('hung up'));
    await turns();
    expect(gone.error).to.have.property('message', 'hung up');
    expect([closing.error, waiting.value]).to.deep.equal([undefined, undefined]);
    timers.fire();
    await turns();
    expect(closing.error).to.be.instanceOf(ReferencesBusy);
    expect(waiting.error ?? waiting.value).to.not.equal(undefined);
    leave();
    waiting.value?.();
    expect(guard.size()).to.equal(0);
  });

  it('nobody holds what another one has closed, and all get their turn, in whatever order', async () => {
    const operation = fc.record({
      close: fc.boolean(),
      keys: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }),
    });
    await checkAsync(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(operation, { minLength: 2, maxLength: 8 }),
        async (scheduler, operations) => {
          const { guard } = open();
          const held = new Map<string, number>();
          const run = async ({ close, keys }: { close: boolean; keys: string[] }): Promise<void> => {
            await scheduler.schedule(Promise.resolve(), 'begin');
            const mine = close ? keys.slice(0, 1) : keys;
            const leave = close ? await guard.close(mine[0] ?? '') : await guard.share(mine);
            for (const key of mine) {
              const others = held.get(key) ?? 0;
              expect(close ? others === 0 : others >= 0, 'closed and shared at once').to.equal(true);
              held.set(key, close ? -1 : others + 1);
            }
            await scheduler.schedule(Promise.resolve(), 'work');
            for (const key of mine) held.set(key, close ? 0 : (held.get(key) ?? 0) - 1);
            leave();
          };
          await scheduler.waitFor(Promise.all(operations.map(run)));
          expect(guard.size()).to.equal(0);
        },
      ),
      { numRuns: 500 },
    );
  });
});
