import { expect } from 'chai';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { auditRoutes } from '../../../src/http/audit/routes.ts';
import type { AuditServices } from '../../../src/http/audit/services.ts';
import { AUDIT, until } from '../../support/audit/stage.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt, type Caller, type Json } from '../../support/http/service.ts';

/** What somebody types where an id or a name belongs: an address, and a name in the form of an id. */
const TYPED = ['bob.canary@acme.example', 'Bobby-Canary'] as const;
const UUID = '0193a1b2-0000-7000-8000-0000000000ee';

/** In every encoding in which a stream name, a path or a dump would have it. */
const SPELLINGS = TYPED.flatMap((text) => [
  text,
  encodeURIComponent(text),
  Buffer.from(text).toString('base64url').slice(0, -2),
  Buffer.from(text).toString('hex'),
]);
const saysSo = (bytes: Buffer | string): boolean => SPELLINGS.some((text) => bytes.includes(text));

type Call = {
  readonly as: 'auditor' | 'admin';
  readonly verb: string;
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Calls that name nothing that is there: all are refused. */
const callsWith = (typed: string): readonly Call[] => {
  const id = encodeURIComponent(typed);
  const labels = { metadata: { labels: { a: 'b' } } };
  const ofKinds = kinds.flatMap(({ collection, methods }) =>
    (['public', 'private'] as const).flatMap((surface): Call[] => {
      if (methods[surface].length === 0) return [];
      const as = surface === 'public' ? 'auditor' : 'admin';
      const path = `${surface === 'public' ? PUBLIC : PRIVATE}/${collection}`;
      return [
        { as, verb: 'GET', path: `${path}/${id}` },
        { as, verb: 'PATCH', path: `${path}/${id}`, body: labels },
        { as, verb: 'DELETE', path: `${path}/${id}` },
        { as, verb: 'POST', path, body: { metadata: { name: typed }, [typed]: typed } },
        { as, verb: 'GET', path: `${path}?filter=${id}` },
      ];
    }),
  );
  const headers = [
    'idempotency-key',
    'if-match',
    'x-ledger-command-id',
    'x-ledger-min-position',
    'x-dry-run',
  ];
  const described = { 'user-agent': typed, traceparent: typed, 'x-request-id': TYPED[0], referer: typed };
  const withHeaders = [...headers.map((name) => ({ [name]: typed })), described].map(
    (more): Call => ({
      as: 'auditor',
      verb: 'PATCH',
      path: `${PUBLIC}/clusters/${id}`,
      body: labels,
      headers: more,
    }),
  );
  const ofAudit = auditRoutes({} as AuditServices).flatMap(({ verb, path }): Call[] =>
    (['auditor', 'admin'] as const).flatMap((as): Call[] => {
      const at = (kind: string, of: string): string =>
        `${AUDIT}/${path.replace('{kind}', kind).replace('{id}', of).replace('{path*}', of)}`;
      const body = verb === 'POST' ? { [typed]: typed } : undefined;
      const same = { as, verb, ...(body === undefined ? {} : { body }) };
      return [
        ...(path.includes('{id}') || path.includes('*}') ? [{ ...same, path: at('cluster', id) }] : []),
        ...(path.includes('{kind}') ? [{ ...same, path: at(id, UUID) }] : []),
        { ...same, path: `${at('cluster', UUID)}?${id}=1` },
      ];
    }),
  );
  const asked = [
    ...['subject', 'type', 'outcome', 'kind', 'cursor', 'from', 'limit', 'tenant'].map(
      (name) => `${name}=${id}`,
    ),
    `kind=${id}&id=${id}`,
    `kind=cluster&id=${id}&limit=0`,
  ].map((query): Call => ({ as: 'auditor', verb: 'GET', path: `${AUDIT}/events?${query}` }));
  const bodies: readonly (readonly [string, object])[] = [
    ['exports', { filter: { subject: typed } }],
    ['exports', { filter: { kind: 'cluster', resource_id: typed } }],
    ['exports', { filter: { kind: typed } }],
    ['exports', { filter: { types: [typed] } }],
    ['exports', { tenant: typed }],
    ['exports', { [typed]: 1 }],
    ['holds', { scope: { kind: 'subject', id: typed }, reason: 'r' }],
    ['holds', { scope: { kind: 'tenant', id: typed }, reason: 'r' }],
    ['erasures', { subject_id: typed, tenant: 'acme', reason: 'r' }],
    ['grants', { subject: typed, tenants: 'all', reason: 'r' }],
    ['grants', { subject: UUID, tenants: [typed], reason: 'r' }],
  ];
  const written = bodies.map(
    ([path, body]): Call => ({
      as: path === 'exports' && !('tenant' in body) ? 'auditor' : 'admin',
      verb: 'POST',
      path: `${AUDIT}/${path}`,
      body,
    }),
  );
  const ofOperators = ['retry', 'cancel'].map(
    (what): Call => ({ as: 'admin', verb: 'POST', path: `/api/ledger/v1/orders/${id}/${what}` }),
  );
  return [...ofKinds, ...withHeaders, ...ofAudit, ...asked, ...written, ...ofOperators];
};

describe('what somebody has only typed', function () {
  this.timeout(120_000);
  let whole: WholeService;
  let root: Caller;
  let auditor: Caller;
  let bob: Caller;
  let calls = 0;
  const lines: string[] = [];
  /** Ids of calls that are to be on record. */
  const recorded = new Set<string>();

  const claims = (name: string, admin = false): object => ({
    sub: name,
    preferred_username: name,
    // An auditor alone only reads.
    ...(admin
      ? { groups: ['admins'] }
      : { organization: ['acme'], realm_access: { roles: ['auditor', 'tenant-idp-manager'] } }),
  });
  const SMALL = { template: { id: 'osac.templates.ocp_ci_small' } };

  before(async () => {
    whole = await createWholeService({}, { write: (line) => void lines.push(line) });
    await whole.start();
    root = await whole.caller(claims('root', true));
    auditor = await whole.caller(claims('audrey'));
    bob = await whole.caller(claims('bob'));
    const ordered = await bob('POST', `${PUBLIC}/clusters`, { metadata: { name: 'one' }, spec: SMALL });
    expect(ordered.status, ordered.text).to.equal(200);
    const callers: Partial<Record<Call['as'], Caller>> = {};
    for (const typed of TYPED)
      for (const { as, verb, path, body, headers } of callsWith(typed)) {
        // Fewer of one caller than are recorded one by one.
        if (calls % 40 === 0)
          for (const role of ['auditor', 'admin'] as const)
            callers[role] = await whole.caller(claims(`typist-${role}-${calls}`, role === 'admin'));
        calls += 1;
        const reply = await (callers[as] ?? root)(verb, path, body, headers);
        const what = `${as} ${verb} ${path} ${JSON.stringify(body)} ${JSON.stringify(headers)}`;
        // The list of what happened to an object that is not there is empty.
        const isList = verb === 'GET' && /\/events(\?kind=\w+&id=.*)?$/.test(path);
        if (!isList || reply.status !== 200)
          expect(reply.status, `${what}: ${reply.text}`).to.be.within(400, 501).and.not.equal(500);
        if (verb !== 'GET' || path.startsWith(AUDIT)) {
          const tried = headers !== undefined && 'x-dry-run' in headers;
          if (!tried) recorded.add(reply.headers.get('x-request-id') ?? '');
        }
      }
    await bob('PATCH', `${PUBLIC}/clusters/${encodeURIComponent(TYPED[0])}`, { metadata: {} });
    await bob('GET', `${AUDIT}/resources/cluster/${encodeURIComponent(TYPED[0])}`);
    const asked = await auditor('POST', `${AUDIT}/exports`, { tenant: 'acme' });
    expect(asked.status, asked.text).to.equal(202);
    await until(async () => {
      const state = await auditor('GET', `${AUDIT}/exports/${textAt(asked.json, 'id')}`);
      return textAt(state.json, 'state') === 'complete';
    });
  });
  after(() => whole.dispose());

  const isOnRecord = (log: readonly RecordedEvent[]): ReadonlySet<string> =>
    new Set(
      log
        .filter(({ type }) => type === 'RequestRefused' || type === 'AuditRead')
        .map(({ metadata }) => stringAt(metadata, 'correlationId')),
    );

  /** Files under the data directory that say so. */
  const tellingFiles = async (): Promise<readonly string[]> => {
    const telling: string[] = [];
    for (const entry of await readdir(whole.dataDir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      if (saysSo(await readFile(file))) telling.push(relative(whole.dataDir, file));
    }
    return telling;
  };
  const refusalsOf = async (subject: string): Promise<readonly Json[]> =>
    itemsOf(await auditor('GET', `${AUDIT}/events?type=RequestRefused&subject=${subject}&limit=500`));

  it('is in no event in clear, though each such call is on record, and in no line of the log', async () => {
    expect(calls).to.be.greaterThan(300);
    await until(async () => {
      const there = isOnRecord(await whole.log());
      return [...recorded].every((id) => there.has(id));
    });
    const telling = (await whole.log()).filter((event) => saysSo(JSON.stringify(event)));
    expect(telling.map(({ type, stream }) => `${type} ${stream}`)).to.deep.equal([]);
    expect(lines.filter(saysSo)).to.deep.equal([]);
  });

  it('is in no file of the store and of the read models, and in no file of an export but where it is revealed', async () => {
    const telling = await tellingFiles();
    expect(telling.filter((file) => !file.startsWith('exports'))).to.deep.equal([]);
  });

  it('is in no record of Kafka', async () => {
    await whole.stop();
    const store = await openSqliteEventStore({ dataDir: whole.dataDir });
    const telling: string[] = [];
    let records = 0;
    const log = await whole.log();
    for (const { map } of createStreams({ registry, kinds, store }))
      for (const event of log)
        for (const record of await map(event)) {
          records += 1;
          if (saysSo(JSON.stringify(record))) telling.push(`${record.topic} ${record.key}`);
        }
    await store.close();
    expect(records).to.be.greaterThan(200);
    expect(telling).to.deep.equal([]);
    await whole.start();
  });

  it('is read by those who may read of the call, until who wrote it is erased; from then on by nobody', async () => {
    const [ordered] = itemsOf(await auditor('GET', `${AUDIT}/events?type=ClusterOrdered`));
    const subject = textAt(ordered, 'actor', 'subject');
    const looks = async (): Promise<readonly Json[]> =>
      itemsOf(await root('GET', `${AUDIT}/events?type=AuditRead&subject=${subject}`));
    const [refused] = await refusalsOf(subject);
    expect(textAt(refused, 'data', 'named')).to.equal(TYPED[0]);
    expect(textAt(refused, 'data', 'message')).to.include(TYPED[0]);
    expect(textAt((await looks())[0], 'data', 'query', 'id')).to.equal(TYPED[0]);
    for (const each of itemsOf(await root('GET', `${AUDIT}/events?type=AuditRead&tenant=acme`)))
      expect(JSON.stringify(each['data']?.['asked'] ?? {})).not.to.match(/canary/i);
    const people = new Set(
      (await whole.log())
        .filter(({ type }) => type === 'RequestRefused' || type === 'AuditRead')
        .map(({ data }) => stringAt(data, 'subjectId')),
    );
    for (const subject_id of people) {
      const own = (await whole.log()).find(({ data }) => stringAt(data, 'subjectId') === subject_id);
      const tenant = stringAt(own?.metadata ?? {}, 'tenant');
      const erased = await root('POST', `${AUDIT}/erasures`, { subject_id, tenant, reason: 'asked for it' });
      expect(erased.status, erased.text).to.equal(200);
    }
    const [after] = await refusalsOf(subject);
    expect(after?.['data']?.['named']).to.deep.equal({ erased: true });
    expect(after?.['data']?.['message']).to.deep.equal({ erased: true });
    expect((await looks())[0]?.['data']?.['query']?.['id']).to.deep.equal({ erased: true });
    await whole.stop();
    expect(await tellingFiles()).to.deep.equal([]);
  });
});
