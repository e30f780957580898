import { expect } from 'chai';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createMemoryEventStore } from '../../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openSqliteEventStore } from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openAuditKeyFiles } from '../../../../src/adapters/keys/audit-keys.ts';
import { createLeases } from '../../../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemTimers } from '../../../../src/adapters/system/system-ports.ts';
import { originOf } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { rootAt, rootOf } from '../../../../src/app/audit/merkle/compact-range.ts';
import { keyChain } from '../../../../src/app/audit/merkle/key-chain.ts';
import { leafHashOf, leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import { verifyNote } from '../../../../src/app/audit/merkle/note.ts';
import { tenantLeafHash } from '../../../../src/app/audit/merkle/tenants.ts';
import { verifyInclusion } from '../../../../src/app/audit/merkle/proofs.ts';
import type { EventStore } from '../../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { auditView } from '../../../../src/projections/audit/audit-view.ts';
import { openReadModels } from '../../../../src/projections/open-read-models.ts';
import { createBench } from '../../../support/eventstoredb-peer/fixture.ts';
import { audit, followed, openAuditView, openSigning } from '../../../support/audit/open-audit.ts';
import { createHistoryWriter, leavesOf, TENANTS, type Step } from '../../../support/audit/random-history.ts';
import { temporaryFolders } from '../../../support/projections/open-notes.ts';
import { eventually } from '../../../support/eventually.ts';
import { silentLogger } from '../../../support/loggers.ts';

const moduleUrl = (path: string): string => new URL(`../../../../src/${path}`, import.meta.url).href;

/** Three hundred appends of two events to forty streams of five tenants, bookkeeping in between. */
const HISTORY: readonly Step[] = Array.from({ length: 300 }, (_, n) => ({
  stream: n % 10 === 9 ? 'sys-lease-x' : `cluster-c${n % 40}`,
  tenant: TENANTS[n % TENANTS.length] ?? '',
  subject: `s${n % 3}`,
  types: ['ClusterLabelled', 'NotKnownYet'],
  data: { n, text: 'é\n"', number: 1e21, nested: { b: [1, null], a: true } },
}));

describe('the tree over the log, in worker threads', function () {
  this.timeout(60_000);
  const folders = temporaryFolders();
  const bench = createBench();
  const endings: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of endings.splice(0).toReversed()) await end();
    await bench.clean();
    folders.clean();
  });

  /** One instance: its own view in a worker thread, its own signer, keys shared with the others. */
  const instance = async (
    store: EventStore,
    readerConfig: JsonObject,
    secrets: string,
    name = 'one',
    exclusive = false,
  ) => {
    const models = await openReadModels({
      dir: folders.make(),
      views: [auditView()],
      source: {
        kind: 'worker',
        storeId: store.storeId,
        readerModule: moduleUrl('composition/log-reader-module.ts'),
        readerConfig,
        viewsModule: moduleUrl('projections/views.ts'),
        viewsConfig: { audit: true },
      },
    });
    endings.push(() => models.close());
    const [clock, timers] = [systemClock(), systemTimers()];
    const signing = openSigning({
      store,
      tree: audit(models),
      clock,
      timers,
      instance: name,
      files: await openAuditKeyFiles({
        directory: `${secrets}/audit`,
        kek: Buffer.alloc(32, 7),
        origin: originOf(store.storeId),
      }),
      ownership: createLeases({
        store,
        instance: name,
        directory: name,
        clock,
        timers,
        logger: silentLogger,
        ttlMs: 600,
        exclusive,
      })('auditor'),
      settings: { everyMs: 50, everyLeaves: 100, lookMs: 10 },
    });
    const running = new AbortController();
    const ended = signing.signer.run(running.signal);
    const stop = async (): Promise<void> => {
      running.abort();
      await ended;
    };
    endings.push(stop);
    return { models, ...signing, stop };
  };
  const signedUpTo = async (
    { heads }: Pick<Awaited<ReturnType<typeof instance>>, 'heads'>,
    size: number,
  ): Promise<void> => {
    let reached = 0;
    const deadline = performance.now() + 20_000;
    while (reached < size && performance.now() < deadline) {
      reached = (await heads.latest())?.size ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(reached).to.equal(size);
  };

  /** Everything an auditor can check of the newest head against the log itself. */
  const checkNewest = async (
    store: EventStore,
    { models, heads, keys, proofs }: Awaited<ReturnType<typeof instance>>,
  ): Promise<void> => {
    const leaves = await leavesOf(store);
    const hashes = leaves.map((event) => leafHashOf(leafOf(event)));
    const head = await heads.latest();
    if (head === undefined) throw new Error('nothing was signed');
    expect(head.size).to.equal(leaves.length);
    expect(head.position).to.equal(leaves.at(-1)?.position);
    expect(head.root).to.equal(rootOf(hashes).toString('base64'));
    const reader = audit(models);
    expect(reader.leaves(0, 1000).map(({ position }) => position)).to.deep.equal(
      leaves.map(({ position }) => position),
    );
    const chain = keyChain(originOf(store.storeId), await keys.chain());
    expect(chain.problems).to.deep.equal([]);
    verifyNote(head.note, chain.vkeys);
    for (const tenant of TENANTS) {
      const own = leaves.flatMap(({ metadata }, index) =>
        metadata['tenant'] === tenant ? [hashes[index] as Buffer] : [],
      );
      const proof = await proofs.tenantProof(tenant, head);
      expect(proof?.tree.root).to.deep.equal(rootOf(own));
      if (proof === undefined) continue;
      const { index, count: size, path } = proof;
      const root = Buffer.from(head.tenantsRoot, 'base64');
      const leafHash = tenantLeafHash(proof.tree);
      expect(verifyInclusion({ index, size, path, leafHash, root })).to.equal(true);
    }
  };

  it('is of the embedded log in its order, signed by a key in a private file, and goes on after a restart', async () => {
    const [dataDir, secrets] = [folders.make(), folders.make()];
    const store = await openSqliteEventStore({ dataDir });
    endings.push(() => store.close());
    const write = createHistoryWriter(store, 'same');
    const config = { kind: 'sqlite', dataDir };
    const first = await instance(store, config, secrets, 'one', true);
    await write(HISTORY.slice(0, 150));
    await signedUpTo(first, 270);
    await checkNewest(store, first);
    await first.stop();
    await write(HISTORY.slice(150));
    const second = await instance(store, config, secrets, 'two', true);
    await signedUpTo(second, 540);
    await checkNewest(store, second);
    expect(await second.keys.chain()).to.have.length(1);
    const files = readdirSync(`${secrets}/audit`);
    expect(files).to.have.length(1);
    const file = `${secrets}/audit/${files[0]}`;
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const [key] = await second.keys.chain();
    const seed = (await second.keys.current()).privateKey.export({ format: 'der', type: 'pkcs8' });
    expect(readFileSync(file, 'utf8')).not.to.contain(seed.subarray(-32).toString('base64url'));
    await second.keys.rotate();
    expect(readdirSync(`${secrets}/audit`)).to.have.length(1);
    expect(readdirSync(`${secrets}/audit`)).not.to.deep.equal(files);
    expect((await second.keys.chain())[0]).to.deep.equal(key);
  });

  it('is stopped by no event that somebody else wrote, however deep its data are', async () => {
    const dataDir = folders.make();
    const store = await openSqliteEventStore({ dataDir });
    endings.push(() => store.close());
    const only = await instance(store, { kind: 'sqlite', dataDir }, folders.make(), 'one', true);
    const deep = `{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    await store.append('cluster-c1', 'no_stream', [{ id: 'deep', type: 'Odd', data: deep, metadata: '{}' }]);
    await createHistoryWriter(store, 'same')(HISTORY.slice(0, 1));
    await signedUpTo(only, 3);
  });

  it('of EventStoreDB has the same root for the same events; an instance that stood by takes over', async () => {
    const secrets = folders.make();
    const peer = await bench.peer();
    const { connectionString } = peer;
    const [one, two] = [await bench.store(peer), await bench.store(peer, { instance: 'two' })];
    const configOf = (name: string) => ({ kind: 'eventstoredb', connectionString, instance: `view-${name}` });
    const first = await instance(one, configOf('one'), secrets);
    const write = createHistoryWriter(one, 'same');
    await write(HISTORY.slice(0, 150));
    await signedUpTo(first, 270);
    const second = await instance(two, configOf('two'), secrets, 'two');
    await followed(second.models, two);
    await eventually('the other one stands by', () => second.signer.status().state === 'standby');
    await checkNewest(one, first);
    await first.stop();
    await write(HISTORY.slice(150));
    await signedUpTo(second, 540);
    await checkNewest(two, second);
    // A lease that is short may run out on a busy machine, and is taken again.
    await eventually('the other one signs', () => second.signer.status().state === 'signing');
    expect(second.signer.status().failures).to.equal(0);
    await followed(first.models, one);
    const roots = [first, second].map(({ models }) => rootAt(540, audit(models).hashAt));
    const memory = createMemoryEventStore();
    await createHistoryWriter(memory, 'same')(HISTORY);
    const inMemory = await openAuditView(memory);
    endings.push(() => inMemory.close());
    await followed(inMemory, memory);
    expect(roots[0]).to.deep.equal(roots[1]);
    expect(rootAt(540, audit(inMemory).hashAt)).to.deep.equal(roots[0]);
  });
});
