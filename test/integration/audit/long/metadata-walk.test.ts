import { expect } from 'chai';
import { openSqliteEventStore } from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createMemoryKafka } from '../../../../src/adapters/kafka/memory/memory-kafka.ts';
import { systemClock, systemIds, systemTimers } from '../../../../src/adapters/system/system-ports.ts';
import type { EventStore, RecordedEvent } from '../../../../src/app/log/event-store.ts';
import { createPublisher } from '../../../../src/app/publisher/publisher.ts';
import { createStreams } from '../../../../src/app/streams/streams.ts';
import { topicsOf } from '../../../../src/app/streams/topics.ts';
import { kinds } from '../../../../src/domain/kinds.ts';
import { registry } from '../../../../src/domain/registry.ts';
import { stringAt } from '../../../../src/domain/json-tools.ts';
import { until } from '../../../support/audit/stage.ts';
import { commonProblemsOf, logOf, problemsOf, ROWS } from '../../../support/audit/metadata-rules.ts';
import {
  castOf,
  tellOfAudits,
  tellOfClusters,
  tellOfHubs,
  tellOfKinds,
  tellOfRefusals,
} from '../../../support/audit/whole-story.ts';
import { createWholeService, type WholeService } from '../../../support/service/whole-service.ts';
import { silentLogger } from '../../../support/loggers.ts';

/** The whole log of a system in which everything has happened that there is a path for. */
describe('metadata of everything that is stored', function () {
  this.timeout(120_000);
  let whole: WholeService;
  let log: readonly RecordedEvent[];

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    const cast = await castOf(whole);
    await tellOfClusters(cast, whole);
    await tellOfKinds(cast, kinds);
    await tellOfHubs(cast);
    await tellOfRefusals(cast);
    await tellOfAudits(cast);
    await whole.stop();
    await breakOff();
    await publish();
    await whole.start();
    await whole.stop();
    log = await whole.log();
  });
  after(() => whole.dispose());

  const withStore = async (work: (store: EventStore) => Promise<void>): Promise<void> => {
    const store = await openSqliteEventStore({ dataDir: whole.dataDir });
    try {
      await work(store);
    } finally {
      await store.close();
    }
  };

  /** An erasure of which a crash left the beginning: the next start ends it. */
  const breakOff = (): Promise<void> =>
    withStore(async (store) => {
      const ids = systemIds();
      const stream = 'retention-deployment';
      const before = (await whole.log()).find(({ type }) => type === 'ErasureBegun');
      if (before === undefined) throw new Error('nobody was erased');
      const commandId = ids.uuidv7();
      await store.append(stream, await store.currentRevision(stream), [
        {
          id: ids.uuidv7(),
          type: before.type,
          data: JSON.stringify({ ...before.data, erasureId: commandId, at: new Date().toISOString() }),
          metadata: JSON.stringify({ ...before.metadata, commandId, causationId: commandId }),
        },
      ]);
    });

  /** What a publisher puts down of its topics. */
  const publish = (): Promise<void> =>
    withStore(async (store) => {
      const kafka = createMemoryKafka();
      const topics = topicsOf(registry, kinds);
      kafka.createTopics(topics);
      const stop = new AbortController();
      const publisher = createPublisher({
        streams: () => createStreams({ registry, kinds, store }),
        topics,
        cluster: kafka,
        store,
        ownership: { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) },
        clock: systemClock(),
        timers: systemTimers(),
        ids: systemIds(),
        instance: 'publisher',
        logger: silentLogger,
        settings: { checkpointMs: 50 },
      });
      const ended = publisher.run(stop.signal);
      const checkpoint = async (): Promise<boolean> =>
        (await store.currentRevision('sys-kafka-osac.events.clusters.v1')) !== 'no_stream';
      await until(checkpoint);
      stop.abort();
      await ended;
    });

  const where = (event: RecordedEvent): string =>
    `${event.type} ${event.stream}@${event.revision} (${stringAt(event.metadata, 'command')})`;

  it('has one row of the table for each event, and an event for each row', () => {
    const met = new Map(ROWS.map(({ name }) => [name, 0]));
    for (const event of log) {
      const rows = ROWS.filter(({ is }) => is(event));
      expect(
        rows.map(({ name }) => name),
        `${where(event)} ${JSON.stringify(event.metadata['actor'])}`,
      ).to.have.length(1);
      for (const { name } of rows) met.set(name, (met.get(name) ?? 0) + 1);
    }
    expect([...met].filter(([, events]) => events === 0)).to.deep.equal([]);
  });

  it('is complete: every field is there, or absent for the reason that the table gives', () => {
    const context = logOf(log);
    const problems = new Map<string, string>();
    for (const event of log) {
      const row = ROWS.find(({ is }) => is(event));
      if (row === undefined) continue;
      for (const problem of [...commonProblemsOf(event), ...problemsOf(event, row, context)])
        problems.set(`${row.name}: ${event.type}: ${problem}`, where(event));
    }
    expect(Object.fromEntries(problems)).to.deep.equal({});
  });

  it('leads from each event to what caused it: an event, a command or a call', () => {
    const known = new Set(
      log.flatMap(({ id, type, data, metadata }) => [
        id,
        stringAt(metadata, 'commandId'),
        stringAt(metadata, 'correlationId'),
        // A command that was refused has left nothing but this.
        ...(type === 'RequestRefused' ? [stringAt(data, 'commandId')] : []),
      ]),
    );
    const lost = log.filter(({ metadata }) => !known.has(stringAt(metadata, 'causationId')));
    expect(lost.map(where)).to.deep.equal([]);
  });

  it('names for whom the service works: who ordered, by token or on behalf of somebody', () => {
    const creators = new Map(
      log
        .filter(({ type }) => type === 'ClusterOrdered')
        .map(({ stream, metadata }) => {
          const actor = metadata['actor'] as { subjectId: string; onBehalfOf?: string };
          return [stream.replace(/^cluster-/, 'clusterOrder-'), actor.onBehalfOf ?? actor.subjectId];
        }),
    );
    const runs = log.filter(({ stream, revision }) => revision === 0 && creators.has(stream));
    expect(runs.length).to.be.greaterThan(4);
    for (const run of runs)
      expect((run.metadata['actor'] as { onBehalfOf?: string }).onBehalfOf, where(run)).to.equal(
        creators.get(run.stream),
      );
  });

  it('has been through every context of events', () => {
    const types = new Set(log.map(({ type }) => type));
    const contexts = new Set(
      registry.types.filter(({ type }) => types.has(type)).map(({ context }) => context),
    );
    expect([...contexts].toSorted()).to.deep.equal(
      [...new Set(registry.types.map(({ context }) => context))].toSorted(),
    );
    const wanted = [
      'ClusterBecameReady',
      'NodeSetResized',
      'PlacementDeferred',
      'EffectStarted',
      'ClusterCredentialsRevealed',
      'ClusterDeleted',
      'CheckpointReached',
      'TreeHeadSigned',
      'RefusalsSuppressed',
      'AuditReadNoticed',
      'AuditGrantNoticed',
      'AuditExportCompleted',
      'LegalHoldPlaced',
      'SubjectKeyDestroyed',
      'UserAdmitted',
      'TenantOffboarded',
    ];
    expect(wanted.filter((type) => !types.has(type))).to.deep.equal([]);
  });
});
