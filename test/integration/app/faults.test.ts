import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { OutcomeUnknown, StoreUnavailable } from '../../../src/app/log/event-store.ts';
import { accounts } from '../../support/commands/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { createFaultyStore, createRandom } from '../../support/event-store/faulty-store.ts';
import { cases, checkAsync } from '../../support/property.ts';

const deposit = (name: string, amount: number) => ({ type: 'Deposit', amount, deposit: name }) as const;

describe('command runner on a store that fails', () => {
  const chance = fc.integer({ min: 0, max: 30 }).map((percent) => percent / 100);
  const faults = fc.record({
    unavailable: chance,
    lostAnswer: chance,
    lostRequest: chance,
    late: chance,
    delay: chance,
    brokenRead: chance,
  });

  it('applies each acknowledged command once, keeps its word on every other, and settles the unknown', async function () {
    this.timeout(60_000);
    await checkAsync(
      fc.asyncProperty(
        fc.nat(),
        faults,
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        async (seed, chances, instances, inLine) => {
          const log = createMemoryEventStore({ singleWriter: instances === 1 });
          const faulty = createFaultyStore(log, chances, seed);
          const runners = Array.from({ length: instances }, () => createTestRunner(faulty, { cacheSize: 2 }));
          const random = createRandom(seed + 1);
          await log.append('account-a', 'no_stream', [
            {
              id: 'open',
              type: 'AccountOpened',
              data: '{"owner":"ann"}',
              metadata: '{"commandId":"open","requestHash":""}',
            },
          ]);

          const acknowledged = new Map<string, number>();
          const unknown = new Map<string, number>();
          const refused = new Set<string>();
          const client = async (name: string): Promise<void> => {
            for (let i = 0; i < 6; i += 1) {
              const id = `${name}.${i}`;
              const amount = 1 + Math.floor(random() * 9);
              const runner = runners[Math.floor(random() * instances)]?.runner;
              if (runner === undefined) throw new Error('no runner');
              try {
                const command = deposit(id, amount);
                // Some wait for each other's commit, some follow each other without.
                const how = { inLine: inLine && random() < 0.8 };
                const outcome = await runner.execute(accounts, 'a', command, fakeContext(id), how);
                if (outcome.outcome === 'accepted') acknowledged.set(id, amount);
                else refused.add(id);
                const state = outcome.loaded.state;
                if (outcome.outcome === 'accepted' && state.status === 'open')
                  expect(
                    state.deposits.filter((one) => one === id),
                    'in the answer',
                  ).to.have.length(1);
              } catch (error) {
                if (error instanceof OutcomeUnknown) unknown.set(id, amount);
                else if (error instanceof StoreUnavailable) refused.add(id);
                else throw error;
              }
            }
          };
          await Promise.all(['x', 'y', 'z'].map(client));
          await faulty.settle();

          const stored = async (): Promise<string[]> =>
            (await collect(log.readStream('account-a'))).flatMap(({ data }) =>
              typeof data['deposit'] === 'string' ? [data['deposit']] : [],
            );
          const before = await stored();
          for (const id of acknowledged.keys()) expect(before.filter((one) => one === id)).to.have.length(1);
          for (const id of refused) expect(before, 'a 503 left an event').not.to.include(id);
          for (const [id, amount] of unknown) {
            const outcome = await runners[0]?.runner.execute(
              accounts,
              'a',
              deposit(id, amount),
              fakeContext(id),
            );
            expect(outcome?.outcome).to.equal('accepted');
          }
          const after = await stored();
          expect(after.toSorted()).to.deep.equal([...acknowledged.keys(), ...unknown.keys()].toSorted());
          for (const { runner } of runners) {
            const { state, revision } = await runner.load(accounts, 'a');
            expect(state.status === 'open' && state.deposits).to.deep.equal(after);
            expect(revision).to.equal(after.length);
          }
        },
      ),
      { numRuns: cases(200) },
    );
  });
});

describe('a sole writer whose append was stored after it had been given up', () => {
  it('does not decide from a state that this append has changed since', async () => {
    const log = createMemoryEventStore();
    const held: (() => Promise<unknown>)[] = [];
    const { runner } = createTestRunner({
      ...log,
      append: (...args) => {
        if (!JSON.stringify(args[2]).includes('slow')) return log.append(...args);
        held.push(() => log.append(...args));
        return Promise.reject(new OutcomeUnknown(args[0]));
      },
    });
    await runner.execute(accounts, 'a', { type: 'OpenAccount', owner: 'ann' }, fakeContext('open'));
    const close = { type: 'CloseAccount', at: 'slow' } as const;
    const failed: unknown = await runner
      .execute(accounts, 'a', close, fakeContext('close'))
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
    // The stream is loaded again before the writer gets round to what it was given.
    const unchanged = await runner.execute(accounts, 'a', deposit('nothing', 0), fakeContext('nothing'));
    expect(unchanged.outcome).to.equal('accepted');
    expect((await runner.load(accounts, 'a')).state.status).to.equal('open');
    await held[0]?.();
    const late = await runner.execute(accounts, 'a', deposit('nothing', 0), fakeContext('late'));
    expect(late.outcome === 'rejected' && late.rejection.code).to.equal('ACCOUNT_CLOSED');
    expect((await runner.load(accounts, 'a')).state.status).to.equal('closed');
  });
});

describe('two command runners on one log', () => {
  it('carry out a command that both get at once exactly once', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const [one, two] = [createTestRunner(store).runner, createTestRunner(store).runner];
    await one.execute(accounts, 'a', { type: 'OpenAccount', owner: 'ann' }, fakeContext('open'));
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? one : two).execute(accounts, 'a', deposit('once', 5), fakeContext('once')),
      ),
    );
    const states = outcomes.map((outcome) => outcome.loaded.state);
    expect(states.every((state) => state.status === 'open' && state.balance === 5)).to.equal(true);
    expect(await store.currentRevision('account-a')).to.equal(1);
  });

  it('lose nothing when both write to one stream', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const [one, two] = [createTestRunner(store).runner, createTestRunner(store).runner];
    await one.execute(accounts, 'a', { type: 'OpenAccount', owner: 'ann' }, fakeContext('open'));
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        (i % 2 === 0 ? one : two).execute(accounts, 'a', deposit(`d${i}`, 1), fakeContext(`d${i}`)),
      ),
    );
    const accepted = outcomes.filter(({ outcome }) => outcome === 'accepted').length;
    const { state } = await one.load(accounts, 'a');
    expect(state.status === 'open' && state.balance).to.equal(accepted);
    // Whoever lost five times in a row was told so.
    for (const outcome of outcomes)
      if (outcome.outcome === 'rejected')
        expect(outcome.rejection).to.include({ kind: 'conflict', code: 'CONCURRENT_MODIFICATION' });
  });

  it('ends with a conflict when the stream never stands still', async () => {
    const log = createMemoryEventStore({ singleWriter: false });
    const { runner } = createTestRunner(log);
    await runner.execute(accounts, 'a', { type: 'OpenAccount', owner: 'ann' }, fakeContext('open'));
    let rivals = 0;
    const { runner: rival } = createTestRunner(log);
    const contested = createTestRunner({
      ...log,
      append: async (...args) => {
        rivals += 1;
        await rival.execute(accounts, 'a', deposit(`rival ${rivals}`, 1), fakeContext(`rival ${rivals}`));
        return log.append(...args);
      },
    });
    const outcome = await contested.runner.execute(accounts, 'a', deposit('mine', 1), fakeContext('mine'));
    expect(outcome.outcome === 'rejected' && outcome.rejection.code).to.equal('CONCURRENT_MODIFICATION');
    expect(rivals).to.equal(6);
  });
});
