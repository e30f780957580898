import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { TREE_HEADS_STREAM } from '../../../src/app/audit/tree-heads.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Logger } from '../../../src/app/ports.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';

/** 3 leaves are signed, 2 more are not yet when the service stops. */
describe('the last head of a service that stops', () => {
  let store: EventStore;
  let models: ReadModels;
  let time: ManualTime;
  let write: ReturnType<typeof createHistoryWriter>;
  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
    time = manualTime();
    write = createHistoryWriter(store, 'h');
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  const append = async (count: number, apply = true): Promise<void> => {
    const step = { stream: 'cluster-c1', tenant: 'acme', subject: 'alice', data: {} };
    await write(Array.from({ length: count }, () => ({ ...step, types: ['ClusterLabelled'] })));
    if (apply) await followed(models, store);
  };
  type Options = Partial<Parameters<typeof openSigning>[0]>;
  /** Runs until 3 leaves are signed, stops after 2 more. */
  const stopped = async (options: Options = {}, before: () => Promise<void> | void = () => append(2)) => {
    const signing = openSigning({ store, tree: audit(models), ...time, ...options });
    const stop = new AbortController();
    let hasEnded = false;
    const running = signing.signer.run(stop.signal).then(() => {
      hasEnded = true;
    });
    await append(3);
    await time.pass(500);
    expect((await signing.heads.latest())?.size).to.equal(3);
    await before();
    stop.abort();
    await time.pass(0);
    return {
      running,
      signing,
      hasEnded: () => hasEnded,
      size: async () => (await signing.heads.latest())?.size,
    };
  };

  it('covers what was not signed yet', async () => {
    const { running, size, signing } = await stopped();
    await running;
    expect(await size()).to.equal(5);
    expect(signing.signer.status()).to.deep.equal({ state: 'standby', failures: 0 });
  });

  it('is not signed when nothing is new', async () => {
    const { running } = await stopped({}, () => undefined);
    await running;
    expect(await store.currentRevision(TREE_HEADS_STREAM)).to.equal(0);
  });

  it('waits for what the tree does not hold yet', async () => {
    let asked = 0;
    const { running, size } = await stopped(
      {
        reaches: async (position) => {
          asked += 1;
          return models.waitFor('audit', position, { timeoutMs: 5000 });
        },
      },
      () => append(2, false),
    );
    await running;
    expect([asked, await size()]).to.deep.equal([1, 5]);
  });

  for (const [lastMs, settings] of [
    [2000, {}],
    [200, { lastMs: 200 }],
  ] as const)
    it(`is given up after ${lastMs} ms, so that the service ends: the next start signs`, async () => {
      const reaches = (): Promise<boolean> => new Promise(() => undefined);
      const { running, hasEnded, size } = await stopped({ settings, reaches });
      await time.pass(lastMs - 50);
      expect(hasEnded()).to.equal(false);
      await time.pass(100);
      await running;
      expect(await size()).to.equal(3);
    });

  it('is given up where the store does not take it', async () => {
    let down = false;
    const failing: EventStore = {
      ...store,
      append: (stream, ...rest) => {
        if (down && stream === TREE_HEADS_STREAM) throw new StoreUnavailable('down');
        return store.append(stream, ...rest);
      },
    };
    const { running, size } = await stopped({ store: failing }, async () => {
      await append(2);
      down = true;
    });
    await running;
    expect(await size()).to.equal(3);
  });

  it('is not tried where nothing could be signed before', async () => {
    let [down, tried] = [false, 0];
    const failing: EventStore = {
      ...store,
      append: (stream, ...rest) => {
        if (!down || stream !== TREE_HEADS_STREAM) return store.append(stream, ...rest);
        tried += 1;
        throw new StoreUnavailable('down');
      },
    };
    let before = 0;
    const { running, size } = await stopped({ store: failing }, async () => {
      await append(2);
      down = true;
      await time.pass(12_000);
      before = tried;
    });
    await running;
    expect(before).to.be.greaterThan(0);
    expect([tried, await size()]).to.deep.equal([before, 3]);
  });

  it('is not signed over a tree that is wrong, which is told', async () => {
    let wrong = false;
    const told: string[] = [];
    const none = (): void => undefined;
    const logger: Logger = {
      debug: none,
      info: none,
      warn: none,
      error: (_fields, text) => void told.push(text ?? ''),
      child: () => logger,
    };
    const tree = audit(models);
    const changed: AuditTree = {
      ...tree,
      hashAt: (level, index) => tree.hashAt(level, wrong && index === 2 ? 1 : index),
    };
    const { running, size } = await stopped({ tree: changed, logger }, async () => {
      await append(2);
      wrong = true;
    });
    await running;
    expect(await size()).to.equal(3);
    expect(told).to.have.length(1);
    expect(told[0]).to.include('has another root now');
  });

  it('is left to the instance that has taken over', async () => {
    const lost: Ownership = {
      hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal, isHeld: () => false }),
    };
    const { running, size } = await stopped({ ownership: lost });
    await running;
    expect(await size()).to.equal(3);
  });

  it('is left to whoever took over when the lease was lost before the service stops', async () => {
    const lost = new AbortController();
    const ownership: Ownership = {
      hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal: AbortSignal.any([signal, lost.signal]) }),
    };
    const { running, size } = await stopped({ ownership }, async () => {
      await append(2);
      lost.abort();
      await time.pass(0);
    });
    await running;
    expect(await size()).to.equal(3);
  });

  it('is none of an empty log, which nobody waits for', async () => {
    let asked = 0;
    const reaches = async (): Promise<boolean> => {
      asked += 1;
      return true;
    };
    // No lease either.
    const ownership: Ownership = { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) };
    const { signer, heads } = openSigning({ store, tree: audit(models), ...time, reaches, ownership });
    const stop = new AbortController();
    const running = signer.run(stop.signal);
    await time.pass(500);
    stop.abort();
    await time.pass(0);
    await running;
    expect(await heads.latest()).to.equal(undefined);
    expect(asked).to.equal(0);
  });
});
