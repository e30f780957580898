import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { CommandOutcome } from '../../../src/app/commands/command.ts';
import { accounts, type Account } from '../../support/commands/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';

const deposit = (name: string, amount = 1) => ({ type: 'Deposit', amount, deposit: name }) as const;
const close = { type: 'CloseAccount', at: 'now' } as const;
const inLine = { inLine: true } as const;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A store that holds appends back until they are let go, in the order in which they came. */
const held = (store: EventStore = createMemoryEventStore()) => {
  const waiting: { readonly go: (fault?: Error) => void; readonly expected: unknown }[] = [];
  let open = true;
  const slow: EventStore = {
    ...store,
    append: async (...args) => {
      if (open) return store.append(...args);
      const fault = await new Promise<Error | undefined>((resolve) =>
        waiting.push({ go: resolve, expected: args[1] }),
      );
      if (fault !== undefined) throw fault;
      return store.append(...args);
    },
  };
  return {
    store: slow,
    waiting,
    hold: () => {
      open = false;
    },
    letAllGo: () => {
      open = true;
      for (const { go } of waiting.splice(0)) go();
    },
  };
};

const opened = async () => {
  const store = held();
  const { runner } = createTestRunner(store.store);
  const owner = { type: 'OpenAccount', owner: 'ann' } as const;
  await runner.execute(accounts, 'a', owner, fakeContext('open'));
  store.hold();
  const put = (name: string): Promise<CommandOutcome<Account>> =>
    runner.execute(accounts, 'a', deposit(name), fakeContext(name), inLine);
  return { ...store, runner, put };
};

const depositsOf = ({ state }: { readonly state: Account }): readonly string[] =>
  state.status === 'open' ? state.deposits : [];

describe('commands in line on one stream', () => {
  it('are on their way together, each at the revision that the one before it leaves', async () => {
    const { put, waiting, letAllGo } = await opened();
    const all = Promise.all(['x', 'y', 'z'].map(put));
    await turn();
    expect(waiting.map(({ expected }) => expected)).to.deep.equal([0, 1, 2]);
    letAllGo();
    const outcomes = await all;
    expect(outcomes.map(({ loaded }) => loaded.revision)).to.deep.equal([1, 2, 3]);
    expect(outcomes.map(({ loaded }) => depositsOf(loaded))).to.deep.equal([
      ['x'],
      ['x', 'y'],
      ['x', 'y', 'z'],
    ]);
  });

  it('are not seen by others before they are stored', async () => {
    const { put, runner, letAllGo } = await opened();
    const all = Promise.all(['x', 'y'].map(put));
    await turn();
    expect(depositsOf(await runner.load(accounts, 'a'))).to.deep.equal([]);
    expect(depositsOf(await runner.peek(accounts, 'a'))).to.deep.equal([]);
    letAllGo();
    await all;
    expect(depositsOf(await runner.load(accounts, 'a'))).to.deep.equal(['x', 'y']);
  });

  it('wait for those before them when they are refused, since these may never be stored', async () => {
    const { put, runner, waiting, letAllGo } = await opened();
    const closing = runner.execute(accounts, 'a', close, fakeContext('close'), inLine);
    const late = put('late');
    let isSettled = false;
    void late.finally(() => {
      isSettled = true;
    });
    await turn();
    expect(waiting).to.have.length(1);
    expect(isSettled).to.equal(false);
    waiting.shift()?.go(new StoreUnavailable('not sent'));
    expect(await closing.catch((error: unknown) => error)).to.be.instanceOf(StoreUnavailable);
    letAllGo();
    while (!isSettled) {
      await turn();
      letAllGo();
    }
    expect((await late).outcome).to.equal('accepted');
  });

  it('are carried out alone when one before them failed', async () => {
    const { put, runner, store, waiting, letAllGo } = await opened();
    const [first, second, third] = ['x', 'y', 'z'].map(put);
    await turn();
    const [x] = waiting.splice(0, 1);
    x?.go(new StoreUnavailable('not sent'));
    expect(await first?.catch((error: unknown) => error)).to.be.instanceOf(StoreUnavailable);
    letAllGo();
    expect(depositsOf((await second)?.loaded ?? { state: { status: 'absent' } })).to.include('y');
    expect((await third)?.outcome).to.equal('accepted');
    const stored = await collect(store.readStream('account-a'));
    expect(stored.map(({ revision }) => revision)).to.deep.equal([0, 1, 2]);
    expect([...depositsOf(await runner.load(accounts, 'a'))].toSorted()).to.deep.equal(['y', 'z']);
  });

  it('say that the outcome is not known, as others do', async () => {
    const { put, waiting, letAllGo, runner } = await opened();
    const first = put('x').catch((error: unknown) => error);
    await turn();
    waiting.shift()?.go(new OutcomeUnknown('account-a'));
    await turn();
    waiting.shift()?.go(new OutcomeUnknown('account-a'));
    expect(await first).to.be.instanceOf(OutcomeUnknown);
    letAllGo();
    expect(depositsOf((await put('x')).loaded)).to.deep.equal(['x']);
    expect(depositsOf(await runner.load(accounts, 'a'))).to.deep.equal(['x']);
  });

  it('let a command that is not in line wait until nothing is on its way', async () => {
    const { put, runner, waiting, letAllGo } = await opened();
    const first = put('x');
    const other = runner.execute(accounts, 'a', deposit('y'), fakeContext('y'));
    const last = put('z');
    await turn();
    expect(waiting.map(({ expected }) => expected)).to.deep.equal([0]);
    letAllGo();
    expect((await first).loaded.revision).to.equal(1);
    expect((await other).loaded.revision).to.equal(2);
    expect((await last).loaded.revision).to.equal(3);
  });

  it('repeat an earlier command as a replay', async () => {
    const { put, letAllGo } = await opened();
    letAllGo();
    await put('x');
    const again = await put('x');
    expect(again).to.include({ outcome: 'accepted', replayed: true });
    expect(depositsOf(again.loaded)).to.deep.equal(['x']);
  });

  it('are carried out one by one on a store with other writers', async () => {
    const store = held(createMemoryEventStore({ singleWriter: false }));
    const { runner } = createTestRunner(store.store);
    const owner = { type: 'OpenAccount', owner: 'ann' } as const;
    await runner.execute(accounts, 'a', owner, fakeContext('open'));
    store.hold();
    const both = ['x', 'y'].map((name) =>
      runner.execute(accounts, 'a', deposit(name), fakeContext(name), inLine),
    );
    await turn();
    expect(store.waiting).to.have.length(1);
    store.letAllGo();
    expect((await Promise.all(both)).map(({ loaded }) => loaded.revision)).to.deep.equal([1, 2]);
  });
});
