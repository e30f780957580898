import { expect } from 'chai';
import { createLeafGuard, heldLog } from '../../../src/app/audit/verified-reads.ts';
import { createHubRegistry } from '../../../src/app/hubs/hub-registry.ts';
import { WrongExpectedRevision, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import { replay } from '../../../src/app/publisher/replay.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { auditView } from '../../../src/projections/audit/audit-view.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { eventually } from '../../support/eventually.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { callerOf, startTestService } from '../../support/http/service.ts';
import { hubFixture } from '../../support/hubs/hub-fixture.ts';
import { recordingLogger } from '../../support/loggers.ts';
import { openNotes, settle } from '../../support/projections/open-notes.ts';
import { changed, createTestLog, written } from '../../support/projections/log.ts';
import { isDone, orderToy, startToyRunner, toyStore } from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { REASON, withUnreadable } from '../../support/event-store/unreadable-events.ts';
import { createRig, TOPIC, valuesOf } from '../kafka/publisher-rig.ts';
import { create, holderOf, shared } from './holding-names.ts';

/** What somebody else has written into one of our streams stops that stream, and nothing else. */
describe('an event of ours that cannot be read', () => {
  const at = (stream: string, revision: number) => (event: RecordedEvent) =>
    event.stream === stream && event.revision === revision;

  it('parks its stream in a view, which goes on, and stays parked when it is tried again', async () => {
    const log = createTestLog();
    await log.append('note-a', written('a'));
    const store = withUnreadable(log.store, at('note-a', 1));
    const models = await openNotes(log, { reader: store });
    await settle(models, log);
    const position = await log.append('note-a', changed('never seen'));
    await log.append('note-a', changed('behind it'));
    await log.append('note-b', written('b'));
    await settle(models, log);
    const [status] = models.status();
    expect(status).to.include({ state: 'live', caughtUp: true });
    expect(status?.parkedStreams).to.deep.equal([
      { stream: 'note-a', revision: 1, position, error: `NoteChanged: ${REASON}` },
    ]);
    expect(models.resources.get('note', 'b', { all: true })?.id).to.equal('b');
    expect(models.resources.get('note', 'a', { all: true })?.revision).to.equal(0);
    expect(await models.retryParked('resources', 'note-a')).to.equal(false);
    expect((await models.rebuild('resources')).outcome, 'the same in a fresh copy').to.equal('switched');
    await models.close();
  });

  it('parks its stream in the tree over the log: no leaf of it, no alarm, all others have theirs', async () => {
    const log = createTestLog();
    const store = withUnreadable(log.store, at('note-a', 1));
    await log.append('note-a', written('a'));
    const models = await openAuditView(store);
    await followed(models, store);
    await log.append('note-a', changed('foreign'));
    await log.append('note-b', written('b'));
    await log.append('note-a', changed('behind it'));
    await followed(models, store);
    expect(models.status()[0]).to.include({ state: 'live' }).and.not.have.property('damaged');
    expect(models.status()[0]?.parkedStreams.map(({ stream }) => stream)).to.deep.equal(['note-a']);
    expect(audit(models).size()).to.equal(2);
    expect(await models.retryParked('audit', 'note-a'), 'leaves keep the order of the log').to.equal(false);
    const { digest } = await models.digest('audit');
    const clean = await openAuditView(store);
    await followed(clean, store);
    expect((await clean.digest('audit')).digest).to.equal(digest);
    await Promise.all([models.close(), clean.close()]);
    expect(auditView().rowsBelongToOneStream).to.equal(false);
  });

  for (const category of ['toy', 'toyRun'] as const)
    it(`parks the run in whose ${category === 'toy' ? "subject's" : 'own'} stream it is; the other runs go on`, async () => {
      const inner = toyStore();
      const store = withUnreadable(inner, ({ data }) => data['foreign'] === true);
      const log = recordingLogger();
      const workshop = createWorkshop();
      workshop.mood('one', 'dead');
      const runner = startToyRunner({ store, workshop, instance: 'a', more: { logger: log } });
      await orderToy(store, { id: 'open', patienceMs: 3_600_000 });
      await eventually('open', () => runner.status().openRuns === 1);
      const type = category === 'toy' ? 'ToyPainted' : 'ColourNoticed';
      for (;;) {
        const stream = `${category}-open`;
        const event = { id: 'foreign', type, data: '{"foreign":true}', metadata: '{}' };
        const stored = await inner.append(stream, await inner.currentRevision(stream), [event]).then(
          () => true,
          (error: unknown) => !(error instanceof WrongExpectedRevision),
        );
        if (stored) break;
      }
      await eventually('parked', () => runner.parkedFor('toyRun', 'open') !== undefined);
      expect(
        log.lines.some(
          ({ level, fields }) => level === 'error' && 'reason' in fields && fields.reason === REASON,
        ),
      ).to.equal(true);
      expect(await runner.retryRun('toyRun', 'open')).to.equal(true);
      await eventually('parked again', () => runner.parkedFor('toyRun', 'open')?.includes(REASON) === true);
      await orderToy(store, { id: 'other', shop: 'two' });
      await eventually('other is done', () => isDone(inner, 'other'));
      expect(runner.status().state).to.equal('live');
      await runner.stop();
    });

  it('parks its stream in a topic, also when it is tried again; a replay counts it as left out', async () => {
    const rig = createRig();
    const store = withUnreadable(rig.store, at('thing-a', 1));
    const running = rig.start({ store });
    await rig.append('thing-a', 'thing-a', 'thing-b', 'thing-a');
    await rig.time.pass(5_000);
    expect(valuesOf(rig.kafka).toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0']);
    expect(running.topic(TOPIC).parked).to.have.length(1);
    expect(running.topic(TOPIC).parked[0]).to.include({ stream: 'thing-a', revision: 1, error: REASON });
    expect(running.topic(TOPIC).state).to.equal('live');
    const outcome = running.publisher.retry(TOPIC, 'thing-a');
    await rig.time.pass(5_000);
    expect(await outcome).to.have.property('outcome', 'parked');
    await rig.append('thing-b');
    await rig.time.pass(5_000);
    expect(valuesOf(rig.kafka)).to.include('thing-b@1');
    await running.stop();

    const [stream] = [{ topic: { name: TOPIC, filter: { streamPrefixes: ['thing-'] } }, map: () => [] }];
    const options = { stream, cluster: rig.kafka, store, clock: rig.time.clock, timers: rig.time.timers };
    const steps = replay(options as never, { topic: TOPIC, name: 'again' }, new AbortController().signal);
    let report: unknown;
    for await (const step of steps) if ('report' in step) report = step.report.skipped;
    expect(report).to.deep.equal([{ stream: 'thing-a', revision: 1, error: REASON }]);
  });

  it('leaves a hub as it was known', async () => {
    const fixture = hubFixture({ of: () => undefined });
    const log = recordingLogger();
    const registry = createHubRegistry({
      store: withUnreadable(fixture.store, at('hub-sim-a', 1)),
      codec: fixture.codec,
      clusters: { of: () => undefined },
      timers: systemTimers(),
      logger: log,
    });
    const stop = new AbortController();
    const ended = registry.run(stop.signal);
    await fixture.register('sim-a', { zone: 'north' });
    await fixture.revise('sim-a', { zone: 'south' });
    await fixture.register('sim-b');
    await eventually('known', () => registry.get('sim-b') !== undefined);
    expect(registry.get('sim-a')?.facts.zone).to.equal('north');
    expect(log.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)).to.deep.equal([
      { stream: 'hub-sim-a', revision: 1, reason: REASON },
    ]);
    stop.abort();
    await ended;
    await fixture.stop();
  });

  it('is passed over by the repair of names, and counted', async () => {
    const inner = shared();
    const stream = `name-${nameStreamId('gadget', 't1', '', 'strange')}`;
    await inner.append(stream, 'no_stream', [{ id: 'e1', type: 'NameReserved', data: '{}', metadata: '{}' }]);
    const one = createIncarnation(withUnreadable(inner, at(stream, 0)), 'one');
    await create(one, 'g1', 'drill', ['c1']);
    const stop = new AbortController();
    const running = one.repair.run(stop.signal);
    await eventually('looked at', () => one.repair.skipped() === 1);
    await eventually('settled', () => {
      one.clock.advance(600);
      one.timers.fire();
      return one.repair.pending() === 0;
    });
    expect(await holderOf(one, 'drill')).to.equal('g1');
    stop.abort();
    await running;
  });

  it('is a line of its own for who follows the log over HTTP', async () => {
    const inner = createMemoryEventStore({ singleWriter: false });
    const store = withUnreadable(inner, at('thing-a', 0));
    const service = await startTestService({ store });
    try {
      await inner.append('thing-a', 'no_stream', [{ id: 'e1', type: 'Foreign', data: '{}', metadata: '{}' }]);
      const token = await service.token({ user: 'root', admin: true });
      const leaving = new AbortController();
      const response = await fetch(`${service.url}/api/ledger/v1/events?stream=thing-a&follow=true`, {
        headers: { authorization: `Bearer ${token}` },
        signal: leaving.signal,
      });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const line = JSON.parse(Buffer.from((await reader.read()).value ?? []).toString()) as object;
      expect(line).to.include({ stream: 'thing-a', revision: 0, type: 'Foreign', unreadable: REASON });
      leaving.abort();
      const status = await callerOf(service, token)('GET', '/api/ledger/v1/projections');
      expect(status.text, 'the tree names it').to.contain('"thing-a"');
    } finally {
      await service.close();
    }
  });
});

describe('reading what the tree has a leaf of', () => {
  it('finds it changed where it cannot be read any more', async () => {
    const inner = createMemoryEventStore();
    await inner.append('thing-a', 'no_stream', [{ id: 'e1', type: 'Thing', data: '{}', metadata: '{}' }]);
    const standing = { index: 0, hash: new Uint8Array(32), position: '0000000000000001', tenant: '' };
    const guard = createLeafGuard(() => ({
      standing: (stream, revision) => (stream === 'thing-a' && revision === 0 ? standing : undefined),
      leaf: () => undefined,
    }));
    const held = heldLog(
      withUnreadable(inner, () => true),
      guard,
    );
    let problem: unknown;
    try {
      for await (const _item of held.subscribe({ signal: new AbortController().signal })) break;
    } catch (error) {
      problem = error;
    }
    expect(problem).to.have.property('name', 'LogDamaged');
  });
});
