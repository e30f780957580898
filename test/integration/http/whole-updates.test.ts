import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { decodeMessage, type Surface } from '../../../src/http/osac/messages.ts';
import { principalOf, type Principal } from '../../../src/http/osac/principal.ts';
import {
  PRIVATE,
  PUBLIC,
  textAt,
  type Caller,
  type Json,
  type TestService,
} from '../../support/http-service.ts';
import { KIND_SAMPLES, makeHousePool, named, type Around } from '../../support/kind-samples.ts';
import { CLUSTERS, SMALL, startOrdering, type Ordering } from './ordering.ts';

const principal = (user: string, more: { groups?: string[]; organizations?: string[] }): Principal =>
  principalOf({
    issuer: 'https://sso.example/realms/osac',
    subject: user,
    userName: user,
    serviceAccount: false,
    organizations: [],
    groups: [],
    realmRoles: [],
    expiresAt: 4_000_000_000,
    tokenIdHash: '',
    ...more,
  });
const ADMIN = principal('root', { groups: ['admins'] });
const ALICE = principal('alice', { organizations: ['t1'] });

type Edited = { [key: string]: Edited } & Json;
const copyOf = (object: Json): Edited => structuredClone(object) as Edited;

/** Objects as gRPC clients send them: whole, without a mask, and without what is empty. */
describe('update by a whole object', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let order: Ordering['order'];
  let around: Around;
  /** True: the store has lost all but the last event of every stream. */
  let isTruncated = false;
  let serial = 0;

  before(async () => {
    const inner = createMemoryEventStore();
    const store: EventStore = {
      ...inner,
      readStream: async function* (stream, options) {
        const last = await inner.currentRevision(stream);
        for await (const event of inner.readStream(stream, options))
          if (!isTruncated || event.revision === last) yield event;
      },
    };
    ({ service, admin, user, order } = await startOrdering({ store }));
    await makeHousePool(admin);
    for (const [collection, body] of [
      ['projects', named('house')],
      ['roles', { metadata: { name: 'house-role' } }],
    ] as const)
      expect((await admin('POST', `${PRIVATE}/${collection}`, body)).status).to.equal(200);
    const users: string[] = [];
    for (let i = 0; i < 6; i += 1) {
      const body = { ...named(`member-${i}`), spec: { username: `member-${i}` } };
      const { json } = await admin('POST', `${PRIVATE}/users`, body);
      users.push(textAt(json['object'] ?? json, 'id'));
    }
    around = { user: () => users.pop() ?? '' };
  });
  after(() => service.close());

  const update = async (
    surface: Surface,
    collection: string,
    object: Json,
    {
      lock = false,
      caller = surface === 'private' ? ADMIN : ALICE,
    }: { readonly lock?: boolean; readonly caller?: Principal } = {},
  ): Promise<Json> => {
    const kind = service.surfaces.find((table) => table.surface === surface)?.kinds.get(collection);
    if (kind === undefined) throw new Error(`no ${collection} on the ${surface} surface`);
    const { document } = decodeMessage(kind.schema, JSON.stringify(object));
    const id = textAt(object, 'id');
    const answer = await kind.update({
      surface,
      method: `/osac.${surface}.v1.${kind.governed.service}/Update`,
      principal: caller,
      message: { id, object: document, present: document, whole: true, lock },
      metadata: { requestId: 'r', verb: 'PATCH', route: `/${collection}/${id}` },
      signal: new AbortController().signal,
    });
    if (answer.position !== undefined) await service.positions.applied(answer.position);
    const reply = JSON.parse(String(answer.body)) as Json;
    return reply['object'] ?? reply;
  };
  const refusal = async (what: Promise<unknown>): Promise<ApiError> => {
    const error: unknown = await what.then(
      () => undefined,
      (cause: unknown) => cause,
    );
    if (error instanceof ApiError) return error;
    throw new Error('the update was not refused', { cause: error });
  };
  const onClusters = (object: Json, options = {}): Promise<Json> =>
    update('public', 'clusters', object, options);
  const read = async (id: string): Promise<Edited> => copyOf((await user('GET', `${CLUSTERS}/${id}`)).json);

  it('given a label, when the last one is taken away, then none is left', async () => {
    const { id } = await order({ labels: { env: 'dev' } });
    const edited = await read(id);
    delete (edited['metadata'] as Edited)['labels'];
    expect((await onClusters(edited))['metadata']).not.to.have.any.keys('labels');
    expect((await read(id))['metadata']).not.to.have.any.keys('labels');
  });

  it('given a text, when an edit clears it, then it is gone', async () => {
    const { id } = await order({}, { ...SMALL, ssh_public_key: 'ssh-rsa AAAA' });
    const edited = await read(id);
    (edited['spec'] as Record<string, unknown>)['ssh_public_key'] = '';
    expect((await onClusters(edited))['spec']).not.to.have.any.keys('ssh_public_key');
  });

  it('given an object that was read, when somebody scales before it is sent, then both changes are there', async () => {
    const { id } = await order({ labels: { env: 'dev' } });
    const edited = await read(id);
    (edited['metadata'] as Record<string, unknown>)['labels'] = { env: 'prod' };
    const scaled = await user('PATCH', `${CLUSTERS}/${id}`, {
      spec: { node_sets: { workers: { size: 9 } } },
    });
    expect(scaled.status, scaled.text).to.equal(200);
    const result = await onClusters(edited);
    expect(result['metadata']?.['labels']).to.deep.equal({ env: 'prod' });
    expect(result['spec']?.['node_sets']?.['workers']?.['size']).to.equal(9);
  });

  it('given both changed one value, when it is sent, then what is sent wins, and with lock nothing does', async () => {
    const { id } = await order({ labels: { env: 'dev' } });
    const edited = await read(id);
    (edited['metadata'] as Record<string, unknown>)['labels'] = { env: 'prod' };
    await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { env: 'stage' } } });
    const locked = await refusal(onClusters(edited, { lock: true }));
    expect(locked.error).to.equal('ABORTED');
    expect((await onClusters(edited))['metadata']?.['labels']).to.deep.equal({ env: 'prod' });
  });

  it('given many writers at once, then each one finds its own label and no other is lost', async () => {
    const { id } = await order();
    const names = Array.from({ length: 8 }, (_, i) => `writer-${i}`);
    await Promise.all(
      names.map(async (name) => {
        const edited = await read(id);
        const labels = edited['metadata']?.['labels'] ?? {};
        (edited['metadata'] as Record<string, unknown>)['labels'] = { ...labels, [name]: 'x' };
        return onClusters(edited);
      }),
    );
    const left = await read(id);
    expect(Object.keys(left['metadata']?.['labels'] ?? {})).to.have.members(names);
  });

  describe('by an operator', () => {
    const asOperator = async (id: string): Promise<Edited> =>
      copyOf((await admin('GET', `${PRIVATE}/clusters/${id}`)).json);
    const change = (object: Edited, part: 'metadata' | 'status', more: object): Json => ({
      ...object,
      [part]: { ...(object[part] as object), ...more },
    });

    it('given a finalizer, when the last one is removed, then none is left', async () => {
      const { id } = await order();
      const held = await update(
        'private',
        'clusters',
        change(await asOperator(id), 'metadata', { finalizers: ['osac.example/feedback'] }),
      );
      expect(held['metadata']?.['finalizers']).to.deep.equal(['osac.example/feedback']);
      const freed = await update(
        'private',
        'clusters',
        change(await asOperator(id), 'metadata', { finalizers: [] }),
      );
      expect(freed['metadata']).not.to.have.any.keys('finalizers');
    });

    it('given a status to write, when the tenant scales meanwhile, then both changes are there', async () => {
      const { id } = await order();
      const seen = await asOperator(id);
      await user('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size: 9 } } } });
      const conditions = [
        { type: 'CLUSTER_CONDITION_TYPE_PROGRESSING', status: 'CONDITION_STATUS_TRUE', reason: 'Seen' },
      ];
      const result = await update('private', 'clusters', change(seen, 'status', { conditions }));
      expect(result['status']?.['conditions']).to.deep.equal(conditions);
      expect(result['spec']?.['node_sets']?.['workers']?.['size']).to.equal(9);
    });
  });

  it('given a status, when a tenant sends another one, then it stays', async () => {
    const { id } = await order();
    const edited = await read(id);
    const before = edited['status'];
    const result = await onClusters({
      ...edited,
      status: { state: 'CLUSTER_STATE_READY' },
    } as unknown as Json);
    expect(result['status']).to.deep.equal(before);
  });

  it('given a pull secret, when *** comes back, then it stays; when nothing comes back, then it goes', async () => {
    const { id } = await order({}, { ...SMALL, pull_secret: 'FIRST' });
    const values = service.secrets.values.size;
    const kept = await read(id);
    (kept['spec'] as Record<string, unknown>)['ssh_public_key'] = 'k';
    expect((await onClusters(kept))['spec']).to.include({ pull_secret: '***', ssh_public_key: 'k' });
    expect(service.secrets.values.size).to.equal(values);
    const cleared = await read(id);
    delete (cleared['spec'] as Edited)['pull_secret'];
    expect((await onClusters(cleared))['spec']).not.to.have.any.keys('pull_secret');
  });

  it('given another name or template, then it is refused', async () => {
    const { id } = await order();
    const renamed = await read(id);
    (renamed['metadata'] as Record<string, unknown>)['name'] = 'other';
    expect((await refusal(onClusters(renamed))).message).to.equal("field 'metadata.name' is immutable");
    const moved = await read(id);
    (moved['spec'] as Record<string, unknown>)['template'] = { id: 'osac.templates.big' };
    expect((await refusal(onClusters(moved))).message).to.equal("field 'spec.template' is immutable");
  });

  describe('that names a version which the log does not answer for', () => {
    const withMetadata = (object: Json, more: object): Json => ({
      ...object,
      metadata: { ...(object['metadata'] as object), ...more } as Json,
    });

    it('above the current one, then it is aborted with both numbers', async () => {
      const { id } = await order();
      const error = await refusal(onClusters(withMetadata(await read(id), { version: 7 })));
      expect([error.error, error.reason]).to.deep.equal(['ABORTED', 'VERSION_UNKNOWN']);
      expect(error.message).to.contain('has no version 7, its current version is 0');
    });

    it('of another object with the same id, then it is aborted', async () => {
      const { id } = await order();
      const other = withMetadata(await read(id), { creation_timestamp: '2020-01-01T00:00:00Z' });
      const error = await refusal(onClusters(other));
      expect([error.error, error.reason]).to.deep.equal(['ABORTED', 'OBJECT_REPLACED']);
    });

    it('whose events are gone, then it is aborted', async () => {
      const { id } = await order();
      const edited = await read(id);
      for (const env of ['a', 'b'])
        await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { env } } });
      isTruncated = true;
      const error = await refusal(onClusters(edited)).finally(() => (isTruncated = false));
      expect([error.error, error.reason]).to.deep.equal(['ABORTED', 'VERSION_NOT_KEPT']);
    });
  });

  describe('that was not read', () => {
    it('what is sent decides: a map is replaced, and what is absent or empty stays', async () => {
      const { id } = await order({ labels: { env: 'dev' } }, { ...SMALL, ssh_public_key: 'k' });
      const sent = { id, metadata: { labels: { team: 'x' } }, spec: { network: {} } } as unknown as Json;
      const result = await onClusters(sent);
      expect(result['metadata']?.['labels']).to.deep.equal({ team: 'x' });
      expect(result['spec']).to.include({ ssh_public_key: 'k' });
      const again = await onClusters({ id, metadata: {}, spec: {} } as unknown as Json);
      expect(again).to.deep.equal(result);
    });

    it('a set that is sent without a size keeps it, and one that is not sent goes', async () => {
      const { id } = await order();
      await user('PATCH', `${CLUSTERS}/${id}`, {
        spec: { node_sets: { workers: {}, extra: { host_type: { id: 'gpu' }, size: 2 } } },
      });
      const sent = { id, spec: { node_sets: { workers: {} } } } as unknown as Json;
      expect((await onClusters(sent))['spec']?.['node_sets']).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 3 },
      });
    });
  });

  for (const kind of kinds)
    for (const surface of ['private', 'public'] as const) {
      if (!kind.methods[surface].includes('Update')) continue;
      it(`given one of ${kind.words}, when it comes back as it was read (${surface}), then nothing is written`, async () => {
        const { body, settled = kind.published && { published: true } } = KIND_SAMPLES[
          kind.kind
        ] as (typeof KIND_SAMPLES)[string] & object;
        const collection = `${PRIVATE}/${kind.collection}`;
        const made = await admin('POST', collection, body(`w-${surface}-${(serial += 1)}`, around));
        expect(made.status, made.text).to.equal(200);
        const id = encodeURIComponent(textAt(made.json['object'] ?? made.json, 'id'));
        if (settled !== undefined)
          expect((await admin('PATCH', `${collection}/${id}`, settled)).status).to.equal(200);
        const prefix = surface === 'private' ? PRIVATE : PUBLIC;
        const { status, json, text } = await admin('GET', `${prefix}/${kind.collection}/${id}`);
        expect(status, text).to.equal(200);
        const before = [await service.store.lastPosition(), service.secrets.values.size];
        expect(await update(surface, kind.collection, json, { caller: ADMIN })).to.deep.equal(json);
        expect([await service.store.lastPosition(), service.secrets.values.size]).to.deep.equal(before);
      });
    }
});
