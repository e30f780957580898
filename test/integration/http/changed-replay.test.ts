import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { checksum } from '../../../src/adapters/event-store/sqlite/rows.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createMemoryKafka, type MemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createLeafGuard, heldLog } from '../../../src/app/audit/verified-reads.ts';
import { createPublisher } from '../../../src/app/publisher/publisher.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import { topicsOf } from '../../../src/app/streams/topics.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { registry } from '../../../src/domain/registry.ts';
import type { AuditReader } from '../../../src/projections/audit/audit-reader.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PUBLIC } from '../../support/http/service.ts';
import { recordingLogger } from '../../support/loggers.ts';

const STATE = 'osac.state.cluster.v1';
const EVENTS = 'osac.events.clusters.v1';

/** Somebody wrote to the file of the log, with checksums that fit: what is told of the past is what was recorded, or nothing. */
describe('a log file that was written to beneath the service', function () {
  this.timeout(30_000);
  let dataDir: string;
  let stage: AuditStage;
  let kafka: MemoryKafka;
  let suspected: string[];
  let ids: readonly string[];
  let file: DatabaseSync;
  /** The tree of the service; undefined: it has none. */
  let tree: () => AuditReader | undefined;

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'changed-log-'));
    const store = await openSqliteEventStore({ dataDir });
    kafka = createMemoryKafka();
    suspected = [];
    tree = () => stage.service.models.audit;
    const publisher = createPublisher({
      topics: topicsOf(registry, kinds),
      streams: (from = store) => createStreams({ registry, kinds, store: from }),
      recorded: heldLog(
        store,
        createLeafGuard(() => tree()),
      ),
      cluster: kafka,
      store,
      ownership: { hold: async () => undefined },
      clock: systemClock(),
      timers: systemTimers(),
      ids: systemIds(),
      instance: 'test',
      logger: recordingLogger(),
    });
    const ledger = { publisher, suspect: (event: string) => void suspected.push(event) };
    stage = await startAuditStage({ store, ledger, audit: { signs: false } });
    const made: string[] = [];
    for (const name of ['one', 'two']) {
      const id = await stage.order(stage.alice, name);
      made.push(id);
      const changed = await stage.alice('PATCH', `${PUBLIC}/clusters/${id}`, {
        metadata: { labels: { tier: 'gold' } },
      });
      expect(changed.status, changed.text).to.equal(200);
    }
    ids = made;
    await stage.settled(false);
    file = new DatabaseSync(join(dataDir, 'events.db'), { timeout: 5_000 });
  });
  afterEach(async () => {
    file.close();
    await stage.service.close();
    rmSync(dataDir, { recursive: true });
  });

  const nameOf = (cluster: number, revision: number): string => `cluster-${ids[cluster]}@${revision}`;
  const rowOf = (cluster: number, revision: number) =>
    file
      .prepare(
        'SELECT e.* FROM events e JOIN streams s ON s.id = e.stream WHERE s.name = ? AND e.revision = ?',
      )
      .get(`cluster-${ids[cluster]}`, revision) as { [column: string]: string | number | null };
  const forge = (cluster: number, revision: number): void => {
    const row = rowOf(cluster, revision);
    const event = JSON.parse(String(row['data'])) as object;
    const data = JSON.stringify({ ...event, name: 'fake', labels: { tier: 'fake' } });
    const stream = `cluster-${ids[cluster]}`;
    const [id, type] = [String(row['id']), String(row['type'])];
    const [position, at] = [Number(row['position']), Number(row['recorded_at'])];
    const context = row['context'] === null ? null : Number(row['context']);
    const sum = checksum(position, stream, revision, at, id, type, data, String(row['metadata']), context);
    file.prepare('UPDATE events SET data = ?, checksum = ? WHERE position = ?').run(data, sum, position);
  };
  const takeOut = (cluster: number, revision: number): void => {
    file.prepare('DELETE FROM events WHERE position = ?').run(rowOf(cluster, revision)['position'] ?? '');
  };
  const replayed = async (topic: string, body: object): Promise<JsonObject> => {
    const reply = await stage.admin('POST', `/api/ledger/v1/kafka/topics/${topic}/replays`, body);
    expect(reply.status, reply.text).to.equal(200);
    return JSON.parse(reply.text.trimEnd().split('\n').at(-1) ?? '') as JsonObject;
  };
  const sent = (topic: string, name: string): string =>
    JSON.stringify(kafka.records(`${topic}.replay.${name}`));
  const positionAt = (cluster: number, revision: number): string =>
    String(rowOf(cluster, revision)['position']).padStart(16, '0');

  it('is replayed while it is what was recorded', async () => {
    for (const topic of [STATE, EVENTS]) {
      const last = await replayed(topic, { name: 'whole' });
      expect(objectAt(last, 'report'), JSON.stringify(last)).to.include({ skipped_events: 0 });
    }
    expect(suspected).to.deep.equal([]);
  });

  for (const topic of [STATE, EVENTS])
    it(`is replayed up to the event that is another one, which is named: ${topic}`, async () => {
      forge(1, 0);
      const last = await replayed(topic, { name: 'forged' });
      expect(stringAt(last, 'code')).to.equal('EVENT_CHANGED');
      expect(stringAt(last, 'error')).to.include(nameOf(1, 0)).and.include('ends in front of it');
      expect(suspected).to.deep.equal([nameOf(1, 0)]);
      expect(sent(topic, 'forged')).not.to.include('fake');
      const before = await replayed(topic, { name: 'before', to: positionAt(0, 1) });
      expect(objectAt(before, 'report')).to.include({ skipped_events: 0 });
    });

  it('is not replayed from behind a changed event by which later ones are told', async () => {
    forge(1, 0);
    const last = await replayed(STATE, { name: 'behind', from: positionAt(1, 0) });
    expect(stringAt(last, 'code')).to.equal('EVENT_CHANGED');
    expect(suspected).to.deep.equal([nameOf(1, 0)]);
    expect(sent(STATE, 'behind')).not.to.include('fake');
  });

  it('is not replayed without an event that was taken out, where states are told by it', async () => {
    takeOut(1, 0);
    const last = await replayed(STATE, { name: 'gap' });
    expect(stringAt(last, 'code')).to.equal('EVENT_CHANGED');
    expect(stringAt(last, 'error')).to.include(nameOf(1, 0)).and.include('is missing in the log');
  });

  it('is replayed as it is where no tree says what was recorded', async () => {
    tree = () => undefined;
    forge(1, 0);
    expect(objectAt(await replayed(STATE, { name: 'unheld' }), 'report')).to.include({ skipped_events: 0 });
  });

  it('tells no state of the past by an event that is another one, or gone', async () => {
    const shown = async (cluster: number): Promise<string> => {
      const reply = await stage.auditor('GET', `${AUDIT}/resources/cluster/${ids[cluster]}`);
      return `${reply.status} ${stringAt(reply.json as JsonObject, 'code')}`;
    };
    expect(await shown(0)).to.equal('200 ');
    forge(0, 1);
    takeOut(1, 0);
    expect(await shown(0)).to.equal('500 EVENT_CHANGED');
    expect(await shown(1)).to.equal('500 EVENT_CHANGED');
    expect(stage.service.suspected).to.deep.equal([nameOf(0, 1), nameOf(1, 0)]);
  });
});
