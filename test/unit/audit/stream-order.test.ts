import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { outOfOrder, whyOutOfOrder } from '../../../src/app/audit/stream-order.ts';
import { whatIsWrong } from '../../../src/app/audit/changed-events.ts';
import { LogDamaged, type EventStore, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import { auditView } from '../../../src/projections/audit/audit-view.ts';
import { createApplier } from '../../../src/projections/runner/applier.ts';
import { openViewFile } from '../../../src/projections/runner/view-file.ts';
import type { ProjectionStatus, ReadModels } from '../../../src/projections/read-models.ts';
import { createHistoryWriter, leavesOf, type Step } from '../../support/audit/random-history.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';
import { eventually } from '../../support/eventually.ts';

describe('the order of a stream', () => {
  const at = (revision: number) => ({ stream: 'cluster-c1', revision, position: '0000000000000007' });
  const says = (revision: number, last: number | undefined): string | undefined =>
    outOfOrder(at(revision), last)?.message;

  it('is one revision behind the other, from 0', () => {
    for (const [revision, last] of [
      [0, undefined],
      [1, 0],
      [7, 6],
    ] as const)
      expect(says(revision, last)).to.equal(undefined);
    expect(says(2, undefined)).to.equal(
      'the event cluster-c1@0 is missing in the log, or was moved: cluster-c1@2 stands at position 0000000000000007',
    );
    expect(says(5, 2)).to.include('the event cluster-c1@3 is missing');
    for (const last of [4, 9])
      expect(says(4, last)).to.equal(
        `the event cluster-c1@4 was put in or moved: it stands behind cluster-c1@${last} at position 0000000000000007`,
      );
  });

  it('is told as what it is, also where another thread has found it', () => {
    const found = outOfOrder(at(5), 2) as LogDamaged;
    const told = new LogDamaged('of a thread', structuredClone(found.at));
    expect(whatIsWrong(told)).to.equal(found.message);
    expect(whyOutOfOrder({ event: 'cluster-c1@5', position: '7' })).to.equal(undefined);
    expect(whyOutOfOrder(undefined)).to.equal(undefined);
  });
});

/** Somebody wrote to the store before the tree was made of it: nothing was signed that could show it. */
describe('the tree of a log in which events of a stream do not follow each other', () => {
  const folders = temporaryFolders();
  let store: EventStore;
  let written: readonly RecordedEvent[];
  /** What read models are given of the log. */
  let given: (event: RecordedEvent) => readonly RecordedEvent[];
  let models: ReadModels;

  const step = (stream: string, types: readonly string[]): Step => ({
    stream,
    tenant: 'acme',
    subject: 'alice',
    types,
    data: {},
  });
  beforeEach(async () => {
    const memory = createMemoryEventStore();
    given = (event) => [event];
    store = {
      ...memory,
      subscribe: async function* (options) {
        for await (const item of memory.subscribe(options))
          if (item.kind !== 'event') yield item;
          else for (const event of given(item.event)) yield { kind: 'event', event };
      },
    };
    await createHistoryWriter(
      memory,
      'order',
    )([
      step('cluster-c1', ['ClusterOrdered', 'ClusterLabelled', 'ClusterLabelled']),
      step('sys-lease-x', ['LeaseTaken']),
      step('cluster-c2', ['ClusterOrdered']),
      step('cluster-c1', ['ClusterBecameReady', 'ClusterLabelled']),
    ]);
    written = await leavesOf(memory);
  });
  afterEach(async () => {
    await models.close();
    await store.close();
    folders.clean();
  });

  const eventAt = (n: number): RecordedEvent => written[n] as RecordedEvent;
  const statusOf = (): ProjectionStatus => models.status()[0] as ProjectionStatus;
  const stopped = async (): Promise<ProjectionStatus> => {
    models = await openAuditView(store);
    await eventually('it has stopped', () => statusOf().state === 'failed');
    return statusOf();
  };
  const without =
    (n: number): typeof given =>
    (event) =>
      event.position === written[n]?.position ? [] : [event];

  it('is made where they do', async () => {
    models = await openAuditView(store);
    await followed(models, store);
    expect(audit(models).size()).to.equal(written.length);
  });

  it('stops in front of what does not follow, and says what is missing', async () => {
    for (const [n, behind, missing] of [
      [0, 1, 'cluster-c1@0'],
      [2, 4, 'cluster-c1@2'],
    ] as const) {
      given = without(n);
      const { damaged, error, caughtUp } = await stopped();
      const { stream, revision, position } = eventAt(behind);
      expect(damaged?.at).to.deep.include({ event: `${stream}@${revision}`, position });
      expect(error).to.include(`the event ${missing} is missing in the log`);
      expect(caughtUp).to.equal(false);
      await models.close();
    }
  });

  it("goes on behind a record of the store's own, also when that was the last one before a stop", async () => {
    const view = auditView();
    const db = openViewFile(':memory:', view, 'store');
    const hole = { ...eventAt(2), type: '$>', data: {}, metadata: {} };
    createApplier(db, view).apply([eventAt(0), eventAt(1), hole], hole.position);
    const again = createApplier(db, view);
    again.apply([eventAt(3), eventAt(4)], eventAt(4).position);
    expect(again.checkpoint().events).to.equal(5);
    expect(() => again.apply([{ ...eventAt(4), revision: 6, position: '9999999999999999' }], '9')).to.throw(
      'cluster-c1@4 is missing',
    );
    db.close();
  });

  it('stops in front of a second event of one revision', async () => {
    given = (event) =>
      event.position === written[1]?.position
        ? [event, { ...event, position: `${event.position}1` }]
        : [event];
    expect((await stopped()).error).to.include(
      'the event cluster-c1@1 was put in or moved: it stands behind cluster-c1@1',
    );
  });

  it('keeps what stands before it, and goes on once it is mended', async () => {
    models = await openAuditView(store);
    await followed(models, store);
    const late = createHistoryWriter(store, 'late');
    given = (event) => (event.type === 'Gone' ? [] : [event]);
    await late([step('cluster-c3', ['ClusterOrdered', 'Gone', 'ClusterLabelled'])]);
    await eventually('it has stopped', () => statusOf().state === 'failed');
    expect(statusOf().damaged?.at?.event).to.equal('cluster-c3@2');
    expect(audit(models).size()).to.equal(written.length + 1);
    given = (event) => [event];
    await followed(models, store);
    expect(statusOf().damaged).to.equal(undefined);
    expect(audit(models).size()).to.equal(written.length + 3);
  });

  it('keeps what stands before it in one batch, too: what was rolled back with it is not remembered', () => {
    const view = auditView();
    const db = openViewFile(':memory:', view, 'store');
    const applier = createApplier(db, view);
    const [first, second, third] = [eventAt(0), eventAt(1), eventAt(2)];
    expect(() => applier.apply([first, third], third.position)).to.throw('the event cluster-c1@1 is missing');
    expect(applier.checkpoint()).to.deep.include({ position: first.position, events: 1 });
    applier.apply([second, third], third.position);
    expect(applier.checkpoint()).to.deep.include({ position: third.position, events: 3 });
    db.close();
  });

  it('takes no stream for another one whose name is searched for by the same text', () => {
    const view = auditView();
    const db = openViewFile(':memory:', view, 'store');
    const applier = createApplier(db, view);
    // Halves of characters, which EventStoreDB hands out of names that somebody else wrote.
    const named = ['thing-\ud800', 'thing-\udc00'].map((stream, n) => ({
      ...eventAt(n),
      stream,
      revision: 0,
    }));
    applier.apply(named, eventAt(1).position);
    expect(applier.checkpoint().events).to.equal(2);
    db.close();
  });

  it('counts on from what it holds when it is opened again', async () => {
    const dir = folders.make();
    models = await openAuditView(store, dir);
    await followed(models, store);
    await models.close();
    models = await openAuditView(store, dir);
    await store.append('cluster-c1', 4, [
      { id: 'next', type: 'ClusterLabelled', data: '{}', metadata: '{"tenant":"acme"}' },
    ]);
    await followed(models, store);
    expect(statusOf().state).to.equal('live');
  });
});
