import { expect } from 'chai';
import { detailsOf } from '../../../src/cli/audit/event-details.ts';
import { eventSamples } from '../../support/domain/event-samples.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const SUBJECT = '11111111-aaaa-5000-8000-000000000001';
const EVENT = {
  id: 'e-1',
  event: 'cluster-a@0',
  type: 'ClusterOrdered',
  tenant: 'acme',
  kind: 'cluster',
  resource_id: 'a',
  outcome: 'accepted',
  recorded_at: '2026-11-21T00:00:00.000Z',
  actor: { subject: SUBJECT, roles: [], personal: { user_name: 'alice' } },
  data: {},
};

describe('ledgerctl audit events: subjects', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  beforeEach(() => {
    stub.asked.length = 0;
  });

  it('are asked for by name, and their ids are said where they can be copied', async () => {
    stub.answers(({ query }) =>
      query.get('cursor') === null
        ? { body: { items: [EVENT], subject: SUBJECT, next_cursor: 'c' } }
        : { body: { items: [EVENT], subject: SUBJECT } },
    );
    const { out, err, code } = await stub.run(['audit', 'events', '--subject', 'alice', '-o', 'wide']);
    expect([code, err]).to.deep.equal([0, `alice is the subject ${SUBJECT}\n`]);
    const [header, row] = out.split('\n').map((line) => line.split(/ {2,}/));
    expect(header?.slice(0, 5)).to.deep.equal(['RECORDED', 'TENANT', 'WHO', 'SUBJECT', 'TYPE']);
    expect(row?.slice(2, 4)).to.deep.equal(['alice', SUBJECT]);
    // A person who is renamed meanwhile stays the one that the list began with.
    expect(stub.asked.map(({ query }) => query.get('subject'))).to.deep.equal(['alice', SUBJECT]);
    const byId = await stub.run(['audit', 'events', '--subject', SUBJECT]);
    expect(byId.err).to.equal('');
    expect(byId.out).to.not.include('SUBJECT');
  });

  it('given somebody by the word of another issuer, when a table shows it, then that is said beside the name', async () => {
    const [own, other] = [SUBJECT, SUBJECT.replace('1111', '2222')];
    const said = { subject: other, roles: [], vouched_by: 'https://sso.example/realms/osac' };
    const items = [
      { ...EVENT, actor: { ...said, personal: { user_name: 'bob', issuer: 'https://other.example' } } },
      { ...EVENT, actor: { subject: own, roles: [], personal: { user_name: 'bob' } } },
      { ...EVENT, actor: { ...said, personal: { erased: true } }, recorded_at: '2026-11-22T00:00:00.000Z' },
    ];
    stub.answers(() => ({ body: { items } }));
    const lines = (await stub.succeeds(['audit', 'events'])).split('\n').map((line) => line.split(/ {2,}/));
    expect(lines.slice(1, 4).map((row) => row[2])).to.deep.equal([
      'bob (22221111) by the word of https://sso.example/realms/osac',
      'bob (11111111)',
      `${other} (erased) by the word of https://sso.example/realms/osac`,
    ]);
  });

  it('come as JSON in either spelling', async () => {
    stub.answers(() => ({ body: { items: [EVENT] } }));
    for (const form of [['--json'], ['-o', 'json']])
      expect(await stub.succeeds(['audit', 'events', ...form])).to.equal(`${JSON.stringify(EVENT)}\n`);
    expect((await stub.run(['audit', 'events', '-o', 'yaml'])).code).to.equal(2);
  });
});

describe('details of events', () => {
  const of = (type: string, data: object): string =>
    detailsOf({ type, tenant: 'acme', data: data as { [name: string]: unknown } });

  it('say of a refusal why: what the caller was told, what is told everybody, else the class; nothing twice', () => {
    const of403 = { command: 'X', code: 'PERMISSION_DENIED', error: 'PERMISSION_DENIED' };
    const taken = { command: 'X', code: 'NAME_TAKEN', error: 'ALREADY_EXISTS' };
    expect(of('RequestRefused', of403)).to.equal('X: PERMISSION_DENIED');
    expect(of('RequestRefused', { ...of403, command: 'DELETE /audit.v1/holds/{id}' })).to.equal(
      'DELETE /audit.v1/holds/{id}: PERMISSION_DENIED',
    );
    expect(of('RequestRefused', taken)).to.equal('X: NAME_TAKEN, ALREADY_EXISTS');
    expect(of('RequestRefused', { ...taken, told: 'the name is taken' })).to.equal(
      'X: NAME_TAKEN, the name is taken',
    );
    expect(of('RequestRefused', { ...taken, told: 'taken', message: "'a'\nis taken" })).to.equal(
      "X: NAME_TAKEN, 'a' is taken",
    );
  });

  it('say of a look what was read: all of the question where it is shown, else what may be known of it', () => {
    const query = { tenant: ['acme'], type: ['A', 'B'], limit: 100, after: 7 };
    expect(of('AuditRead', { what: 'events', query, asked: { types: ['A'] }, tenants: ['acme'] })).to.equal(
      'events: tenant acme, type A+B',
    );
    expect(of('AuditRead', { what: 'events', asked: { types: ['A'] }, tenants: ['acme'] })).to.equal(
      'events: types A',
    );
    expect(of('AuditRead', { what: 'trust', query: { newest: true }, tenants: ['acme'] })).to.equal('trust');
    expect(of('AuditRead', { what: 'events', query: {} })).to.equal('events of all tenants');
    expect(of('AuditRead', { what: 'diff', asked: { from: 'x' }, tenants: ['acme', 'globex'] })).to.equal(
      'diff of acme, globex: from x',
    );
    const notice = { what: 'resource', kind: 'cluster', resourceId: 'c1' };
    expect(of('AuditReadNoticed', { ...notice, asked: { as_of: 'x' } })).to.equal(
      'resource: cluster c1, as_of x',
    );
    expect(of('AuditReadNoticed', { what: 'events', kind: 'cluster' })).to.equal('events: kind cluster');
    expect(of('AuditReadNoticed', { what: 'event' })).to.equal('event');
  });

  it('say (erased) of what somebody had typed who is erased by now', () => {
    const query = { kind: 'cluster', id: { erased: true } };
    expect(of('AuditRead', { what: 'resource', query, tenants: ['acme'] })).to.equal(
      'resource: kind cluster, id (erased)',
    );
  });

  it('say which export, hold, erasure or grant it was', () => {
    const request = { format: 'ocsf', tenant: 'acme', filter: { kind: 'cluster' }, from: 'x', pins: [3] };
    expect(of('AuditExportRequested', { request })).to.equal('ocsf of acme: kind cluster, from x');
    expect(of('AuditExportRequested', { request: { format: 'native', filter: {} } })).to.equal(
      'native of the whole log',
    );
    expect(of('LegalHoldPlaced', { scope: { kind: 'tenant', id: 'acme' } })).to.equal('tenant acme');
    expect(of('LegalHoldReleased', { scope: { kind: 'all' } })).to.equal('all');
    expect(of('ErasureBegun', { subjectId: 's-1' })).to.equal('subject s-1');
    expect(of('AuditGrantGiven', { subjectId: 's-1', tenants: 'all' })).to.equal(
      'subject s-1 of all tenants',
    );
    expect(of('AuditGrantGiven', { subjectId: 's-1', tenants: ['a'] })).to.equal('subject s-1 of a');
  });

  it('fit in a row, whatever an event holds, and are nothing of types of which nothing is known', () => {
    for (const type of ['__proto__', 'constructor', 'ClusterOrdered', '']) expect(of(type, {})).to.equal('');
    for (const { type, data } of eventSamples) {
      for (const each of [data, {}]) expect(of(type, each), type).to.not.match(/\n|undefined|\[object/);
    }
    expect(of('AuditRead', { what: 'a\nb', query: 'no object', tenants: 7 })).to.equal('a b of all tenants');
  });
});
