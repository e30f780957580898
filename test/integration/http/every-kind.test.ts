import { expect } from 'chai';
import { kinds } from '../../../src/domain/kinds.ts';
import { KIND_SAMPLES, makeHousePool, named, SPEC, type Around } from '../../support/http/kind-samples.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

/** Users for everything that binds one. */
const MEMBERS = 40;

const objectOf = (reply: Reply): Json => reply.json['object'] ?? reply.json;
const idOf = (reply: Reply): string => textAt(objectOf(reply), 'id');
const metadataOf = (reply: Reply): Json => objectOf(reply)['metadata'] as Json;

describe('every kind over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let around: Around;
  let serial = 0;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    const make = async (collection: string, body: object): Promise<Reply> => {
      const reply = await admin('POST', `${PRIVATE}/${collection}`, body);
      expect(reply.status, `${collection}: ${reply.text}`).to.equal(200);
      return reply;
    };
    await make('projects', named('house'));
    await make('roles', { metadata: { name: 'house-role' } });
    await makeHousePool(admin);
    const users: string[] = [];
    for (let i = 0; i < MEMBERS; i += 1)
      users.push(idOf(await make('users', { ...named(`member-${i}`), spec: { username: `member-${i}` } })));
    around = { user: () => users.pop() ?? '' };
  });
  after(() => service.close());

  /** Everything that a call may leave behind. */
  const trace = async () => ({
    last: await service.store.lastPosition(),
    secrets: service.secrets.values.size,
    rejections: service.rejections.length,
  });
  const leavesNoTrace = async (what: string, run: () => Promise<Reply>): Promise<Reply> => {
    const before = await trace();
    const reply = await run();
    expect(await trace(), `${what}: ${reply.text}`).to.deep.equal(before);
    return reply;
  };
  const DRY = { 'x-dry-run': 'true', 'idempotency-key': 'dry-run-key' };

  for (const kind of kinds) {
    const sample = KIND_SAMPLES[kind.kind];
    if (sample === undefined) continue;
    describe(kind.words, () => {
      const collection = `${PRIVATE}/${kind.collection}`;
      const fresh = (): { name: string; body: object } => {
        const name = `k-${(serial += 1)}`;
        return { name, body: sample.body(name, around) };
      };
      const create = async (): Promise<{ path: string; reply: Reply }> => {
        const reply = await admin('POST', collection, fresh().body);
        expect(reply.status, reply.text).to.equal(200);
        const path = `${collection}/${encodeURIComponent(idOf(reply))}`;
        if (sample.settled === undefined) return { path, reply };
        const settled = await admin('PATCH', path, sample.settled);
        expect(settled.status, settled.text).to.equal(200);
        return { path, reply: settled };
      };
      const labels = (value: string): object => ({ metadata: { labels: { env: value, 'a.b/c': 'x' } } });

      it('a dry run of a creation shows the object and leaves no trace', async () => {
        const { name, body } = fresh();
        const reply = await leavesNoTrace('create', () => admin('POST', collection, body, DRY));
        expect(reply.status, reply.text).to.equal(200);
        const sentId = (body as { id?: string }).id;
        expect(objectOf(reply)['id']).to.equal(sentId);
        expect(metadataOf(reply)).not.to.have.any.keys('creation_timestamp', 'version');
        expect(reply.headers.get('etag')).to.equal(null);
        expect(reply.text).not.to.contain('S3CRET');
        const made = await admin('POST', collection, body, { 'idempotency-key': 'dry-run-key' + serial });
        expect(made.status, `its name is free: ${made.text}`).to.equal(200);
        // Of what it takes besides, another one: that is looked at first.
        const alike = sample.body(name, around);
        const again = await leavesNoTrace('again', () => admin('POST', collection, alike, DRY));
        expect(again.status, `its name is taken: ${again.text}`).to.equal(409);
      });

      if (sample.settled !== undefined) {
        it('a status that comes with a private creation is shown, one that a tenant sends is not', async () => {
          const state = (reply: Reply): unknown => (objectOf(reply)['status'] as Json | undefined)?.['state'];
          const { status } = sample.settled as { readonly status: Json };
          const made = await admin('POST', collection, { ...fresh().body, ...sample.settled });
          expect([made.status, state(made)], made.text).to.deep.equal([200, status['state']]);
          if (!kind.methods.public.includes('Create')) return;
          const user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
          const own = await user('POST', `${PUBLIC}/${kind.collection}`, {
            ...fresh().body,
            ...sample.settled,
          });
          expect(own.status, own.text).to.equal(200);
          expect(state(own)).to.not.equal(status['state']);
        });
      }

      it('a dry run of what is wrong is refused alike', async () => {
        const { body } = fresh();
        const wrong = { ...body, metadata: { ...(body as Json)['metadata'], labels: { 'No Key': 'x' } } };
        const reply = await leavesNoTrace('wrong', () => admin('POST', collection, wrong, DRY));
        expect(reply.status).to.equal(400);
        expect(reply.text).to.contain('No Key');
      });

      it('dry runs of an update and of a deletion leave no trace', async () => {
        const { path } = await create();
        const patched = await leavesNoTrace('patch', () => admin('PATCH', path, labels('dry'), DRY));
        expect(patched.status, patched.text).to.equal(200);
        expect(metadataOf(patched)['labels']).to.deep.equal({ env: 'dry', 'a.b/c': 'x' });
        const deleted = await leavesNoTrace('delete', () => admin('DELETE', path, undefined, DRY));
        expect([deleted.status, deleted.text]).to.deep.equal([200, '{}']);
        const read = await admin('GET', path);
        expect(read.status).to.equal(200);
        expect(metadataOf(read)).not.to.have.any.keys('labels', 'deletion_timestamp');
        const stale = { ...DRY, 'if-match': `"${kind.kind}-99"` };
        for (const [verb, body] of [
          ['PATCH', labels('x')],
          ['DELETE', undefined],
        ] as const)
          expect((await leavesNoTrace(verb, () => admin(verb, path, body, stale))).status).to.equal(412);
        const locked = await leavesNoTrace('lock', () =>
          admin('PATCH', `${path}?lock=true`, { metadata: { version: 77, labels: { a: 'b' } } }, DRY),
        );
        expect(locked.status).to.equal(409);
      });

      it('takes what a mask names and nothing else', async () => {
        const { path, reply } = await create();
        const both = { metadata: { labels: { env: 'one' }, annotations: { note: 'N' } } };
        const masked = await admin('PATCH', `${path}?update_mask=metadata.labels`, both);
        expect(masked.status, masked.text).to.equal(200);
        expect(metadataOf(masked)['labels']).to.deep.equal({ env: 'one' });
        // What the service itself says of it, nobody takes away.
        const own = metadataOf(reply)['annotations'] as Json | undefined;
        expect(metadataOf(masked)['annotations']).to.deep.equal(own);
        const dotted = await admin('PATCH', `${path}?updateMask=metadata.labels.a.b/c`, labels('two'));
        expect(metadataOf(dotted)['labels']).to.deep.equal({ env: 'one', 'a.b/c': 'x' });
        const more = { metadata: { displayName: 'D', annotations: { note: 'M' } } };
        const list = await admin(
          'PATCH',
          `${path}?update_mask=metadata.displayName,metadata.annotations`,
          more,
        );
        expect(metadataOf(list)).to.deep.include({ display_name: 'D', annotations: { ...own, note: 'M' } });
        const cleared = await admin('PATCH', `${path}?update_mask=metadata.labels.env`, {});
        expect(metadataOf(cleared)['labels']).to.deep.equal({ 'a.b/c': 'x' });
        const gone = await admin('PATCH', path, { metadata: { labels: {}, annotations: null } });
        expect(metadataOf(gone)).not.to.have.any.keys('labels');
        expect(metadataOf(gone)['annotations']).to.deep.equal(own);
        const unknown = await admin('PATCH', `${path}?update_mask=nope.x`, {});
        expect(unknown.status).to.equal(400);
        expect(textAt(unknown.json, 'message')).to.contain("'nope.x'");
      });

      it('a change of nothing writes nothing', async () => {
        const { path, reply } = await create();
        const read = await admin('GET', path);
        for (const body of [{}, objectOf(read)]) {
          const same = await leavesNoTrace(JSON.stringify(body), () => admin('PATCH', path, body));
          expect(same.status, same.text).to.equal(200);
          expect(objectOf(same)).to.deep.equal(objectOf(read));
          expect(same.headers.get('etag')).to.equal(reply.headers.get('etag'));
        }
      });

      it('name, tenant and project stay', async () => {
        const { path } = await create();
        for (const [field, value] of [
          ['name', 'other-name'],
          ['tenant', 't2'],
          ['project', 'elsewhere'],
        ] as const) {
          const reply = await admin('PATCH', path, { metadata: { [field]: value } });
          expect(reply.status, reply.text).to.equal(400);
          expect(textAt(reply.json, 'message')).to.equal(`field 'metadata.${field}' is immutable`);
        }
      });

      it('with finalizers it stays readable until the last one is gone', async () => {
        const { path } = await create();
        const set = await admin('PATCH', path, { metadata: { finalizers: ['z', 'a', 'z'] } });
        expect(set.status, set.text).to.equal(200);
        expect(metadataOf(set)['finalizers']).to.deep.equal(['a', 'z']);
        await leavesNoTrace('the same in another order', () =>
          admin('PATCH', path, { metadata: { finalizers: ['z', 'z', 'a'] } }),
        );
        expect((await admin('DELETE', path)).text).to.equal('{}');
        const first = textAt(metadataOf(await admin('GET', path)), 'deletion_timestamp');
        const again = await leavesNoTrace('second delete', () => admin('DELETE', path));
        expect([again.status, again.text]).to.deep.equal([200, '{}']);
        expect(textAt(metadataOf(await admin('GET', path)), 'deletion_timestamp')).to.equal(first);
        const fewer = await admin('PATCH', path, { metadata: { finalizers: ['a'] } });
        expect(fewer.status, fewer.text).to.equal(200);
        expect((await admin('GET', path)).status).to.equal(200);
        const last = await admin('PATCH', path, { metadata: { finalizers: [] } });
        expect(last.status, last.text).to.equal(200);
        expect(metadataOf(last)).not.to.have.any.keys('finalizers');
        for (const [verb, body] of [
          ['GET', undefined],
          ['PATCH', labels('late')],
          ['DELETE', undefined],
        ] as const)
          expect((await admin(verb, path, body)).status, verb).to.equal(404);
      });

      it('what would clear the name or another immutable value is refused, and changes nothing', async () => {
        const { path } = await create();
        const marked = await admin('PATCH', path, {
          metadata: { labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['of-somebody'] },
        });
        expect(marked.status, marked.text).to.equal(200);
        const before = objectOf(marked);
        const spec =
          Object.hasOwn(before, 'spec') && kind.immutable.some((field) => field.startsWith('spec.'));
        for (const [query, body] of [
          ['', { metadata: {} }],
          ['', { metadata: null }],
          ['?update_mask=metadata', {}],
          ['?update_mask=metadata', { metadata: { labels: { z: 'z' } } }],
          ...(spec
            ? ([
                ['', { spec: {} }],
                ['', { spec: null }],
                ['?update_mask=spec', {}],
              ] as const)
            : []),
        ] as const) {
          const reply = await admin('PATCH', `${path}${query}`, body);
          const what = `${query} ${JSON.stringify(body)}: ${reply.text}`;
          expect(reply.status, what).to.equal(400);
          expect(textAt(reply.json, 'message'), what).to.contain('immutable');
          expect(objectOf(await admin('GET', path)), what).to.deep.equal(before);
        }
        const emptied = await admin('PATCH', path, { metadata: { finalizers: [] } });
        expect(emptied.status, emptied.text).to.equal(200);
      });

      it('labels, annotations and finalizers are bounded', async () => {
        const { path } = await create();
        const many = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`k-${i}`, 'v']));
        for (const [metadata, text] of [
          [{ labels: many }, 'at most 128 labels'],
          [{ annotations: many }, 'at most 128 annotations'],
          [{ annotations: { big: 'x'.repeat(262_144) } }, 'at most 262144 bytes'],
          [{ finalizers: Array.from({ length: 65 }, (_, i) => `f-${i}`) }, 'at most 64 finalizers'],
          [{ finalizers: [''] }, 'every finalizer must have'],
        ] as const) {
          const reply = await admin('PATCH', path, { metadata });
          expect(reply.status, text).to.equal(400);
          expect(textAt(reply.json, 'message')).to.contain(text);
        }
      });

      it('answers are wrapped where OSAC wraps them', async () => {
        const { reply } = await create();
        expect(Object.hasOwn(reply.json, 'object')).to.equal(kind.wrapsReplies === true);
      });
    });
  }
});

describe('a dry run by somebody who was never here', () => {
  it('makes no user, the next call does', async () => {
    const service = await startTestService({ provisionUsers: true });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      await seedCatalogue(admin);
      const zoe = callerOf(service, await service.token({ user: 'zoe', tenants: ['t1'] }));
      const order = { metadata: { name: 'tried' }, spec: SPEC };
      const clusters = `${PUBLIC}/clusters`;
      const last = await service.store.lastPosition();
      const tried = await zoe('POST', clusters, order, { 'x-dry-run': 'true' });
      expect(tried.status, tried.text).to.equal(200);
      expect(await service.store.lastPosition()).to.equal(last);
      expect((await admin('GET', `${PRIVATE}/users`)).json['total']).to.equal(undefined);
      expect((await zoe('POST', clusters, order)).status).to.equal(200);
      expect((await admin('GET', `${PRIVATE}/users`)).json['total']).to.equal(1);
    } finally {
      await service.close();
    }
  });
});
