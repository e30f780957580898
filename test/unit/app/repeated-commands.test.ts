import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { IdempotencyMismatch } from '../../../src/app/commands/command.ts';
import { OutcomeUnknown, type EventStore } from '../../../src/app/log/event-store.ts';
import { accounts } from '../../support/commands/fake-account.ts';
import { createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { counting, deposit, open } from './accounts-at-work.ts';

describe('command runner', () => {
  describe('a repeated command id', () => {
    it('answers with the state and events as of then, and appends nothing', async () => {
      const store = createMemoryEventStore();
      const { runner } = createTestRunner(store);
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      const first = await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
      const atOnce = await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
      await runner.execute(accounts, 'a', deposit('later', 100), fakeContext('c3'));
      const later = await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
      for (const again of [atOnce, later]) {
        expect(again).to.deep.equal({ ...first, replayed: true });
      }
      expect(await store.currentRevision('account-a')).to.equal(2);
    });

    it('is answered by another runner on the same log too', async () => {
      const store = createMemoryEventStore();
      const first = await createTestRunner(store).runner.execute(accounts, 'a', open, fakeContext('c1'));
      const again = await createTestRunner(store).runner.execute(accounts, 'a', open, fakeContext('c1'));
      expect(again).to.deep.equal({ ...first, replayed: true });
    });

    it('is refused with another request hash', async () => {
      const { runner } = createTestRunner(createMemoryEventStore());
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      const other = runner.execute(accounts, 'a', open, fakeContext('c1', { requestHash: 'other' }));
      expect(await other.catch((error: unknown) => error)).to.be.instanceOf(IdempotencyMismatch);
    });

    it('waits for the first call while that runs', async () => {
      const store = createMemoryEventStore();
      const { runner } = createTestRunner(store);
      const both = await Promise.all([
        runner.execute(accounts, 'a', open, fakeContext('c1')),
        runner.execute(accounts, 'a', open, fakeContext('c1')),
      ]);
      expect(both.map((o) => o.outcome === 'accepted' && o.replayed)).to.deep.equal([false, true]);
      expect(await store.currentRevision('account-a')).to.equal(0);
    });

    it('is decided again after a rejection and after a no-op', async () => {
      const { runner } = createTestRunner(createMemoryEventStore());
      const refused = await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2'));
      expect(refused.outcome).to.equal('rejected');
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      const accepted = await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2'));
      expect(accepted).to.deep.include({ outcome: 'accepted', replayed: false });
    });

    it('is found however many commands came after it', async () => {
      const store = createMemoryEventStore();
      const { runner } = createTestRunner(store);
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      const first = await runner.execute(accounts, 'a', deposit('first', 7), fakeContext('first'));
      for (let i = 0; i < 200; i += 1)
        await runner.execute(accounts, 'a', deposit(`d${i}`), fakeContext(`d${i}`));
      const again = await runner.execute(accounts, 'a', deposit('first', 7), fakeContext('first'));
      expect(again).to.deep.equal({ ...first, replayed: true });
    });
  });

  describe('the command index', () => {
    it('answers for old commands, and only what it has not seen is read from the stream', async () => {
      const { store, calls } = counting(createMemoryEventStore());
      const positions: string[] = [];
      let isBehind = false;
      let asked = 0;
      const { runner } = createTestRunner(store, {
        commandIndex: {
          appliedTo: () => (isBehind ? positions[0] : positions.at(-1)),
          find: async () => {
            asked += 1;
            return undefined;
          },
        },
      });
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      for (let i = 0; i < 70; i += 1) {
        const outcome = await runner.execute(accounts, 'a', deposit(`d${i}`), fakeContext(`d${i}`));
        positions.push(outcome.loaded.position ?? '');
      }
      expect(asked).to.be.greaterThan(0);
      expect(calls.readStream, 'only the load: the index has all that is forgotten').to.equal(1);
      isBehind = true;
      await runner.execute(accounts, 'a', deposit('last'), fakeContext('last'));
      expect(calls.readStream, 'and what the index has not seen').to.equal(2);
    });

    it('is not believed about a stream that it passes over: an old command is not carried out twice', async () => {
      const store = createMemoryEventStore();
      let last = '';
      const asked = new Set<string>();
      const { runner } = createTestRunner(store, {
        commandIndex: {
          // The position moves on, but nothing of this stream has been indexed: it is parked.
          appliedTo: (stream) => {
            asked.add(stream);
            return stream === 'account-a' ? undefined : last;
          },
          find: async () => undefined,
        },
      });
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      await runner.execute(accounts, 'a', deposit('old', 5), fakeContext('old'));
      for (let i = 0; i < 70; i += 1) {
        const outcome = await runner.execute(accounts, 'a', deposit(`d${i}`), fakeContext(`d${i}`));
        last = outcome.loaded.position ?? '';
      }
      const again = await runner.execute(accounts, 'a', deposit('old', 5), fakeContext('old'));
      expect(again).to.include({ outcome: 'accepted', replayed: true });
      expect(await store.currentRevision('account-a')).to.equal(71);
      expect([...asked]).to.deep.equal(['account-a']);
    });
  });

  describe('when the outcome of an append is not known', () => {
    /** Each append by the next word: stored or not before the answer is lost. */
    const losing = (words: ('stored' | 'lost' | 'answered')[]) => {
      const { store, calls } = counting(createMemoryEventStore());
      const faulty: EventStore = {
        ...store,
        append: async (...args) => {
          const word = words.shift() ?? 'answered';
          if (word === 'lost') throw new OutcomeUnknown(args[0]);
          const appended = await store.append(...args);
          if (word === 'stored') throw new OutcomeUnknown(args[0]);
          return appended;
        },
      };
      return { store: faulty, calls, words };
    };
    const unknown = (error: unknown) => expect(error).to.be.instanceOf(OutcomeUnknown);

    it('repeats the same append once, and answers as if nothing had happened', async () => {
      for (const first of ['stored', 'lost'] as const) {
        const { store, calls } = losing([first]);
        const outcome = await createTestRunner(store).runner.execute(accounts, 'a', open, fakeContext('c1'));
        expect(outcome, first).to.deep.include({ outcome: 'accepted', replayed: false });
        expect(calls.append, first).to.equal(first === 'stored' ? 2 : 1);
        expect(await store.currentRevision('account-a'), first).to.equal(0);
      }
    });

    it('says so when the repeat is lost too', async () => {
      const { store, words } = losing(['lost', 'lost']);
      const { runner } = createTestRunner(store);
      await runner.execute(accounts, 'a', open, fakeContext('c1')).then(() => expect.fail(), unknown);
      expect(words).to.deep.equal([]);
    });

    it('looks at the log before it refuses, until the stream has moved on', async () => {
      const { store, calls, words } = losing([]);
      const { runner } = createTestRunner(store);
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      words.push('lost', 'lost');
      await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2')).then(() => expect.fail(), unknown);
      const refuse = (id: string) => runner.execute(accounts, 'a', open, fakeContext(id));
      await refuse('c3'); // folds the stream anew
      await refuse('c4');
      await runner.execute(accounts, 'a', open, fakeContext('c1')); // a replay of what was before
      await refuse('c5');
      expect(calls.currentRevision, 'it may still be stored late').to.equal(2);
      await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2'));
      await refuse('c6');
      expect(calls.currentRevision).to.equal(2);
    });

    it('trusts its memory again when a repeat shows that the append was stored', async () => {
      const { store, calls, words } = losing([]);
      const { runner } = createTestRunner(store);
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      words.push('stored', 'stored');
      await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2')).then(() => expect.fail(), unknown);
      const again = await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2'));
      expect(again).to.include({ outcome: 'accepted', replayed: true });
      await runner.execute(accounts, 'a', open, fakeContext('c3'));
      expect(calls.currentRevision).to.equal(0);
    });
  });
});
