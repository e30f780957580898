import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { accounts, type AccountCommand } from '../../support/commands/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { balance, counting, deposit, open } from './accounts-at-work.ts';

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

  it('tells its caller alone of a command that is withheld: nothing is stored, recorded or counted', async () => {
    const store = createMemoryEventStore();
    const ended: string[] = [];
    const hooks = { onCommand: (type: string, result: string) => void ended.push(`${type} ${result}`) };
    const { runner, rejections } = createTestRunner(store, { hooks });
    await runner.execute(accounts, 'a', open, fakeContext('c1'));
    const later = { outcome: 'withheld', until: 'noon' } as const;
    const ways = [async () => later, async () => undefined];
    const tries = async (): Promise<unknown> => {
      const beforeAppend = ways.shift() ?? (async () => undefined);
      return runner.execute(accounts, 'a', deposit('d', 5), fakeContext('c2'), { beforeAppend });
    };
    expect(await tries()).to.equal(later);
    expect(await store.currentRevision('account-a')).to.equal(0);
    expect(await tries()).to.deep.include({ outcome: 'accepted', replayed: false });
    expect(rejections).to.deep.equal([]);
    expect(ended).to.deep.equal(['OpenAccount accepted', 'Deposit accepted']);
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

    it('goes on from the log when that was put back behind what is remembered', async () => {
      const [now, backup] = [createMemoryEventStore(), createMemoryEventStore()];
      let log = now;
      const store = new Proxy(now, { get: (_, name) => Reflect.get(log, name) as unknown });
      const { runner } = createTestRunner(store);
      await createTestRunner(backup).runner.execute(accounts, 'a', open, fakeContext('c1'));
      await runner.execute(accounts, 'a', open, fakeContext('c1'));
      await runner.execute(accounts, 'a', deposit('lost', 5), fakeContext('c2'));
      log = backup;
      const outcome = await runner.execute(accounts, 'a', deposit('d', 7), fakeContext('c3'));
      expect(outcome.outcome === 'rejected' ? outcome.rejection.code : balance(outcome)).to.equal(7);
      expect(outcome.loaded.revision).to.equal(1);
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
