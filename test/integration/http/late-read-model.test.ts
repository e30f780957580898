import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { PRIVATE, callerOf, seedCatalogue, startTestService, textAt } from '../../support/http/service.ts';
import { CLUSTERS, SMALL } from './ordering.ts';
import { eventually } from '../../support/eventually.ts';

const keyed = (key: string) => ({ 'idempotency-key': key });

describe('a read model that is late', () => {
  it('keeps the answer of a write until it shows that, so that its caller reads it', async () => {
    const asked: string[] = [];
    const applied = Promise.withResolvers<boolean>();
    const service = await startTestService({
      positions: {
        waitFor: (view, position) => {
          asked.push(`${view} ${position}`);
          return applied.promise;
        },
      },
    });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      let answered = false;
      const write = admin('POST', `${PRIVATE}/host_types`, { id: 'h1' }).finally(() => {
        answered = true;
      });
      await eventually('somebody waits', () => asked.length > 0 || answered);
      expect(answered, 'before anybody could read it').to.equal(false);
      applied.resolve(true);
      const { status, headers } = await write;
      expect(status).to.equal(200);
      const position = headers.get('x-ledger-position')?.replace('memory.', '');
      expect(asked).to.deep.equal([`resources ${position}`]);
    } finally {
      applied.resolve(false);
      await service.close();
    }
  });

  it('past the bound a read answers 503 and a write says success all the same', async () => {
    const service = await startTestService({
      positions: { readWaitMs: 20, writeWaitMs: 20, waitFor: async () => false },
    });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      const late = await admin('GET', `${PRIVATE}/host_types`, undefined, {
        'x-ledger-min-position': 'memory.9999999999999999',
      });
      expect(late.status).to.equal(503);
      expect(late.json['code']).to.equal(14);
      expect(late.headers.get('retry-after')).to.equal('1');
      const write = await admin('POST', `${PRIVATE}/host_types`, { id: 'h1' });
      expect(write.status, write.text).to.equal(200);
    } finally {
      await service.close();
    }
  });

  it('a key holds also while the read model has not seen its first call', async () => {
    const log = createMemoryEventStore();
    let behind = Promise.resolve();
    const lagging: EventStore = {
      ...log,
      async *subscribe(options) {
        for await (const item of log.subscribe(options)) {
          await behind;
          yield item;
        }
      },
    };
    const late = await startTestService({ store: lagging, positions: { writeWaitMs: 1 } });
    const held = Promise.withResolvers<void>();
    try {
      const root = callerOf(late, await late.token({ user: 'root', admin: true }));
      await seedCatalogue(root);
      const alice = callerOf(late, await late.token({ user: 'alice', tenants: ['t1'] }));
      const created = await alice('POST', CLUSTERS, { metadata: { name: 'late' }, spec: SMALL });
      const path = `${CLUSTERS}/${textAt(created.json, 'id')}`;
      behind = held.promise;
      const body = { metadata: { labels: { colour: 'red' } } };
      const headers = { ...keyed('paint'), 'if-match': created.headers.get('etag') ?? '' };
      const first = await alice('PATCH', path, body, headers);
      const again = await alice('PATCH', path, body, headers);
      expect([first.status, again.status]).to.deep.equal([200, 200]);
      expect(again.text).to.equal(first.text);
      for (let i = 0; i < 2; i += 1) {
        expect((await alice('DELETE', path, undefined, keyed('remove'))).status).to.equal(200);
      }
      expect((await alice('DELETE', path, undefined, keyed('remove-2'))).status).to.equal(404);
      expect((await alice('PATCH', path, body, headers)).text, 'also after the end').to.equal(first.text);
    } finally {
      held.resolve();
      await late.close();
    }
  });

  it('a key holds also while another instance carries out its first call', async () => {
    const log = createMemoryEventStore({ singleWriter: false });
    /** Called before each read of this stream. */
    const watched = { stream: '', read: async (): Promise<void> => undefined };
    const slow: EventStore = {
      ...log,
      async *readStream(stream, options) {
        if (stream === watched.stream) await watched.read();
        yield* log.readStream(stream, options);
      },
      async *subscribe(options) {
        for await (const item of log.subscribe(options)) {
          if (item.kind !== 'event' || !item.event.type.startsWith('ClusterDelet')) yield item;
        }
      },
    };
    const here = await startTestService({ store: slow, positions: { writeWaitMs: 1 } });
    const there = await startTestService({ store: log });
    try {
      await seedCatalogue(callerOf(there, await there.token({ user: 'root', admin: true })));
      const token = await there.token({ user: 'alice', tenants: ['t1'] });
      const created = await callerOf(there, token)('POST', CLUSTERS, {
        metadata: { name: 'n' },
        spec: SMALL,
      });
      const id = textAt(created.json, 'id');
      const path = `${CLUSTERS}/${id}`;
      await callerOf(here, token)('PATCH', path, { metadata: { labels: { colour: 'red' } } });
      const reads: number[] = [];
      watched.stream = `cluster-${id}`;
      watched.read = async () => {
        // The look for an earlier call is over; what follows is the state that the call is checked against.
        if (reads.push(1) !== 2) return;
        const first = await callerOf(there, token)('DELETE', path, undefined, keyed('remove'));
        expect(first.status).to.equal(200);
      };
      const second = await callerOf(here, token)('DELETE', path, undefined, keyed('remove'));
      expect(reads.length).to.be.at.least(2);
      expect(second.status, second.text).to.equal(200);
    } finally {
      await here.close();
      await there.close();
    }
  });

  it('nothing is deleted that it cannot know to be unused: another instance may have bound the user', async () => {
    const log = createMemoryEventStore({ singleWriter: false });
    let behind = Promise.resolve();
    const lagging: EventStore = {
      ...log,
      async *subscribe(options) {
        for await (const item of log.subscribe(options)) {
          await behind;
          yield item;
        }
      },
    };
    const held = Promise.withResolvers<void>();
    const here = await startTestService({ store: lagging, positions: { writeWaitMs: 1 } });
    const there = await startTestService({ store: log });
    try {
      const token = await there.token({ user: 'root', admin: true });
      const root = callerOf(there, token);
      await seedCatalogue(root);
      behind = held.promise;
      const make = async (collection: string, body: object): Promise<string> => {
        const reply = await root('POST', `${PRIVATE}/${collection}`, body);
        expect(reply.status, reply.text).to.equal(200);
        return textAt(reply.json, 'id');
      };
      const user = await make('users', { metadata: { name: 'u', tenant: 't1' }, spec: { username: 'u' } });
      const role = await make('roles', { metadata: { name: 'r' }, spec: { title: 'R' } });
      await make('role_bindings', {
        metadata: { name: 'b', tenant: 't1' },
        spec: { role: { id: role }, users: [{ id: user }] },
      });
      const remove = () => callerOf(here, token)('DELETE', `${PRIVATE}/users/${user}`);
      const late = await remove();
      expect(late.status, late.text).to.equal(503);
      expect(late.headers.get('retry-after')).to.match(/^\d+$/);
      expect((await root('GET', `${PRIVATE}/users/${user}`)).status).to.equal(200);
      held.resolve();
      const known = await remove();
      expect([known.status, known.headers.get('x-ledger-reason')]).to.deep.equal([400, 'STILL_REFERENCED']);
      expect((await root('GET', `${PRIVATE}/users/${user}`)).status).to.equal(200);
    } finally {
      held.resolve();
      await here.close();
      await there.close();
    }
  });
});
