import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createWorkerFolds } from '../../../../src/adapters/folding/worker-folds.ts';
import { systemClock } from '../../../../src/adapters/system/system-ports.ts';
import { createCommandRunner } from '../../../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../../src/app/log/event-store.ts';
import { eventId } from '../../../../src/app/log/identifiers.ts';
import type { LongFolds } from '../../../../src/app/commands/loaded-streams.ts';
import { aggregateOf, hostType } from '../../../../src/domain/kinds.ts';
import { eventTypes } from '../../../../src/domain/registry.ts';
import { fakeContext } from '../../../support/commands/fake-context.ts';
import { recordingLogger } from '../../../support/loggers.ts';

const EVENTS = 3_000;
const STREAM = 'hostType-h1';
const at = '2026-11-21T10:00:00.000Z';
const aggregate = aggregateOf(hostType);
const codec = createEventCodec(eventTypes);

/** A host type that was revised many times, one append each, as `EVENTS` commands would leave it. */
const writeLongStream = async (store: EventStore): Promise<void> => {
  for (let revision = 0; revision < EVENTS; revision += 1) {
    const { ifRevision: _r, ifVersion: _v, signal: _s, ...context } = fakeContext(`command-${revision}`);
    const data =
      revision === 0
        ? {
            id: 'h1',
            at,
            tenant: 'shared',
            project: '',
            name: 'h1',
            creator: 'system',
            document: { title: '0' },
          }
        : { at, document: { title: String(revision) } };
    const type = revision === 0 ? 'HostTypeDefined' : 'HostTypeRevised';
    const metadata = { ...context, command: 'ReviseDocument', occurredAt: at, instance: 'test' };
    const event = codec.encode({ type, data }, eventId(context.commandId, STREAM, 0), metadata);
    await store.append(STREAM, revision === 0 ? 'no_stream' : revision - 1, [event]);
  }
};

describe('long folds on a worker', function () {
  this.timeout(60_000);
  let dataDir: string;
  let store: SqliteEventStore;
  /** Events that this thread read of the stream. */
  let read = 0;
  const counted = (): EventStore => ({
    ...store,
    readStream: (stream, options) =>
      (async function* () {
        for await (const event of store.readStream(stream, options)) {
          read += 1;
          yield event;
        }
      })(),
  });
  const runnerWith = (longFolds?: LongFolds) =>
    createCommandRunner({
      store: counted(),
      codec,
      clock: systemClock(),
      instance: 'test',
      recordRejection: () => undefined,
      ...(longFolds === undefined ? {} : { longFolds }),
    });
  const logger = recordingLogger();
  const open: LongFolds[] = [];
  const foldsOf = (module: string): LongFolds => {
    const config = { kind: 'sqlite', dataDir };
    const folds = createWorkerFolds({ workerData: { module, config }, logger });
    open.push(folds);
    return folds;
  };
  const REAL = new URL('../../../../src/composition/folding-module.ts', import.meta.url).href;

  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'long-folds-'));
    store = await openSqliteEventStore({ dataDir });
    await writeLongStream(store);
  });
  beforeEach(() => {
    read = 0;
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((folds) => folds.close()));
  });
  after(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  });

  it('gives the state that folding here gives, and reads only the beginning here', async () => {
    const here = await runnerWith().load(aggregate, 'h1');
    expect(read).to.equal(EVENTS);
    read = 0;
    const there = await runnerWith(foldsOf(REAL)).load(aggregate, 'h1');
    expect(there).to.deep.equal(here);
    expect(there).to.include({ revision: EVENTS - 1, version: EVENTS - 1 });
    expect(read).to.be.lessThan(1_000);
  });

  it('stops at the revision that is asked for', async () => {
    for (const asOfRevision of [0, 511, 512, 513, 2_000, EVENTS - 1]) {
      const there = await runnerWith(foldsOf(REAL)).load(aggregate, 'h1', { asOfRevision });
      expect(there).to.deep.equal(await runnerWith().load(aggregate, 'h1', { asOfRevision }));
      expect(there.revision).to.equal(asOfRevision);
    }
  });

  it('knows the appends of a stream that was folded there', async () => {
    const runner = runnerWith(foldsOf(REAL));
    for (const n of [3, 700, EVENTS - 2]) {
      const found = await runner.find(aggregate, 'h1', `command-${n}`);
      expect(found).to.include({ revision: n });
    }
    expect(await runner.find(aggregate, 'h1', 'never')).to.equal(undefined);
  });

  it('is done here when the worker fails, and says so', async () => {
    const broken = `data:text/javascript,${encodeURIComponent("export const openFolding = () => { throw new Error('no reader'); };")}`;
    const there = await runnerWith(foldsOf(broken)).load(aggregate, 'h1');
    expect(there).to.deep.equal(await runnerWith().load(aggregate, 'h1'));
    expect(logger.lines.filter(({ level }) => level === 'warn')).to.have.length.greaterThan(0);
  });

  it('is done here when a fold fails in the worker, which goes on', async () => {
    const picky = `data:text/javascript,${encodeURIComponent(
      "export const openFolding = () => ({ fold: async () => { throw new Error('not this one'); }, close: async () => {} });",
    )}`;
    const folds = foldsOf(picky);
    const there = await runnerWith(folds).load(aggregate, 'h1');
    expect(there.revision).to.equal(EVENTS - 1);
    expect(await runnerWith(folds).load(aggregate, 'h1')).to.deep.equal(there);
  });
});
