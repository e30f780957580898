import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PUBLIC, type Caller } from '../../support/http/service.ts';

/** Somebody changed an event beneath the service, checksum and all: what was is not told as if it had been so. */
describe('the past of an object whose events were changed in the store', () => {
  let stage: AuditStage;
  let id: string;
  /** Moments after the first and after the second event of the cluster. */
  let early: string;
  let late: string;
  /** What reading one event of the cluster gives, by its revision; undefined: it is gone. */
  let forged: Map<number, (event: RecordedEvent) => RecordedEvent | undefined>;

  beforeEach(async () => {
    const store = createMemoryEventStore();
    forged = new Map();
    const each = async function* (
      stream: string,
      options: Parameters<EventStore['readStream']>[1],
    ): AsyncIterable<RecordedEvent> {
      for await (const event of store.readStream(stream, options)) {
        const forge = stream === `cluster-${id}` ? forged.get(event.revision) : undefined;
        const found = forge === undefined ? event : forge(event);
        if (found !== undefined) yield found;
      }
    };
    id = '';
    stage = await startAuditStage({ store: { ...store, readStream: each }, audit: { signs: false } });
    const now = async (): Promise<string> =>
      encodeURIComponent(stage.service.positions.format((await store.lastPosition()) ?? ''));
    id = await stage.order(stage.alice, 'real');
    early = await now();
    const changed = await stage.alice('PATCH', `${PUBLIC}/clusters/${id}`, {
      metadata: { labels: { tier: 'gold' } },
    });
    expect(changed.status, changed.text).to.equal(200);
    late = await now();
    await stage.settled(false);
  });
  afterEach(() => stage.service.close());

  const calls = (moment: string): readonly (readonly [what: string, caller: Caller, path: string])[] => [
    ['the object', stage.alice, `${PUBLIC}/clusters/${id}?as_of=${moment}`],
    ['the object of auditors', stage.auditor, `${AUDIT}/resources/cluster/${id}?as_of=${moment}`],
    ['the object of the provider', stage.admin, `${AUDIT}/resources/cluster/${id}?as_of=${moment}`],
    ['what differs', stage.auditor, `${AUDIT}/resources/cluster/${id}/diff?from=${early}&to=${moment}`],
  ];
  const positionOf = async (revision: number): Promise<string> =>
    stage.service.models.audit?.standing(`cluster-${id}`, revision)?.position ?? 'none';
  const isRefused = async (moment: string, revision: number): Promise<void> => {
    for (const [what, caller, path] of calls(moment)) {
      stage.service.suspected.length = 0;
      const reply = await caller('GET', path);
      expect([reply.status, reply.text.includes('EVENT_CHANGED')], `${what}: ${reply.text}`).to.deep.equal([
        500,
        true,
      ]);
      expect(reply.text).not.to.include('fake').and.not.include('cluster-');
      expect(stage.service.suspected, what).to.deep.equal([`cluster-${id}@${revision}`]);
    }
    const reply = await stage.auditor('GET', `${AUDIT}/resources/cluster/${id}?as_of=${moment}`);
    expect(reasonOf(reply)).to.equal('500 EVENT_CHANGED');
    expect(detailOf(reply)).to.include(`at position ${await positionOf(revision)} is not the one`);
  };
  const isShown = async (moment: string): Promise<void> => {
    for (const [what, caller, path] of calls(moment)) {
      const reply = await caller('GET', path);
      expect(reply.status, `${what}: ${reply.text}`).to.equal(200);
    }
    expect(stage.service.suspected).to.deep.equal([]);
  };
  const named = (event: RecordedEvent): RecordedEvent => ({
    ...event,
    data: { ...event.data, name: 'fake' },
  });
  const gone = (): undefined => undefined;

  it('is shown while they are as they were recorded', async () => {
    await isShown(early);
    await isShown(late);
  });

  it('is not shown once its first event is another one, and the instance learns which', async () => {
    forged.set(0, named);
    await isRefused(early, 0);
    await isRefused(late, 0);
    const now = await stage.auditor('GET', `${AUDIT}/resources/cluster/${id}`);
    expect(reasonOf(now)).to.equal('500 EVENT_CHANGED');
  });

  it('is shown up to the moment from which on it is not what was recorded', async () => {
    forged.set(1, named);
    await isShown(early);
    await isRefused(late, 1);
  });

  it('is not shown without an event that was taken out: neither the first one nor the last', async () => {
    forged.set(1, gone);
    await isShown(early);
    await isRefused(late, 1);
    forged.clear();
    forged.set(0, gone);
    await isRefused(late, 0);
  });

  it('is not taken for absent where its first event was given to somebody else, who gets none of it', async () => {
    forged.set(0, (event) => ({ ...event, data: { ...event.data, tenant: 't2' } }));
    await isRefused(late, 0);
    const bob = await stage.callerFor({ user: 'bob', tenants: ['t2'] });
    const reply = await bob('GET', `${PUBLIC}/clusters/${id}?as_of=${late}`);
    expect(reply.status, reply.text).to.equal(500);
  });

  it('stays absent for others, who learn nothing of it', async () => {
    const bob = await stage.callerFor({ user: 'bob', tenants: ['t2'] });
    const path = `${PUBLIC}/clusters/${id}?as_of=${late}`;
    for (const forge of [named, gone]) {
      forged.set(0, forge);
      const reply = await bob('GET', path);
      expect(reply.status, reply.text).to.equal(404);
    }
    expect(stage.service.suspected).to.deep.equal([]);
  });

  it('is told as it was in lists, which are kept beside the log', async () => {
    forged.set(0, named);
    const reply = await stage.alice('GET', `${PUBLIC}/clusters?as_of=${late}`);
    expect(reply.status, reply.text).to.equal(200);
    expect(reply.text).to.include('"real"').and.not.include('fake');
  });
});
