import { expect } from 'chai';
import { memoryAuditKeyFiles } from '../../../src/adapters/keys/audit-keys.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { unchangedEventsOf } from '../../../src/app/audit/event-source.ts';
import { createLeafSample } from '../../../src/app/audit/leaf-sample.ts';
import { originOf } from '../../../src/app/audit/merkle/checkpoint.ts';
import type { AuditTree } from '../../../src/app/audit/tree.ts';
import { LogDamaged, type EventStore, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { Logger } from '../../../src/app/ports.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { createHistoryWriter } from '../../support/audit/random-history.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';

const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const WHAT_TO_DO =
  'nothing is signed any more: keep a copy of the store as it is, and follow ops/runbooks/LedgerAuditTreeMismatch.md';

/** A log in which somebody changes what lies there already, beneath the service. */
describe('a log that is changed beneath the service', () => {
  let store: EventStore;
  let models: ReadModels;
  let tree: AuditTree;
  let time: ManualTime;
  /** What somebody made of an event; undefined: took it out. */
  let forge: (event: RecordedEvent) => RecordedEvent | undefined;
  let forged: EventStore;

  const append = async (count: number): Promise<void> => {
    const write = createHistoryWriter(store, `s${tree.size()}`);
    await write(
      Array.from({ length: count }, (_, n) => ({
        stream: `cluster-c${tree.size()}-${n % 5}`,
        tenant: 'acme',
        subject: 'alice',
        types: ['ClusterLabelled'],
        data: { n },
      })),
    );
    await followed(models, store);
  };
  const isOf = (event: RecordedEvent, place: number): boolean => event.id === tree.leaf(place)?.record.id;

  beforeEach(async () => {
    store = createMemoryEventStore();
    models = await openAuditView(store);
    tree = audit(models);
    time = manualTime();
    forge = (event) => event;
    forged = {
      ...store,
      readStream: async function* (stream, options) {
        for await (const event of store.readStream(stream, options)) {
          const shown = forge(event);
          if (shown !== undefined) yield shown;
        }
      },
    };
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  it('is looked at from the last head on before anything is signed over it, however large it is', async () => {
    await append(60);
    const looked: number[] = [];
    const counted: AuditTree = {
      ...tree,
      leaves: (from, limit) => {
        const leaves = tree.leaves(from, limit);
        looked.push(...leaves.map(({ index }) => index));
        return leaves;
      },
    };
    const signal = new AbortController().signal;
    const sample = createLeafSample({ store: forged, tree: counted, ...time, rest, startAt: () => 0 });
    await sample.tail(20, 60, signal);
    expect(looked).to.deep.equal(Array.from({ length: 40 }, (_, n) => 20 + n));
    forge = (event) => (isOf(event, 10) ? undefined : event);
    await sample.tail(20, 60, signal);
    forge = (event) => (isOf(event, 41) ? undefined : event);
    const found = await sample.tail(20, 60, signal).catch((error: unknown) => error);
    expect(found).to.be.instanceOf(LogDamaged).and.to.have.property('place', 41);
    // Of a log of which nothing was signed yet, the newest part.
    looked.length = 0;
    forge = (event) => event;
    await createLeafSample({ store: forged, tree: counted, ...time, rest, mostTail: 25 }).tail(0, 60, signal);
    expect(looked).to.deep.equal(Array.from({ length: 25 }, (_, n) => 35 + n));
  });

  it('is not signed by who takes over, where what the one before left unsigned is not there any more', async () => {
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const sign = async (from: EventStore, look: () => Promise<void>, instance: string) => {
      const stop = new AbortController();
      const signing = openSigning({ store: from, tree, files, instance, ...time });
      const running = signing.signer.run(stop.signal);
      await look();
      const { status } = signing.signer;
      const seen = status();
      stop.abort();
      await running;
      return { seen, size: (await signing.heads.latest())?.size };
    };
    await append(10);
    const first = await sign(store, () => time.pass(500), 'one');
    expect(first.size).to.equal(10);
    await append(30);
    forge = (event) => (isOf(event, 25) ? undefined : event);
    const second = await sign(forged, () => time.pass(15_000), 'two');
    expect([second.seen.state, second.size]).to.deep.equal(['mismatch', 10]);
    expect(second.seen.error).to.include('leaf 25 of the audit tree, is missing in the log');
  });

  it('is signed no more, names the event, and is signed again when it is right', async () => {
    const stop = new AbortController();
    const files = memoryAuditKeyFiles(originOf(store.storeId));
    const signing = openSigning({ store: forged, tree, files, ...time });
    const running = signing.signer.run(stop.signal);
    await append(15);
    await time.pass(500);
    expect((await signing.heads.latest())?.size).to.equal(15);

    forge = (event) => (isOf(event, 7) ? { ...event, data: { n: 4711 } } : event);
    await append(15);
    await time.pass(30_000);
    const { state, error } = signing.signer.status();
    const name = `${tree.leaf(7)?.record.stream}@${tree.leaf(7)?.record.revision}`;
    expect([state, error]).to.deep.equal([
      'mismatch',
      `the event ${name} at position ${tree.leaf(7)?.position}, leaf 7 of the audit tree, is not what it was when it was recorded; ` +
        WHAT_TO_DO,
    ]);
    expect((await signing.heads.latest())?.size).to.equal(15);

    forge = (event) => event;
    await time.pass(30_000);
    expect(signing.signer.status().state).to.equal('signing');
    expect((await signing.heads.latest())?.size).to.equal(30);
    stop.abort();
    await time.pass(0);
    await running;
  });

  it('is alarming too when the store itself finds that an event is not what it stored', async () => {
    const stop = new AbortController();
    const told: [string, object, string | undefined][] = [];
    const at =
      (level: string): Logger['error'] =>
      (fields, text) =>
        void told.push([level, fields, text]);
    const logger: Logger = {
      debug: () => undefined,
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: () => logger,
    };
    await append(15);
    const leaf = tree.leaf(7);
    const event = `${leaf?.record.stream}@${leaf?.record.revision}`;
    const position = leaf?.position ?? '';
    forge = (stored) => {
      if (isOf(stored, 7))
        throw new LogDamaged('the event log f is damaged: its checksum', { event, position });
      return stored;
    };
    const signing = openSigning({ store: forged, tree, logger, ...time });
    const running = signing.signer.run(stop.signal);
    await time.pass(60_000);
    const says =
      `the event ${event} that the log holds at position ${position} is not the one that was recorded; ` +
      WHAT_TO_DO;
    expect(signing.signer.status()).to.deep.include({ state: 'mismatch', error: says });
    expect(await signing.heads.latest()).to.equal(undefined);
    expect(told.filter(([level]) => level !== 'info')).to.deep.equal([['error', { event, position }, says]]);
    stop.abort();
    await time.pass(0);
    await running;
  });

  it('is gone through in order, round and round, from a place that nobody can tell', async () => {
    await append(300);
    const seen: number[] = [];
    const places = new Map(tree.leaves(0, 300).map(({ index, record }) => [record.id, index]));
    forge = (event) => {
      const place = places.get(event.id);
      if (place !== undefined) seen.push(place);
      return event;
    };
    // The clock stands still: the time of a look is never over, and no look needs more than all leaves.
    const { clock } = time;
    const sample = createLeafSample({ store: forged, tree, clock, rest, startAt: () => 290 });
    await sample.look(300, new AbortController().signal);
    expect(seen.toSorted((a, b) => a - b)).to.deep.equal([...places.values()]);
    expect(seen.slice(0, 10).toSorted((a, b) => a - b)).to.deep.equal([
      290, 291, 292, 293, 294, 295, 296, 297, 298, 299,
    ]);
  });

  it('takes its time, and no more: at least 128 leaves, a million in a day', async () => {
    await append(2000);
    let seen = 0;
    forge = (event) => {
      seen += 1;
      return event;
    };
    let now = 0;
    const clock = { monotonicMs: () => (now += 1) };
    const sample = createLeafSample({ store: forged, tree, clock, rest, startAt: () => 0 });
    await sample.look(2000, new AbortController().signal);
    expect(seen).to.equal(128);
    expect(128 * 8_640).to.be.greaterThan(1_000_000);
  });

  it('is noticed within one round, and then at every look', async () => {
    await append(2000);
    let now = 0;
    const ticking = { monotonicMs: () => (now += 1) };
    const sample = createLeafSample({ store: forged, tree, clock: ticking, rest });
    const look = (): Promise<string> =>
      sample.look(2000, new AbortController().signal).then(
        () => 'nothing',
        (error: unknown) => String(error),
      );
    expect(await look()).to.equal('nothing');
    forge = (event) => (isOf(event, 1234) ? undefined : event);
    let found = 'nothing';
    let looks = 0;
    for (; looks <= 16 && found === 'nothing'; looks += 1) found = await look();
    expect(found).to.match(/^ChangedEvent: .*leaf 1234 of the audit tree, is missing in the log$/);
    forge = (event) => (isOf(event, 1234) ? { ...event, type: 'ClusterDeleted' } : event);
    for (let again = 0; again < 5; again += 1) expect(await look()).to.include('leaf 1234 of');
    forge = (event) => event;
    expect(await look()).to.equal('nothing');
  });

  it('lets others have the thread', async () => {
    await append(32);
    let now = 0;
    let rests = 0;
    // Each look at the clock finds that 3 ms have passed.
    const clock = { monotonicMs: () => (now += 3) };
    const sample = createLeafSample({ store, tree, clock, rest: async () => void (rests += 1) });
    await sample.look(32, new AbortController().signal);
    expect(rests).to.be.greaterThan(10);
  });

  it('is not shown beside the leaf of another event', async () => {
    await append(5);
    const leaves = tree.leaves(0, 5);
    expect(await unchangedEventsOf(forged, leaves, rest)).to.have.length(5);
    forge = (event) =>
      isOf(event, 2) ? { ...event, metadata: { ...event.metadata, tenant: 'globex' } } : event;
    const refused = await unchangedEventsOf(forged, leaves, rest).catch(String);
    expect(refused).to.include('leaf 2 of the audit tree');
    forge = (event) => (isOf(event, 2) ? undefined : event);
    expect((await unchangedEventsOf(forged, leaves, rest))[2]).to.equal(undefined);
  });
});
