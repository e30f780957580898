import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { IdempotencyMismatch, type CommandOutcome } from '../../../src/app/command.ts';
import { OutcomeUnknown, type EventStore } from '../../../src/app/event-store.ts';
import { accounts, type Account, type AccountCommand } from '../../support/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/fake-context.ts';

const deposit = (name: string, amount = 1) => ({ type: 'Deposit', amount, deposit: name }) as const;
const open = { type: 'OpenAccount', owner: 'ann' } as const;

const balance = (outcome: CommandOutcome<Account>): number | string =>
  outcome.loaded.state.status === 'open' ? outcome.loaded.state.balance : outcome.loaded.state.status;

/** A store that counts what is asked of it. */
const counting = (store: EventStore) => {
  const calls = { append: 0, readStream: 0, currentRevision: 0 };
  const counted: EventStore = {
    ...store,
    append: (...args) => {
      calls.append += 1;
      return store.append(...args);
    },
    readStream: (...args) => {
      calls.readStream += 1;
      return store.readStream(...args);
    },
    currentRevision: (...args) => {
      calls.currentRevision += 1;
      return store.currentRevision(...args);
    },
  };
  return { store: counted, calls };
};

describe('command runner', () => {
  it('loads, decides, appends and answers with the new state', async () => {
    const store = createMemoryEventStore();
    const { runner } = createTestRunner(store);
    const opened = await runner.execute(accounts, 'a', open, fakeContext('c1'));
    expect(opened).to.deep.include({ outcome: 'accepted', replayed: false });
    const outcome = await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
    expect(balance(outcome)).to.equal(5);
    expect(outcome.loaded).to.include({ revision: 1, version: 1 });
    const stored = await collect(store.readStream('account-a'));
    expect(stored.map((event) => event.type)).to.deep.equal(['AccountOpened', 'MoneyDeposited']);
    expect(stored[1]?.metadata).to.include({ command: 'Deposit', commandId: 'c2', instance: 'test-1' });
    expect(outcome.loaded.position).to.equal(stored[1]?.position);
  });

  it('decides from cached state: a warm stream is not read again', async () => {
    const { store, calls } = counting(createMemoryEventStore());
    const { runner } = createTestRunner(store);
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    for (let i = 0; i < 10; i += 1)
      await runner.execute(accounts, 'a', deposit(`d${i}`), fakeContext(`d${i}`));
    expect(calls).to.deep.equal({ append: 11, readStream: 1, currentRevision: 0 });
  });

  it('returns a rejection with the state it was taken from, and records it', async () => {
    const { runner, rejections } = createTestRunner(createMemoryEventStore());
    const outcome = await runner.execute(accounts, 'a', deposit('d'), fakeContext('c1'));
    expect(outcome).to.deep.include({ outcome: 'rejected' });
    expect(rejections).to.deep.equal([
      {
        tenant: 'acme',
        project: '',
        subjectId: 'subject-1',
        command: 'Deposit',
        commandId: 'c1',
        correlationId: 'c1',
        outcome: 'rejected',
        code: 'NO_ACCOUNT',
        error: 'NOT_FOUND',
        message: 'there is no such account',
        at: '2026-11-21T10:00:00.000Z',
        actor: { subjectId: 'subject-1', roles: ['client'], authMethod: 'jwt', via: 'http' },
        kind: 'account',
        resourceId: 'a',
        requestHash: 'hash of c1',
      },
    ]);
  });

  it('appends nothing for a decision that changes nothing', async () => {
    const store = createMemoryEventStore();
    const { runner } = createTestRunner(store);
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    const outcome = await runner.execute(accounts, 'a', deposit('d', 0), fakeContext('c2'));
    expect(outcome).to.deep.include({ outcome: 'accepted', events: [], replayed: false });
    expect(await store.currentRevision('account-a')).to.equal(0);
  });

  it('counts as document version the appends that changed the document', async () => {
    const { runner } = createTestRunner(createMemoryEventStore());
    const versions: number[] = [];
    const run = async (id: string, command: AccountCommand) => {
      const outcome = await runner.execute(accounts, 'a', command, fakeContext(id));
      versions.push(outcome.loaded.version);
    };
    await run('1', open);
    await run('2', { type: 'TakeNote', text: 'silent' });
    await run('3', { type: 'DepositAndNote', amount: 1, deposit: 'd' });
    await run('4', deposit('e'));
    expect(versions).to.deep.equal([0, 0, 1, 2]);
  });

  it('what is read beside the commands of a stream is not taken for its newest state', async () => {
    const inner = createMemoryEventStore();
    await createTestRunner(inner).runner.execute(accounts, 'a', open, fakeContext('c1'));
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    let reads = 0;
    const { runner } = createTestRunner({
      ...inner,
      async *readStream(...args) {
        reads += 1;
        const isFirst = reads === 1;
        yield* inner.readStream(...args);
        if (!isFirst) return;
        reached.resolve();
        await gate.promise;
      },
    });
    const looking = runner.peek(accounts, 'a');
    await reached.promise;
    await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
    const left = { signal: AbortSignal.abort(new Error('the caller has left')) };
    const given = runner.execute(accounts, 'a', deposit('e'), fakeContext('c3', left));
    expect(await given.catch((error: Error) => error.message)).to.equal('the caller has left');
    gate.resolve();
    await looking;
    for (const loaded of [
      await runner.peek(accounts, 'a', { remembered: true }),
      (await runner.execute(accounts, 'a', deposit('f', 0), fakeContext('c4'))).loaded,
    ])
      expect(loaded.revision).to.equal(1);
  });

  it('what is looked at again and again is read once, and again when another instance has written', async () => {
    const shared = createMemoryEventStore({ singleWriter: false });
    const other = createTestRunner(shared).runner;
    await other.execute(accounts, 'a', open, fakeContext('c1'));
    for (const singleWriter of [true, false]) {
      const { store, calls } = counting({ ...shared, singleWriter });
      const { runner } = createTestRunner(store);
      for (let i = 0; i < 3; i += 1) await runner.peek(accounts, 'a');
      expect(calls).to.include({ readStream: 1, currentRevision: singleWriter ? 1 : 2 });
      if (singleWriter) continue;
      await other.execute(accounts, 'a', deposit('d'), fakeContext('c2'));
      for (let i = 0; i < 3; i += 1) expect((await runner.peek(accounts, 'a')).revision).to.equal(1);
      expect(calls).to.include({ readStream: 2, currentRevision: 5 });
    }
  });

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

  it('writes metadata v1 as it was given, and leaves out what was not', async () => {
    const store = createMemoryEventStore();
    const { runner } = createTestRunner(store);
    const source = { alg: 'A256GCM', keyId: 'k', nonce: 'n', ct: 'c', tag: 't' } as const;
    const optional = { ticket: 'CHG-1', traceparent: '00-aa-bb-01', source, hub: 'east-1' };
    await runner.execute(accounts, 'a', open, fakeContext('c1', { correlationId: 'r', causationId: 'q' }));
    await runner.execute(accounts, 'a', deposit('d'), fakeContext('c2', optional));
    const [plain, full] = (await collect(store.readStream('account-a'))).map(({ metadata }) => metadata);
    const always = {
      tenant: 'acme',
      project: '',
      actor: { subjectId: 'subject-1', roles: ['client'], authMethod: 'jwt', via: 'http' },
      occurredAt: '2026-11-21T10:00:00.000Z',
      instance: 'test-1',
      schemaVersion: 1,
    };
    expect(plain).to.deep.equal({
      ...always,
      command: 'OpenAccount',
      commandId: 'c1',
      requestHash: 'hash of c1',
      correlationId: 'r',
      causationId: 'q',
    });
    const { hidden, ...others } = full ?? {};
    // On which hub it happened is not for tenants.
    expect(hidden).to.deep.include({ paths: ['/metadata/hub'] });
    expect(others).to.deep.equal({
      ...always,
      ...optional,
      command: 'Deposit',
      commandId: 'c2',
      requestHash: 'hash of c2',
      correlationId: 'c2',
      causationId: 'c2',
    });
  });

  describe('preconditions', () => {
    it('refuse a stale revision or version with the current one', async () => {
      const { runner } = createTestRunner(createMemoryEventStore());
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      await runner.execute(accounts, 'a', { type: 'TakeNote', text: 'x' }, fakeContext('c2'));
      const byRevision = await runner.execute(
        accounts,
        'a',
        deposit('d'),
        fakeContext('c3', { ifRevision: 0 }),
      );
      const byVersion = await runner.execute(
        accounts,
        'a',
        deposit('d'),
        fakeContext('c4', { ifVersion: 7 }),
      );
      for (const [outcome, requested, current] of [
        [byRevision, 0, 1],
        [byVersion, 7, 0],
      ] as const) {
        if (outcome.outcome !== 'rejected') throw new Error('expected a rejection');
        expect(outcome.rejection).to.deep.include({
          kind: 'conflict',
          code: 'VERSION_MISMATCH',
          facts: { requested, current },
        });
      }
      const held = await runner.execute(
        accounts,
        'a',
        deposit('d'),
        fakeContext('c5', { ifVersion: 0, ifRevision: 1 }),
      );
      expect(held.outcome).to.equal('accepted');
    });

    it('come after absence, so that they tell nothing about what is not there', async () => {
      const { runner } = createTestRunner(createMemoryEventStore());
      const outcome = await runner.execute(accounts, 'a', deposit('d'), fakeContext('c1', { ifVersion: 3 }));
      expect(outcome.outcome === 'rejected' && outcome.rejection.code).to.equal('NO_ACCOUNT');
    });
  });

  describe('beside another writer', () => {
    it('decides again after a conflict', async () => {
      const store = createMemoryEventStore({ singleWriter: false });
      const [one, two] = [createTestRunner(store), createTestRunner(store)];
      await one.runner.execute(accounts, 'a', open, fakeContext('c1'));
      await two.runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
      const outcome = await one.runner.execute(accounts, 'a', deposit('e', 6), fakeContext('c3'));
      expect(balance(outcome)).to.equal(11);
    });

    it('returns a rejection or a no-op from cached state only when the stream has not moved', async () => {
      const store = createMemoryEventStore({ singleWriter: false });
      const [one, two] = [createTestRunner(store), createTestRunner(store)];
      const refused = await one.runner.execute(accounts, 'a', deposit('d'), fakeContext('c0'));
      expect(refused.outcome).to.equal('rejected');
      await two.runner.execute(accounts, 'a', open, fakeContext('c1'));
      const accepted = await one.runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
      expect(balance(accepted)).to.equal(5);
      await two.runner.execute(accounts, 'a', { type: 'CloseAccount', at: 'now' }, fakeContext('c3'));
      const late = await one.runner.execute(accounts, 'a', deposit('e', 0), fakeContext('c4'));
      expect(late.outcome === 'rejected' && late.rejection.code).to.equal('ACCOUNT_CLOSED');
    });

    it('answers with what is stored when another runner carried the command out', async () => {
      const store = createMemoryEventStore({ singleWriter: false });
      const [one, two] = [createTestRunner(store), createTestRunner(store)];
      await one.runner.execute(accounts, 'a', open, fakeContext('c1'));
      const first = await two.runner.execute(
        accounts,
        'a',
        { type: 'CloseAccount', at: '10:00' },
        fakeContext('c2'),
      );
      const again = await one.runner.execute(
        accounts,
        'a',
        { type: 'CloseAccount', at: '10:01' },
        fakeContext('c2'),
      );
      expect(again).to.deep.equal({ ...first, replayed: true });
      expect(await store.currentRevision('account-a')).to.equal(1);
    });

    it('finds its command behind what others appended since', async () => {
      const store = createMemoryEventStore({ singleWriter: false });
      const [one, two] = [createTestRunner(store), createTestRunner(store)];
      await one.runner.execute(accounts, 'a', open, fakeContext('c1'));
      await two.runner.execute(accounts, 'a', deposit('x', 1), fakeContext('c2'));
      await two.runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c3'));
      await two.runner.execute(accounts, 'a', deposit('e', 7), fakeContext('c4'));
      const again = await one.runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c3'));
      expect(again).to.deep.include({ outcome: 'accepted', replayed: true });
      expect(balance(again)).to.equal(6);
      expect(await store.currentRevision('account-a')).to.equal(3);
    });

    it('loads what the other one wrote', async () => {
      const store = createMemoryEventStore({ singleWriter: false });
      const [one, two] = [createTestRunner(store), createTestRunner(store)];
      await one.runner.execute(accounts, 'a', open, fakeContext('c1'));
      await two.runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
      expect(await one.runner.load(accounts, 'a')).to.deep.include({ revision: 1 });
    });
  });

  it('folds a stream up to a revision, uncached', async () => {
    const { runner } = createTestRunner(createMemoryEventStore());
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'));
    await runner.execute(accounts, 'a', deposit('e', 6), fakeContext('c3'));
    const then = await runner.load(accounts, 'a', { asOfRevision: 1 });
    expect(then).to.deep.include({ revision: 1, version: 1 });
    expect(then.state).to.include({ balance: 5 });
    expect((await runner.load(accounts, 'a')).state).to.include({ balance: 11 });
  });

  it('forgets the least recently used stream beyond its cache and folds it again when needed', async () => {
    const { store, calls } = counting(createMemoryEventStore());
    const { runner } = createTestRunner(store, { cacheSize: 2 });
    for (const id of ['a', 'b', 'c']) await runner.execute(accounts, id, open, fakeContext(`open ${id}`));
    const reads = calls.readStream;
    const outcome = await runner.execute(accounts, 'a', deposit('d', 5), fakeContext('d'));
    expect(balance(outcome)).to.equal(5);
    expect(calls.readStream).to.equal(reads + 1);
  });

  it('reports how commands ended', async () => {
    const seen: string[] = [];
    const { runner } = createTestRunner(createMemoryEventStore(), {
      hooks: { onCommand: (type, result) => seen.push(`${type} ${result}`) },
    });
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    await runner.execute(accounts, 'a', open, fakeContext('c2'));
    await runner.execute(accounts, 'a', deposit('d', 0), fakeContext('c3'));
    await runner.execute(accounts, 'a', open, fakeContext('c1', { requestHash: 'x' })).catch(() => undefined);
    expect(seen).to.deep.equal([
      'OpenAccount accepted',
      'OpenAccount replayed',
      'OpenAccount rejected',
      'Deposit unchanged',
      'OpenAccount mismatch',
    ]);
  });
});
