import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import { measureDamage } from '../../../src/composition/auditing.ts';
import {
  AUDIT,
  detailOf,
  reasonOf,
  startAuditStage,
  until,
  type AuditStage,
} from '../../support/audit/stage.ts';
import { PUBLIC } from '../../support/http/service.ts';

/** Somebody took an event out of the log before it was signed: the signature that comes next would be over the gap. */
describe('audit API: an event that is missing in what is not signed yet', function () {
  this.timeout(60_000);
  let stage: AuditStage;
  /** Which event the tree is not given. */
  let isGone: (event: RecordedEvent) => boolean;

  const startWith = async (signs: boolean): Promise<void> => {
    isGone = () => false;
    const store = createMemoryEventStore();
    const gapped: EventStore = {
      ...store,
      subscribe: async function* (options) {
        for await (const item of store.subscribe(options))
          if (item.kind !== 'event' || !isGone(item.event)) yield item;
      },
    };
    stage = await startAuditStage({ store: gapped, audit: { signs } });
  };
  afterEach(() => stage.service.close());

  const statusOf = () => stage.service.audit?.auditing.status();
  const stopped = (): Promise<void> => until(async () => statusOf()?.state === 'mismatch');
  const relabelled = async (id: string, tier: string): Promise<void> => {
    const reply = await stage.alice('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { tier } } });
    expect(reply.status, reply.text).to.equal(200);
  };
  /** Of a new cluster the first of two changes is taken out. */
  const takeOneOut = async (): Promise<string> => {
    const id = await stage.order(stage.alice, 'tail');
    await stage.settled(false);
    const stream = `cluster-${id}`;
    const next = Number(await stage.service.store.currentRevision(stream)) + 1;
    isGone = (event) => event.stream === stream && event.revision === next;
    await relabelled(id, 'gold');
    await relabelled(id, 'silver');
    return `${stream}@${next}`;
  };

  it('is noticed, named, and nothing is signed over it', async () => {
    await startWith(true);
    await stage.order(stage.alice, 'before');
    await stage.settled();
    const missing = await takeOneOut();
    await stopped();
    const { error, at } = statusOf() ?? {};
    expect(error)
      .to.include(`the event ${missing} is missing in the log`)
      .and.include('nothing is signed any more')
      .and.include('LedgerAuditTreeMismatch.md');
    const size = async (): Promise<number> => (await stage.service.audit?.auditing.heads.latest())?.size ?? 0;
    const signed = await size();
    expect(signed).to.be.at.most(stage.service.models.audit?.size() ?? 0);

    const trust = await stage.auditor('GET', `${AUDIT}/trust.json`);
    expect(reasonOf(trust), trust.text).to.equal('500 EVENT_CHANGED');
    expect(detailOf(trust)).to.include(`at position ${at?.position}`);
    // It is made of what was signed before, or not at all.
    const state = await stage.exported(stage.auditor, {});
    expect(state['tree_size'] ?? signed, JSON.stringify(state)).to.equal(signed);
    expect(await size()).to.equal(signed);
  });

  it('is signed once it is there again, and the tree made anew', async () => {
    await startWith(true);
    await takeOneOut();
    await stopped();
    isGone = () => false;
    // The tree may have come past the place of what was missing: behind it, it stopped.
    const { outcome } = await stage.service.models.rebuild('audit', { force: true });
    expect(outcome).to.not.equal('cancelled');
    await until(async () => statusOf()?.state === 'signing');
    await stage.settled();
    expect((await stage.auditor('GET', `${AUDIT}/trust.json`)).status).to.equal(200);
  });

  it('raises the alarm of an instance that does not sign, too', async () => {
    await startWith(false);
    const metrics = createMetrics();
    try {
      measureDamage(metrics, { status: () => undefined }, stage.service.audit?.auditing);
      const gauge = async (): Promise<string | undefined> =>
        /^ledger_audit_tree_mismatch (\d)/m.exec(await metrics.text())?.[1];
      expect(await gauge()).to.equal('0');
      await takeOneOut();
      await stopped();
      expect(await gauge()).to.equal('1');
    } finally {
      metrics.close();
    }
  });
});
