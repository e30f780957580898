import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PUBLIC, type Caller, type Reply } from '../../support/http/service.ts';

/** Whether an id of somebody else exists must not show in how much work it is to say that it is not yours. */
describe('as_of of foreign objects', () => {
  let stage: AuditStage;
  let reads: string[] = [];
  afterEach(() => stage.service.close());

  const counted = (store: EventStore): EventStore =>
    new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...asked: unknown[]): unknown => {
          if (String(asked[0]).startsWith('cluster-')) reads.push(String(name));
          return Reflect.apply(member, target, asked);
        };
      },
    });

  it('looks at them as far as at what is absent: their first event', async () => {
    // No signer: it reads streams of its own accord.
    const audit = { signs: false };
    stage = await startAuditStage({ store: counted(createMemoryEventStore()), audit });
    const { alice, auditor, order, callerFor, settled } = stage;
    const bob = await callerFor({ user: 'bob', tenants: ['t2'] });
    const theirs = await order(bob, 'theirs');
    for (const size of [4, 5, 6])
      await bob('PATCH', `${PUBLIC}/clusters/${theirs}`, { spec: { node_sets: { workers: { size } } } });
    await settled(false);
    const position = (await order(alice, 'mine')) && ((await stage.service.store.lastPosition()) ?? '');
    const asOf = encodeURIComponent(stage.service.positions.format(position));
    const early = encodeURIComponent('2020-01-01T00:00:00Z');
    const groups = ['/ai/system:managers'];
    const manager = await callerFor({ user: 'max', claims: { organization: { t2: { groups } } } });
    const paths: readonly [Caller, (id: string) => string][] = [
      // Of the same tenant, and outside the projects that the caller is limited to.
      [manager, (id) => `${PUBLIC}/clusters/${id}?as_of=${asOf}`],
      [alice, (id) => `${PUBLIC}/clusters/${id}?as_of=${asOf}`],
      [auditor, (id) => `${AUDIT}/resources/cluster/${id}?as_of=${asOf}`],
      [auditor, (id) => `${AUDIT}/resources/cluster/${id}`],
      [auditor, (id) => `${AUDIT}/resources/cluster/${id}/diff?from=${early}&to=${asOf}`],
    ];
    const work = async (caller: Caller, path: string): Promise<{ reply: Reply; read: readonly string[] }> => {
      reads = [];
      const reply = await caller('GET', path);
      return { reply, read: reads };
    };
    for (const [caller, path] of paths) {
      const absent = theirs.replace(/.{4}$/, 'ffff');
      const foreign = await work(caller, path(theirs));
      const nothing = await work(caller, path(absent));
      expect([foreign.reply.status, nothing.reply.status], path('')).to.deep.equal([404, 404]);
      expect(foreign.read, path('')).to.deep.equal(nothing.read).and.to.deep.equal(['readStream']);
    }
  });
});
