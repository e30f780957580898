import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { KIND_SAMPLES, makeHousePool } from '../../support/http/kind-samples.ts';
import { PRIVATE_WATCH, watch } from '../../support/http/watch-client.ts';

const objectOf = (reply: Reply): Json => reply.json['object'] ?? reply.json;
const metadataOf = (reply: Reply): Json => objectOf(reply)['metadata'] as Json;
const revisionOf = (reply: Reply): number => Number(/-(\d+)"$/.exec(reply.headers.get('etag') ?? '')?.[1]);
const idOf = (object: Json | undefined, otherwise = ''): string =>
  object?.['id'] === undefined ? otherwise : textAt(object, 'id');
const ok = (reply: Reply): Reply => {
  expect(reply.status, reply.text).to.equal(200);
  return reply;
};

/** Kinds whose objects lie in the tenant that an admin names, so that another tenant may have the id next. */
const ELSEWHERE = ['clusterTemplate', 'diskImage', 'hostType', 'hub', 'identityProvider', 'project'];

/** What is gone leaves its id free, as with the original. */
describe('an id whose object is gone', () => {
  let service: TestService;
  let admin: Caller;
  let adminToken: string;
  let users: string[];
  let serial = 0;

  before(async () => {
    service = await startTestService();
    adminToken = await service.token({ user: 'root', admin: true });
    admin = callerOf(service, adminToken);
    await seedCatalogue(admin);
    ok(await admin('POST', `${PRIVATE}/projects`, { metadata: { name: 'house', tenant: 't1' } }));
    ok(await admin('POST', `${PRIVATE}/roles`, { metadata: { name: 'house-role' } }));
    await makeHousePool(admin);
    users = [];
    for (let i = 0; i < 6; i += 1) {
      const body = { metadata: { name: `m-${i}`, tenant: 't1' }, spec: { username: `m-${i}` } };
      users.push(textAt(objectOf(ok(await admin('POST', `${PRIVATE}/users`, body))), 'id'));
    }
  });
  after(() => service.close());

  const bodyOf = (kind: string, name: string): Json & { metadata?: Json } =>
    KIND_SAMPLES[kind]?.body(name, { user: () => users.pop() ?? '' }) as Json;

  for (const kind of kinds.filter(({ ids, idOnce }) => ids !== 'generated' && idOnce !== true)) {
    it(`${kind.words}: begins anew, and nothing of the former reaches it`, async () => {
      const collection = `${PRIVATE}/${kind.collection}`;
      const name = `again-${(serial += 1)}`;
      const sample = bodyOf(kind.kind, name);
      const id = kind.ids === 'equals-name' ? name : idOf(sample, `id-of-${name}`);
      const path = `${collection}/${id}`;
      const seen = await watch(service, adminToken, `${PRIVATE_WATCH}?filter=has(event.id)`);
      const body = {
        ...sample,
        ...(kind.ids === 'equals-name' ? {} : { id }),
        metadata: { ...sample['metadata'], labels: { of: 'former' }, annotations: { note: 'former' } },
      };
      const first = ok(await admin('POST', collection, body, { 'idempotency-key': `make-${name}` }));
      ok(await admin('PATCH', path, { metadata: { finalizers: ['held'] } }));
      const held = ok(await admin('PATCH', path, { metadata: { display_name: 'Former' } }));
      ok(await admin('DELETE', path, undefined, { 'idempotency-key': `held-${name}` }));
      const taken = await admin('POST', collection, body);
      expect(taken.status, `while it is being deleted: ${taken.text}`).to.equal(409);
      ok(await admin('PATCH', path, { metadata: { finalizers: [] } }));
      expect((await admin('GET', path)).status).to.equal(404);

      const moves = ELSEWHERE.includes(kind.kind);
      const next = {
        ...sample,
        ...(kind.ids === 'equals-name' ? {} : { id }),
        metadata: { ...sample['metadata'], ...(moves ? { tenant: 't2' } : {}) },
      };
      ok(await admin('POST', collection, next, { 'x-dry-run': 'true' }));
      expect((await admin('GET', path)).status).to.equal(404);
      const again = ok(await admin('POST', collection, next));
      expect(objectOf(again)['id']).to.equal(id);
      expect(metadataOf(again)).not.to.have.any.keys(
        'version',
        'labels',
        'annotations',
        'finalizers',
        'deletion_timestamp',
        'display_name',
      );
      if (moves) expect(metadataOf(again)['tenant']).to.equal('t2');
      expect(again.text).not.to.include('ormer');
      expect(Date.parse(textAt(metadataOf(again), 'creation_timestamp'))).to.be.greaterThanOrEqual(
        Date.parse(textAt(metadataOf(first), 'creation_timestamp')),
      );
      expect(revisionOf(again)).to.be.greaterThan(revisionOf(held));
      const read = ok(await admin('GET', path));
      expect(objectOf(read)['metadata']).to.deep.equal(metadataOf(again));
      const listed = ok(
        await admin('GET', `${collection}?filter=${encodeURIComponent(`this.id == '${id}'`)}`),
      );
      expect(listed.json['total']).to.equal(1);

      // What was meant for the former does not reach it.
      const ifMatch = { 'if-match': held.headers.get('etag') ?? '' };
      expect((await admin('DELETE', path, undefined, ifMatch)).status).to.equal(412);
      const former = { metadata: { labels: { of: 'former' } } };
      expect((await admin('PATCH', path, former, ifMatch)).status).to.equal(412);
      ok(await admin('DELETE', path, undefined, { 'idempotency-key': `held-${name}` }));
      const replayed = ok(await admin('POST', collection, body, { 'idempotency-key': `make-${name}` }));
      expect(metadataOf(replayed)['labels']).to.deep.equal({ of: 'former' });
      expect(ok(await admin('GET', path)).text).to.equal(read.text);

      const changed = ok(await admin('PATCH', path, { metadata: { labels: { of: 'next' } } }));
      expect(metadataOf(changed))
        .to.include({ version: 1 })
        .and.to.deep.include({ labels: { of: 'next' } });
      ok(await admin('DELETE', path));
      ok(await admin('POST', collection, body));

      const told = (): Json[] => seen.events().filter((event) => idOf(event[kind.event?.field ?? '']) === id);
      if (kind.event !== undefined) {
        for (let count = seen.events().length; told().length < 10; count += 1) await seen.count(count + 1);
        expect(told().map((event) => textAt(event, 'type').replace('EVENT_TYPE_OBJECT_', ''))).to.deep.equal([
          'CREATED',
          'UPDATED',
          'UPDATED',
          'UPDATED',
          'UPDATED',
          'DELETED',
          'CREATED',
          'UPDATED',
          'DELETED',
          'CREATED',
        ]);
      }
      seen.close();
    });

    it(`${kind.words}: goes to one of those who want it at once`, async () => {
      const collection = `${PRIVATE}/${kind.collection}`;
      const name = `crowd-${(serial += 1)}`;
      const sample = bodyOf(kind.kind, name);
      const id = kind.ids === 'equals-name' ? name : idOf(sample, `id-of-${name}`);
      const body = kind.ids === 'equals-name' ? sample : { ...sample, id };
      ok(await admin('POST', collection, body));
      ok(await admin('DELETE', `${collection}/${id}`));
      const replies = await Promise.all(
        Array.from({ length: 5 }, (_, i) =>
          admin('POST', collection, { ...body, metadata: { ...body['metadata'], labels: { n: `${i}` } } }),
        ),
      );
      expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([
        200, 409, 409, 409, 409,
      ]);
      const winner = replies.find(({ status }) => status === 200) as Reply;
      expect(metadataOf(ok(await admin('GET', `${collection}/${id}`)))).to.deep.equal(metadataOf(winner));
      ok(await admin('DELETE', `${collection}/${id}`));
    });
  }

  it('tells its former tenant no more than an id that never was', async () => {
    const alice = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    const bob = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    const spec = bodyOf('diskImage', 'any')['spec'];
    const image = { id: 'wanderer', metadata: { name: 'wanderer' }, spec };
    ok(await alice('POST', `${PUBLIC}/disk_images`, image));
    ok(await alice('DELETE', `${PUBLIC}/disk_images/wanderer`));
    const his = ok(await bob('POST', `${PUBLIC}/disk_images`, image));
    expect(metadataOf(his)).to.include({ tenant: 't2' }).and.not.to.have.any.keys('version');
    for (const verb of ['GET', 'DELETE', 'PATCH'])
      expect(
        (await alice(verb, `${PUBLIC}/disk_images/wanderer`, verb === 'PATCH' ? { metadata: {} } : undefined))
          .status,
      ).to.equal(404);
    expect((await alice('POST', `${PUBLIC}/disk_images`, image)).status).to.equal(409);
    ok(await bob('GET', `${PUBLIC}/disk_images/wanderer`));
  });

  it('brings back no secret of the former object', async () => {
    const template = bodyOf('clusterTemplate', 'with-secret');
    const { spec_defaults: _secret, ...without } = template;
    const path = `${PRIVATE}/cluster_templates/${idOf(template)}`;
    expect(ok(await admin('POST', `${PRIVATE}/cluster_templates`, template)).text).to.include('***');
    ok(await admin('DELETE', path));
    ok(await admin('POST', `${PRIVATE}/cluster_templates`, without));
    expect(ok(await admin('GET', path)).text).not.to.include('***');
    const patched = await admin('PATCH', path, { spec_defaults: { pull_secret: '***' } });
    expect(patched.text).not.to.include('"***"');
  });

  it('takes unique values anew: domains of a tenant, names of a project', async () => {
    const tenant = (domain: string, name = 'unique'): object => ({
      metadata: { name },
      spec: { domains: [domain] },
    });
    ok(await admin('POST', `${PRIVATE}/tenants`, tenant('one.example')));
    ok(await admin('DELETE', `${PRIVATE}/tenants/unique`));
    ok(await admin('POST', `${PRIVATE}/tenants`, tenant('two.example')));
    ok(await admin('POST', `${PRIVATE}/tenants`, tenant('one.example', 'another')));
    expect((await admin('POST', `${PRIVATE}/tenants`, tenant('two.example', 'third'))).status).to.equal(409);
  });

  it('of a tenant: has its own break-glass credentials, shown once, and its default project', async () => {
    const make = async (): Promise<string> => {
      const made = ok(await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'phoenix' } }));
      const password = textAt(made.json['status']?.['break_glass_credentials'] as Json, 'password');
      expect(password).to.have.length(24);
      expect(ok(await admin('GET', `${PRIVATE}/tenants/phoenix`)).text).not.to.include(password);
      const project = ok(await admin('GET', `${PRIVATE}/projects/default-project.phoenix`));
      expect(metadataOf(project)).to.deep.include({ tenant: 'phoenix' }).and.not.to.have.any.keys('version');
      return password;
    };
    const first = await make();
    ok(await admin('DELETE', `${PRIVATE}/tenants/phoenix`));
    expect((await admin('GET', `${PRIVATE}/projects/default-project.phoenix`)).status).to.equal(404);
    expect(await make()).not.to.equal(first);
    const member = callerOf(
      service,
      await service.token({ user: 'zoe', tenants: ['phoenix'], roles: ['tenant-admin'] }),
    );
    ok(await member('POST', `${PUBLIC}/projects`, { metadata: { name: 'nest' } }));
  });

  it('of a cluster: stays used, and says so to its own tenant only', async () => {
    const alice = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    const bob = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    const body = { ...bodyOf('cluster', 'used'), id: 'used', metadata: { name: 'used' } };
    ok(await alice('POST', `${PUBLIC}/clusters`, body));
    const live = await bob('POST', `${PUBLIC}/clusters`, body);
    ok(await alice('DELETE', `${PUBLIC}/clusters/used`));
    const own = await alice('POST', `${PUBLIC}/clusters`, body);
    expect([own.status, own.json['message']]).to.deep.equal([
      409,
      "identifier 'used' was used by a cluster that is gone: choose another 'id' or leave it out",
    ]);
    const foreign = await bob('POST', `${PUBLIC}/clusters`, body);
    expect([foreign.status, foreign.text]).to.deep.equal([live.status, live.text]);
    ok(await alice('POST', `${PUBLIC}/clusters`, { ...body, id: 'used-2' }));
  });

  it('is not deleted by who was allowed to delete the former object only', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const other = await startTestService({ store });
    let meanwhile: (() => Promise<void>) | undefined;
    const slow: EventStore = {
      ...store,
      append: async (...args) => {
        const first = args[0] === 'diskImage-moved' ? meanwhile : undefined;
        if (first !== undefined) meanwhile = undefined;
        await first?.();
        return store.append(...args);
      },
    };
    const own = await startTestService({ store: slow });
    try {
      const elsewhere = callerOf(other, adminToken);
      await seedCatalogue(elsewhere);
      const image = (tenant: string): object => ({
        id: 'moved',
        metadata: { name: 'moved', tenant },
        spec: bodyOf('diskImage', 'any')['spec'],
      });
      const made = ok(await elsewhere('POST', `${PRIVATE}/disk_images`, image('t1')));
      const alice = callerOf(own, await own.token({ user: 'alice', tenants: ['t1'] }));
      const seen = { 'x-ledger-min-position': made.headers.get('x-ledger-position') ?? '' };
      ok(await alice('GET', `${PUBLIC}/disk_images/moved`, undefined, seen));
      meanwhile = async () => {
        ok(await elsewhere('DELETE', `${PRIVATE}/disk_images/moved`));
        ok(await elsewhere('POST', `${PRIVATE}/disk_images`, image('t2')));
      };
      const deleted = await alice('DELETE', `${PUBLIC}/disk_images/moved`);
      expect([meanwhile, deleted.status]).to.deep.equal([undefined, 404]);
      ok(await elsewhere('GET', `${PRIVATE}/disk_images/moved`));
    } finally {
      await other.close();
      await own.close();
    }
  });
});
