import { expect } from 'chai';
import { kinds } from '../../../src/domain/kinds.ts';
import { asRest, grpcCaller, type GrpcCaller } from '../../support/grpc-caller.ts';
import { KIND_SAMPLES, makeHousePool, named } from '../../support/kind-samples.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http-service.ts';

type Stage = {
  readonly service: TestService;
  /** The calls of the script, over the protocol in question. */
  readonly admin: Caller;
  readonly tenant: Caller;
  readonly users: string[];
  readonly close: () => Promise<void>;
};

/** A service of its own for each protocol, so that both have the same past. */
const openStage = async (protocol: 'HTTP' | 'gRPC'): Promise<Stage> => {
  const service = await startTestService();
  const tokens = [
    await service.token({ user: 'root', admin: true }),
    await service.token({ user: 'alice', tenants: ['t1'], roles: ['tenant-admin'] }),
  ];
  const http = tokens.map((token) => callerOf(service, token));
  const grpc: GrpcCaller[] = tokens.map((token) => grpcCaller(service.grpcAddress, token));
  const [setUp] = http;
  if (setUp === undefined) throw new Error('no caller');
  await seedCatalogue(setUp);
  for (const [collection, body] of [
    ['projects', named('house')],
    ['roles', { metadata: { name: 'house-role' } }],
  ] as const)
    expect((await setUp('POST', `${PRIVATE}/${collection}`, body)).status).to.equal(200);
  await makeHousePool(setUp);
  const users: string[] = [];
  for (let i = 0; i < 8; i += 1) {
    const body = { ...named(`member-${i}`), spec: { username: `member-${i}` } };
    users.push(textAt((await setUp('POST', `${PRIVATE}/users`, body)).json, 'id'));
  }
  const [admin, tenant] = protocol === 'HTTP' ? http : grpc.map(asRest);
  if (admin === undefined || tenant === undefined) throw new Error('no caller');
  return {
    service,
    admin,
    tenant,
    users,
    close: async () => {
      for (const each of grpc) each.close();
      await service.close();
    },
  };
};

/** What differs from run to run is written alike: ids by the order in which they appear. */
const normalizer = () => {
  const known = new Map<string, string>();
  return (text: string): string =>
    text
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        const name = known.get(id) ?? `id-${known.size}`;
        known.set(id, name);
        return name;
      })
      .replaceAll(/\bname-[0-9a-f]{64}/g, 'name-HASH')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
};

/** Wrapped replies are a matter of REST alone. */
const bodyOf = (reply: Reply): unknown =>
  reply.status === 200 ? (reply.json['object'] ?? reply.json) : { message: reply.json['message'] };

/** One life of an object of the kind, and what is refused on the way; gives back what was answered. */
const play = async (kind: (typeof kinds)[number], stage: Stage): Promise<readonly string[]> => {
  const { service, admin, tenant, users } = stage;
  const sample = KIND_SAMPLES[kind.kind];
  if (sample === undefined) throw new Error(`no sample of ${kind.kind}`);
  const told: string[] = [];
  const normalized = normalizer();
  const note = (what: string, reply: Reply): Reply => {
    const etag = reply.headers.get('etag') ?? '';
    const body = JSON.stringify(bodyOf(reply), sortedKeys);
    told.push(normalized(`${what}: ${reply.status} ${etag} ${reply.headers.get('x-ledger-reason')} ${body}`));
    return reply;
  };
  const [user = ''] = users;
  const body = sample.body('both-1', { user: () => user });
  const all = `${PRIVATE}/${kind.collection}`;
  const since = await service.store.lastPosition();
  note('dry create', await admin('POST', all, body, { 'x-dry-run': 'true' }));
  note('create', await admin('POST', all, { ...body, metadata: { name: 'No Name' } }));
  const made = note('create', await admin('POST', all, body, { 'idempotency-key': 'both-1' }));
  const path = `${all}/${encodeURIComponent(textAt(made.json['object'] ?? made.json, 'id'))}`;
  note('again', await admin('POST', all, body, { 'idempotency-key': 'both-1' }));
  note('other under the key', await admin('POST', all, named('x'), { 'idempotency-key': 'both-1' }));
  note('taken', await admin('POST', all, body));
  if (sample.settled !== undefined) {
    const mask = '?update_mask=status';
    note('settled', await admin('PATCH', path + mask, sample.settled));
  }
  const labels = { metadata: { labels: { env: 'one', 'a.b/c': 'x' } } };
  const masked = `${path}?update_mask=metadata.labels`;
  note('labels', await admin('PATCH', masked, labels));
  note('stale', await admin('PATCH', masked, labels, { 'if-match': `"${kind.kind}-99"` }));
  note(
    'lock',
    await admin('PATCH', `${masked}&lock=true`, { metadata: { version: 77, labels: { a: 'b' } } }),
  );
  note('bad mask', await admin('PATCH', `${path}?update_mask=nope.x`, labels));
  note(
    'immutable',
    await admin('PATCH', `${path}?update_mask=metadata.name`, { metadata: { name: 'other' } }),
  );
  note('read', await admin('GET', path));
  note('list', await admin('GET', `${all}?filter=this.metadata.name%20%3D%3D%20%22both-1%22`));
  note('bad filter', await admin('GET', `${all}?filter=nope%20%3D%3D%201`));
  note('bad limit', await admin('GET', `${all}?limit=-1`));
  note('not a tenant', await tenant('GET', path));
  note('absent', await admin('GET', `${all}/nope`));
  const shown = path.replace(PRIVATE, PUBLIC);
  if (kind.methods.public.includes('Get')) note('tenant reads', await tenant('GET', shown));
  if (kind.methods.public.includes('Delete'))
    note('tenant deletes', await tenant('DELETE', shown, undefined, { 'x-dry-run': 'true' }));
  note('dry delete', await admin('DELETE', path, undefined, { 'x-dry-run': 'true' }));
  note('delete', await admin('DELETE', path));
  note('gone', await admin('GET', path));
  note('gone', await admin('DELETE', path));
  for await (const event of service.store.readAll({
    ...(since === undefined ? {} : { after: since }),
    limit: 1_000,
  }))
    told.push(normalized(`${event.stream} ${event.type}`));
  for (const { command, code, message } of service.rejections.splice(0))
    told.push(normalized(`refused ${command} ${code} ${message}`));
  return told;
};

const sortedKeys = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)))
    : value;

describe('one script over HTTP and gRPC', () => {
  let http: Stage;
  let grpc: Stage;
  before(async () => {
    [http, grpc] = await Promise.all([openStage('HTTP'), openStage('gRPC')]);
  });
  after(() => Promise.all([http.close(), grpc.close()]));

  for (const kind of kinds)
    it(`${kind.words}: the same answers, events and refusals`, async () => {
      const [over, under] = [await play(kind, http), await play(kind, grpc)];
      expect(under).to.deep.equal(over);
      expect(over.filter((line) => line.startsWith('create: 200'))).to.have.lengthOf(1);
    });
});
