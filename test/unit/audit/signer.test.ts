import { expect } from 'chai';
import { memoryAuditKeyFiles } from '../../../src/adapters/keys/audit-keys.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { AUDIT_KEYS_STREAM } from '../../../src/app/audit/audit-keys.ts';
import { originOf, parseCheckpoint } from '../../../src/app/audit/merkle/checkpoint.ts';
import { rootAt } from '../../../src/app/audit/merkle/compact-range.ts';
import { keyChain } from '../../../src/app/audit/merkle/key-chain.ts';
import { verifyNote } from '../../../src/app/audit/merkle/note.ts';
import { TREE_HEADS_STREAM, type TreeHead } from '../../../src/app/audit/tree-heads.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { createHistoryWriter, leavesOf, type Step } from '../../support/audit/random-history.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { silentLogger } from '../../support/loggers.ts';

const base64 = (text: string): Buffer => Buffer.from(text, 'base64');
describe('signer of tree heads', () => {
  let store: EventStore;
  let models: ReadModels;
  let tree: AuditTree;
  let write: (steps: readonly Step[]) => Promise<void>;
  let time: ManualTime;
  let stop: AbortController;
  let running: Promise<void>[];

  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
    tree = audit(models);
    write = createHistoryWriter(store, 's');
    time = manualTime();
    stop = new AbortController();
    running = [];
  });
  afterEach(async () => {
    stop.abort();
    await time.pass(0);
    await Promise.all(running);
    await models.close();
    await store.close();
  });

  const step = (n: number, tenant = 'acme'): Step => ({
    stream: `cluster-c${n % 5}`,
    tenant,
    subject: 'alice',
    types: ['ClusterLabelled'],
    data: { n },
  });
  const append = async (count: number, tenant?: string): Promise<void> => {
    await write(Array.from({ length: count }, (_, n) => step(n, tenant)));
    await followed(models, store);
  };
  const open = (options: Partial<Parameters<typeof openSigning>[0]> = {}) =>
    openSigning({ store, tree, ...time, ...options });
  const start = (signer: { run(signal: AbortSignal): Promise<void> }): AbortController => {
    const own = new AbortController();
    running.push(signer.run(AbortSignal.any([own.signal, stop.signal])));
    return own;
  };
  const headsIn = async (signing: ReturnType<typeof open>): Promise<TreeHead[]> => {
    const found: TreeHead[] = [];
    for await (const head of signing.heads.all(0)) found.push(head);
    return found;
  };
  const sizes = async (signing: ReturnType<typeof open>): Promise<number[]> =>
    (await headsIn(signing)).map(({ size }) => size);

  it('signs at once after a pause, then every 10 s or 1,000 leaves, and nothing when nothing is new', async () => {
    const signing = open();
    start(signing.signer);
    await time.pass(60_000);
    expect(await sizes(signing)).to.deep.equal([]);
    await append(3);
    await time.pass(500);
    expect(await sizes(signing)).to.deep.equal([3]);
    await append(2);
    await time.pass(9000);
    expect(await sizes(signing)).to.deep.equal([3]);
    await time.pass(1500);
    expect(await sizes(signing)).to.deep.equal([3, 5]);
    await append(1000);
    await time.pass(500);
    expect(await sizes(signing)).to.deep.equal([3, 5, 1005]);
    await time.pass(60_000);
    expect(await sizes(signing)).to.deep.equal([3, 5, 1005]);
    expect(signing.signer.status()).to.deep.equal({ state: 'signing', failures: 0 });
  });

  it('writes checkpoints that say what the tree is, in a stream that is no leaf', async () => {
    const signing = open();
    start(signing.signer);
    await append(3);
    await append(1, 'globex');
    await time.pass(500);
    const [head] = await headsIn(signing);
    const keys = await signing.keys.chain();
    expect(keys).to.have.length(1);
    const { text } = verifyNote(
      head?.note ?? '',
      keys.map(({ vkey }) => vkey),
    );
    const leaves = await leavesOf(store);
    expect(parseCheckpoint(text)).to.deep.equal({
      origin: originOf(store.storeId),
      size: 4,
      root: rootAt(4, tree.hashAt),
      tenants: { count: 2, root: base64(head?.tenantsRoot ?? '') },
      position: leaves.at(-1)?.position,
      time: head?.at,
    });
    expect(tree.size()).to.equal(4);
    expect(await signing.proofs.trust()).to.deep.equal({
      origin: signing.origin,
      keys,
      pin: head?.note,
    });
  });

  it('finds the head that covers a leaf', async () => {
    const signing = open({ settings: { everyLeaves: 1 } });
    start(signing.signer);
    for (let n = 0; n < 9; n += 1) {
      await append(2);
      await time.pass(500);
    }
    const all = await sizes(signing);
    expect(all).to.deep.equal([2, 4, 6, 8, 10, 12, 14, 16, 18]);
    for (let index = 0; index < 18; index += 1)
      expect((await signing.heads.covering(index))?.size).to.equal(all.find((size) => size > index));
    expect(await signing.heads.covering(18)).to.equal(undefined);
    const later: number[] = [];
    for await (const { size } of signing.heads.all(11)) later.push(size);
    expect(later).to.deep.equal([12, 14, 16, 18]);
    const newest: number[] = [];
    for await (const { size } of signing.heads.newest(3)) newest.push(size);
    expect(newest).to.deep.equal([18, 16, 14]);
  });

  it('replaces its key by one that the old one announces; the old one is gone', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const signing = open({ files });
    start(signing.signer);
    await append(1);
    await time.pass(500);
    await signing.keys.rotate();
    await append(1);
    await time.pass(10_500);
    await signing.keys.rotate();
    await append(1);
    await time.pass(10_500);
    const { keys, pin } = await signing.proofs.trust();
    expect(keys).to.have.length(3);
    const chain = keyChain(signing.origin, keys, [keys[0]?.vkey ?? '']);
    expect(chain.problems).to.deep.equal([]);
    expect([...chain.successors.values()].map(({ size }) => size)).to.deep.equal([1, 2]);
    expect(verifyNote(pin ?? '', chain.vkeys).signers).to.deep.equal([keys[2]?.vkey]);
    const kept = await Promise.all(keys.map(async ({ vkey }) => (await files.find(vkey)) !== undefined));
    expect(kept).to.deep.equal([false, false, true]);
    const heads = await headsIn(signing);
    expect(new Set(heads.map(({ keyId }) => keyId)).size).to.equal(3);
    for (const { note } of heads) verifyNote(note, chain.vkeys);
  });

  it('signs with no key but the one that the log names', async () => {
    const signing = open();
    start(signing.signer);
    await append(1);
    await time.pass(500);
    const elsewhere = open({ instance: 'two', ownership: alone, settings: { everyLeaves: 1 } });
    start(elsewhere.signer);
    await append(1);
    await time.pass(500);
    expect(elsewhere.signer.status()).to.deep.include({ state: 'failing' });
    expect(elsewhere.signer.status().error).to.match(/restore it from its backup/);
    expect(await signing.keys.chain()).to.have.length(1);
  });

  it('of two instances that make the first key at once, one wins and both use its key', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const [one, two] = [open({ files }), open({ files, instance: 'two' })];
    const [first, second] = await Promise.all([one.keys.current(), two.keys.current()]);
    expect(first.vkey).to.equal(second.vkey);
    expect(await store.currentRevision(AUDIT_KEYS_STREAM)).to.equal(0);
  });

  it('signs nothing over a tree that is not the one it signed, and says which size', async () => {
    const signing = open();
    const own = start(signing.signer);
    await append(5);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    const other: AuditTree = {
      ...tree,
      hashAt: (level, index) => tree.hashAt(level, index === 4 ? 3 : index),
    };
    const later = open({ tree: other, instance: 'two', ownership: alone });
    start(later.signer);
    await append(2000);
    await time.pass(60_000);
    expect(await sizes(later)).to.deep.equal([5]);
    const { state, error, failures } = later.signer.status();
    expect(state).to.equal('mismatch');
    expect(error).to.match(/size 5/);
    expect(failures).to.be.greaterThan(1);
  });

  it('notices tenants that are not those it signed', async () => {
    const signing = open();
    const own = start(signing.signer);
    await append(5);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    const other: AuditTree = { ...tree, tenants: () => [] };
    const later = open({ tree: other, instance: 'two', ownership: alone });
    start(later.signer);
    await append(1);
    await time.pass(500);
    expect(later.signer.status()).to.deep.include({ state: 'mismatch' });
    expect(later.signer.status().error).to.match(/trees of tenants/);
  });

  it('signs no tree that may hold what the log does not, as one of before a crash does', async () => {
    let caughtUp = false;
    const signing = open({ caughtUp: () => caughtUp });
    start(signing.signer);
    await append(1500);
    await time.pass(20_000);
    expect(await sizes(signing)).to.deep.equal([]);
    expect(signing.signer.status().state).to.equal('catching-up');
    caughtUp = true;
    await time.pass(1000);
    expect(await sizes(signing)).to.deep.equal([1500]);
  });

  it('waits for a tree that is not as far as the last head, and takes a shorter log for another one', async () => {
    const signing = open();
    const own = start(signing.signer);
    await append(5);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    // What another instance signed has not come to this one.
    let lastLeaf = 2;
    const short: AuditTree = {
      ...tree,
      size: () => 3,
      leaf: (index) => tree.leaf(index === 2 ? lastLeaf : index),
    };
    const later = open({ tree: short, instance: 'two', ownership: alone });
    start(later.signer);
    await time.pass(20_000);
    expect(later.signer.status().state).to.equal('catching-up');
    // Up to the position that was signed there are fewer leaves.
    lastLeaf = 4;
    await time.pass(1000);
    expect(later.signer.status().state).to.equal('mismatch');
    expect(later.signer.status().error).to.match(/size 5, which was signed, is gone: the log has only 3/);
  });

  it('takes a log that ends before what was signed for another one', async () => {
    const signing = open();
    const own = start(signing.signer);
    await append(5);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    const third = tree.leaf(2)?.position ?? '';
    const cut: EventStore = { ...store, lastPosition: async () => third };
    const later = open({ store: cut, tree: { ...tree, size: () => 3 }, instance: 'two', ownership: alone });
    start(later.signer);
    await time.pass(1000);
    expect(later.signer.status().state).to.equal('mismatch');
  });

  it('goes on after it was wrong', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const signing = open({ files });
    const own = start(signing.signer);
    await append(5);
    await time.pass(500);
    own.abort();
    await time.pass(0);
    let wrong = true;
    const repaired: AuditTree = { ...tree, hashAt: (level, index) => tree.hashAt(level, wrong ? 0 : index) };
    const later = open({ tree: repaired, files, instance: 'two', ownership: alone });
    start(later.signer);
    await append(1);
    await time.pass(500);
    expect(later.signer.status().state).to.equal('mismatch');
    wrong = false;
    await time.pass(11_000);
    expect(later.signer.status().state).to.equal('signing');
    expect(await sizes(later)).to.deep.equal([5, 6]);
  });

  it('is taken over by the instance that stood by, which goes on behind the last head', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const lease = (instance: string) =>
      createLeases({
        store,
        instance,
        directory: instance,
        ...time,
        logger: silentLogger,
        exclusive: false,
      })('auditor');
    const one = open({ files, ownership: lease('one') });
    const two = open({ files, instance: 'two', ownership: lease('two') });
    const first = start(one.signer);
    await append(3);
    await time.pass(1000);
    start(two.signer);
    await append(2);
    await time.pass(20_000);
    expect([one.signer.status().state, two.signer.status().state]).to.deep.equal(['signing', 'standby']);
    first.abort();
    await append(4);
    await time.pass(60_000);
    expect(one.signer.status().state).to.equal('standby');
    expect(two.signer.status()).to.deep.equal({ state: 'signing', failures: 0 });
    expect(await sizes(two)).to.deep.equal([3, 5, 9]);
  });

  it('two that sign at once write one line of heads', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const settings = { everyLeaves: 1, lookMs: 100 };
    const [one, two] = [
      open({ files, ownership: alone, settings }),
      open({ files, instance: 'two', ownership: alone, settings }),
    ];
    start(one.signer);
    start(two.signer);
    for (let n = 0; n < 20; n += 1) {
      await append(1);
      await time.pass(100);
    }
    await time.pass(1000);
    const all = await sizes(one);
    expect(all.at(-1)).to.equal(20);
    expect(all).to.deep.equal([...new Set(all)].toSorted((left, right) => left - right));
    expect([one.signer.status().failures, two.signer.status().failures]).to.deep.equal([0, 0]);
  });

  it('goes on where it was when the store fails, or does not say whether it stored', async () => {
    const failures: ('before' | 'after')[] = ['after', 'before'];
    const failing: EventStore = {
      ...store,
      append: async (stream, ...rest) => {
        const failure = stream === TREE_HEADS_STREAM ? failures.shift() : undefined;
        if (failure === 'before') throw new StoreUnavailable('down for a moment');
        const appended = await store.append(stream, ...rest);
        if (failure === 'after') throw new OutcomeUnknown(stream);
        return appended;
      },
    };
    const signing = open({ store: failing });
    start(signing.signer);
    await append(3);
    await time.pass(500);
    expect(signing.signer.status()).to.deep.include({ state: 'failing', failures: 1 });
    expect(await sizes(signing)).to.deep.equal([3]);
    await append(3);
    await time.pass(30_000);
    expect(signing.signer.status()).to.deep.equal({ state: 'signing', failures: 2 });
    expect(await sizes(signing)).to.deep.equal([3, 6]);
  });

  it('keeps the newest 100,000 heads', async () => {
    const limits: [string, number][] = [];
    const recording: EventStore = {
      ...store,
      setMaxCount: async (stream, most) => {
        limits.push([stream, most]);
        await store.setMaxCount(stream, most);
      },
    };
    start(open({ store: recording }).signer);
    await append(1);
    await time.pass(500);
    expect(limits).to.deep.include([TREE_HEADS_STREAM, 100_000]);
  });
});

/** Owns at once, whoever else does. */
const alone = {
  hold: (signal: AbortSignal, whileOwner: (lease: { epoch: number; signal: AbortSignal }) => Promise<void>) =>
    whileOwner({ epoch: 1, signal }),
};
