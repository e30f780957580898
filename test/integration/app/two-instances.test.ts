import { expect } from 'chai';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { accounts } from '../../support/commands/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { createGadget, deleteGadget, gadget } from '../../support/commands/fake-gadget.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { createRandom } from '../../support/event-store/faulty-store.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { eventually } from '../../support/eventually.ts';

const deposit = (name: string) => ({ type: 'Deposit', amount: 1, deposit: name }) as const;
const openAccount = { type: 'OpenAccount', owner: 'ann' } as const;

/** The command runner of two instances that share one EventStoreDB. */
describe('two instances on one EventStoreDB', function () {
  this.timeout(30_000);
  const bench = createBench();
  let peer: Peer;
  let stores: readonly [EventStore, EventStore];
  beforeEach(async () => {
    peer = await bench.peer();
    stores = [await bench.store(peer), await bench.store(peer)];
  });
  afterEach(() => bench.clean());

  const both = <T>(make: (store: EventStore, index: number) => T): readonly [T, T] => [
    make(stores[0], 0),
    make(stores[1], 1),
  ];
  const deposits = async (store: EventStore): Promise<string[]> =>
    (await collect(store.readStream('account-a'))).flatMap(({ data }) =>
      typeof data['deposit'] === 'string' ? [data['deposit']] : [],
    );

  it('answer a command that both get at once with the same state, carried out once', async () => {
    const [one, two] = both((store) => createTestRunner(store).runner);
    await one.execute(accounts, 'a', openAccount, fakeContext('open'));
    const outcomes = await Promise.all(
      [one, two, one, two].map((runner) =>
        runner.execute(accounts, 'a', deposit('once'), fakeContext('once')),
      ),
    );
    for (const outcome of outcomes) expect(outcome.loaded).to.deep.include({ revision: 1, version: 1 });
    expect(await deposits(stores[0])).to.deep.equal(['once']);
    const again = await two.execute(accounts, 'a', deposit('once'), fakeContext('once'));
    expect(again).to.deep.include({ outcome: 'accepted', replayed: true });
  });

  it('never refuse by what the other one has changed since', async () => {
    const [one, two] = both((store) => createTestRunner(store).runner);
    expect((await one.execute(accounts, 'a', deposit('early'), fakeContext('early'))).outcome).to.equal(
      'rejected',
    );
    await two.execute(accounts, 'a', openAccount, fakeContext('open'));
    const outcome = await one.execute(accounts, 'a', deposit('late'), fakeContext('late'));
    expect(outcome.outcome).to.equal('accepted');
  });

  it('give a name to exactly one of many creations', async () => {
    const [one, two] = both((store, i) => createIncarnation(store, `instance ${i}`));
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        (i % 2 === 0 ? one : two).resources.execute(
          gadget,
          `g${i}`,
          createGadget(`g${i}`, `name-${i % 3}`),
          fakeContext(`create ${i}`),
          { likelyNew: true },
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome.outcome === 'accepted')).to.have.length(3);
    const defined = (await collect(stores[1].readAll({ limit: 1000 }))).filter(
      ({ type }) => type === 'GadgetDefined',
    );
    expect(defined.map(({ data }) => JSON.stringify(data['name'])).toSorted()).to.deep.equal([
      '"name-0"',
      '"name-1"',
      '"name-2"',
    ]);
  });

  it('give the id of what is gone to exactly one of those who want it, with its names', async () => {
    const [one, two] = both((store, i) => createIncarnation(store, `instance ${i}`));
    for (let life = 0; life < 4; life += 1) {
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          (i % 2 === 0 ? one : two).resources.execute(
            gadget,
            'g',
            createGadget('g', `name-${i % 3}`, [`code-${i}`]),
            fakeContext(`create ${life} ${i}`),
          ),
        ),
      );
      const accepted = outcomes.flatMap((outcome, i) => (outcome.outcome === 'accepted' ? [i] : []));
      expect(accepted, `life ${life}`).to.have.length(1);
      expect(outcomes[accepted[0] ?? 0]?.loaded.version).to.equal(0);
      // Whoever came too late holds nothing: others take those names and codes.
      const rest = [0, 1, 2].filter((n) => n !== (accepted[0] ?? 0) % 3);
      for (const n of rest)
        for (const type of ['create', 'delete'])
          expect(
            await two.resources.execute(
              gadget,
              `other-${n}`,
              type === 'create' ? createGadget(`other-${n}`, `name-${n}`, [`code-${n}`]) : deleteGadget,
              fakeContext(`${type} ${life} other-${n}`),
            ),
          ).to.include({ outcome: 'accepted' });
      // Of two deletions that come at once with the same id, none reaches the next life.
      const removals = [one, two].map(({ resources }) =>
        resources.execute(gadget, 'g', deleteGadget, fakeContext(`delete ${life}`)),
      );
      expect((await Promise.all(removals)).map(({ outcome }) => outcome)).to.deep.equal([
        'accepted',
        'accepted',
      ]);
    }
    const late = await two.resources.execute(gadget, 'g', createGadget('g', 'last'), fakeContext('last'));
    await one.resources.execute(gadget, 'g', deleteGadget, fakeContext('delete 0'));
    expect(
      (await one.runner.load({ category: 'gadget', decider: gadget.decider, stateVersion: 1 }, 'g')).revision,
    ).to.equal(late.loaded.revision);
  });

  it('keep their word while answers are lost and connections are cut', async () => {
    const seed = Number(process.env['LEDGER_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const random = createRandom(seed);
    const [one, two] = both((store) => createTestRunner(store).runner);
    await one.execute(accounts, 'a', openAccount, fakeContext('open'));
    peer.faults.chooseWith((on) => {
      if (on !== 'append' || random() > 0.25) return undefined;
      const dice = random();
      if (dice < 0.4) return { kind: 'lose-answer', cut: dice < 0.2 };
      return dice < 0.6 ? { kind: 'drop' } : { kind: 'late', ms: 20 };
    });
    const acknowledged: string[] = [];
    const unknown: string[] = [];
    const refused: string[] = [];
    const client = async (name: string, index: number): Promise<void> => {
      for (let i = 0; i < 10; i += 1) {
        const id = `${name}${i}`;
        try {
          const outcome = await ((i + index) % 2 === 0 ? one : two).execute(
            accounts,
            'a',
            deposit(id),
            fakeContext(id),
          );
          (outcome.outcome === 'accepted' ? acknowledged : refused).push(id);
        } catch (error) {
          if (error instanceof OutcomeUnknown) unknown.push(id);
          else if (error instanceof StoreUnavailable) refused.push(id);
          else throw error;
        }
      }
    };
    await Promise.all(['x', 'y', 'z'].map(client));
    peer.faults.clear();
    const before = await deposits(stores[0]);
    const hint = `seed ${seed}`;
    for (const id of acknowledged)
      expect(
        before.filter((one) => one === id),
        `${id}, ${hint}`,
      ).to.have.length(1);
    for (const id of refused) expect(before, `${id} was refused, ${hint}`).not.to.include(id);
    for (const id of unknown) {
      const outcome = await two.execute(accounts, 'a', deposit(id), fakeContext(id));
      expect(outcome.outcome, `${id}, ${hint}`).to.equal('accepted');
    }
    expect((await deposits(stores[1])).toSorted(), hint).to.deep.equal(
      [...acknowledged, ...unknown].toSorted(),
    );
    expect(acknowledged.length, hint).to.be.greaterThan(0);
  });

  it('refuse with 503 while the server is away, leave nothing, and go on by themselves', async () => {
    const [one, two] = both((store) => createTestRunner(store).runner);
    await one.execute(accounts, 'a', openAccount, fakeContext('open'));
    await peer.goDown();
    const failures = await Promise.all(
      [one, two].map((runner, i) =>
        runner
          .execute(accounts, 'a', deposit(`down ${i}`), fakeContext(`down ${i}`))
          .catch((e: unknown) => e),
      ),
    );
    // What was on its way when the connection went is not known; what was never sent was refused.
    for (const failed of failures)
      expect(failed).to.satisfy((e: unknown) => e instanceof StoreUnavailable || e instanceof OutcomeUnknown);
    await peer.restart();
    // As a client does that got a 503: the same command again, until the connection is back.
    const again = async (): Promise<string> => {
      try {
        return (await two.execute(accounts, 'a', deposit('up'), fakeContext('up'))).outcome;
      } catch (error) {
        if (error instanceof StoreUnavailable || error instanceof OutcomeUnknown) return 'not yet';
        throw error;
      }
    };
    let outcome = 'not yet';
    await eventually(
      'the connection is back',
      async () => (outcome = await again()) !== 'not yet',
      15_000,
      20,
    );
    expect(outcome).to.equal('accepted');
    expect(await deposits(stores[1])).to.deep.equal(['up']);
  });
});
