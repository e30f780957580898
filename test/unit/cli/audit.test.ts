import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { keyOf, ORIGIN, vkey } from '../../support/audit/signed-history.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const EVENT = {
  id: 'e-1',
  event: 'cluster-a@0',
  type: 'ClusterOrdered',
  tenant: 'acme',
  kind: 'cluster',
  resource_id: 'a',
  outcome: 'accepted',
  recorded_at: '2026-11-21T00:00:00.000Z',
  actor: { subject: 's-1', roles: [], personal: { user_name: 'alice' } },
  data: {},
};

describe('ledgerctl audit', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  beforeEach(() => {
    stub.asked.length = 0;
  });

  it('keeps a trust file that is there: what an auditor trusts is not replaced by what a service says', async () => {
    const trust = { origin: ORIGIN, keys: [{ vkey: vkey(keyOf('one')), since: '' }] };
    stub.answers(() => ({ body: { ...trust } }));
    const folder = await mkdtemp(join(tmpdir(), 'ledger-trust-'));
    try {
      const file = join(folder, 'trust.json');
      expect((await stub.run(['audit', 'trust', '-o', file])).code).to.equal(0);
      await writeFile(file, 'mine');
      const { code, err } = await stub.run(['audit', 'trust', '-o', file]);
      expect(code).to.equal(2);
      expect(err).to.include('is there already').and.include('--update-pin').and.include('--force');
      expect(await readFile(file, 'utf8')).to.equal('mine');
      expect((await stub.run(['audit', 'trust', '-o', file, '--force'])).code).to.equal(0);
      expect(JSON.parse(await readFile(file, 'utf8'))).to.deep.equal(trust);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('says that it waits for a pin where it does, and not before it is refused', async () => {
    stub.answers(() => ({ status: 403, body: { detail: 'only auditors may' } }));
    const refused = await stub.run(['audit', 'trust']);
    expect(refused.code).to.equal(1);
    expect(refused.err)
      .to.match(/^ledgerctl: GET \S+ answered 403/)
      .and.not.include('waiting');
    stub.answers(() => ({ body: {}, afterMs: 2_100 }));
    expect((await stub.run(['audit', 'trust'])).err).to.match(
      /^waiting until what is recorded by now is signed/,
    );
  });

  it('lists events over pages, up to a limit', async () => {
    stub.answers(({ query }) =>
      query.get('cursor') === null
        ? { body: { items: [EVENT, EVENT], next_cursor: 'c' } }
        : {
            body: { items: [{ ...EVENT, actor: { subject: 's-1', roles: [], personal: { erased: true } } }] },
          },
    );
    const { out, code, err } = await stub.run([
      'audit',
      'events',
      '--kind',
      'cluster',
      '--id',
      'a',
      '--tenant',
      'acme',
    ]);
    expect([code, err]).to.deep.equal([0, '']);
    expect(out.split('\n').slice(0, 4)).to.deep.equal([
      'RECORDED                  TENANT  WHO           TYPE            ABOUT      OUTCOME   EVENT        DETAILS',
      '2026-11-21T00:00:00.000Z  acme    alice         ClusterOrdered  cluster/a  accepted  cluster-a@0  -',
      '2026-11-21T00:00:00.000Z  acme    alice         ClusterOrdered  cluster/a  accepted  cluster-a@0  -',
      '2026-11-21T00:00:00.000Z  acme    s-1 (erased)  ClusterOrdered  cluster/a  accepted  cluster-a@0  -',
    ]);
    expect(Object.fromEntries(stub.asked[1]?.query ?? [])).to.deep.equal({
      kind: 'cluster',
      id: 'a',
      tenant: 'acme',
      limit: '98',
      cursor: 'c',
    });
    const limited = await stub.run(['audit', 'events', '--limit', '2', '--json']);
    expect(limited.out).to.equal(`${JSON.stringify(EVENT)}\n`.repeat(2));
    expect(limited.err).to.equal('--limit 2 reached; there is more\n');
    const asked = stub.asked.length;
    await stub.succeeds(['audit', 'events', '--newest-first', '--limit', '3']);
    expect(stub.asked.slice(asked).map(({ query }) => query.get('order'))).to.deep.equal(['desc', 'desc']);
    stub.answers(() => ({ body: { items: [] } }));
    expect((await stub.run(['audit', 'events'])).err).to.equal('no such events\n');
    expect((await stub.run(['audit', 'events', '--kind', 'cluster', '--id', 'a'])).err).to.equal(
      'no such events: if there should be some, look at the id (ledgerctl audit show cluster a)\n',
    );
  });

  it('hands on what is empty, which the service refuses: left out it would be a wider answer', async () => {
    const detail = 'must not be empty; leave it out';
    const body = { title: 'The request is wrong', status: 400, detail, code: 'INVALID_ARGUMENT' };
    stub.answers(() => ({ status: 400, body }));
    const lists = ['tenant', 'subject', 'kind', 'type', 'from', 'to'].map((name) => ['events', name, name]);
    const past = [
      ['show cluster c1', 'as-of', 'as_of'],
      ['diff cluster c1', 'from', 'from'],
      ['diff cluster c1 --from 2026-11-01T00:00:00Z', 'to', 'to'],
    ];
    for (const [command = '', option = '', name = ''] of [...lists, ...past]) {
      stub.asked.length = 0;
      const { code, err } = await stub.run(['audit', ...command.split(' '), `--${option}`, '']);
      expect(code, `${command} ${option}`).to.equal(2);
      expect(err, `${command} ${option}`).to.include(detail);
      expect(stub.asked[0]?.query.get(name), `${command} ${option}`).to.equal('');
    }
    const fields = ['tenant', 'from', 'to'].map((name) => [name, { [name]: '' }] as const);
    const filters = ['subject', 'kind'].map((name) => [name, { filter: { [name]: '' } }] as const);
    for (const [name, sent] of [...fields, ...filters, ['type', { filter: { types: [''] } }] as const]) {
      stub.asked.length = 0;
      const { code } = await stub.run(['audit', 'export', '--no-wait', `--${name}`, '']);
      expect(code, name).to.equal(2);
      expect(stub.asked[0]?.body, name).to.deep.include(sent);
    }
  });

  it('shows no name beside what was recorded before an erasure, whatever later events of the person tell', async () => {
    const at = (day: string, personal?: object) => ({
      ...EVENT,
      recorded_at: `2026-11-${day}T00:00:00.000Z`,
      actor: { subject: 's-1', roles: [], ...(personal === undefined ? {} : { personal }) },
    });
    const refused = {
      ...at('03', { erased: true }),
      type: 'RequestRefused',
      data: { command: 'c', code: 'NAME_TAKEN', error: 'ALREADY_EXISTS', message: { erased: true } },
    };
    const stranger = {
      ...EVENT,
      type: 'RequestRefused',
      actor: { subject: '', roles: [] },
      data: { command: 'c', code: 'UNAUTHENTICATED', error: 'UNAUTHENTICATED', told: 'token expired' },
    };
    const items = [
      at('01', { erased: true }),
      // It has no name of its own, as what tenants are told of looks.
      at('02'),
      refused,
      at('04'),
      at('05', { user_name: 'alice' }),
      stranger,
    ];
    stub.answers(() => ({ body: { items } }));
    const rows = (await stub.succeeds(['audit', 'events'])).trim().split('\n').slice(1);
    const cells = rows.map((row) => row.split(/ {2,}/));
    expect(cells.map((row) => row[2])).to.deep.equal([
      's-1 (erased)',
      's-1 (erased)',
      's-1 (erased)',
      'alice',
      'alice',
      '-',
    ]);
    expect([cells[2]?.at(-1), cells[5]?.at(-1)]).to.deep.equal([
      'c: NAME_TAKEN, ALREADY_EXISTS',
      'c: UNAUTHENTICATED, token expired',
    ]);
    expect(stub.asked).to.have.length(1);
  });

  it('spells a person in one way, and says why a call was refused', async () => {
    const by = (subject: string, name?: string) => ({
      ...EVENT,
      actor: { subject, roles: [], ...(name === undefined ? {} : { personal: { user_name: name } }) },
    });
    const refused = {
      ...by('s-1'),
      type: 'RequestRefused',
      outcome: 'rejected',
      data: { command: 'Clusters/Create', code: 'NAME_TAKEN', message: 'there is\none already' },
    };
    const suppressed = {
      ...by('s-2'),
      type: 'RefusalsSuppressed',
      data: { count: 7, since: 'a', until: 'b' },
    };
    const twins = [by('11111111-aaaa', 'anna'), by('22222222-bbbb', 'anna'), by('s-3'), by('s-1', 'alice')];
    stub.answers(() => ({ body: { items: [refused, suppressed, ...twins] } }));
    const rows = (await stub.succeeds(['audit', 'events'])).trim().split('\n').slice(1);
    expect(rows.map((row) => row.split(/ {2,}/)[2])).to.deep.equal([
      'alice',
      's-2',
      'anna (11111111)',
      'anna (22222222)',
      's-3',
      'alice',
    ]);
    expect(rows[0]).to.match(/ {2}Clusters\/Create: NAME_TAKEN, there is one already$/);
    expect(rows[1]).to.match(/ {2}7 more were refused, a to b$/);
    expect(rows[2]).to.match(/ {2}-$/);
  });

  it('prints every list as JSON, too, one object per line', async () => {
    const items = [{ id: 'x-1', scope: { kind: 'all' }, request: {}, tenants: 'all', reason: 'r' }];
    for (const list of ['exports', 'holds', 'grants', 'erasures', 'checkpoints']) {
      stub.answers(() => ({ body: { items } }));
      expect(await stub.succeeds(['audit', list, '--json']), list).to.equal(`${JSON.stringify(items[0])}\n`);
      expect((await stub.succeeds(['audit', list])).split('\n'), list).to.have.length(3);
      stub.answers(() => ({ body: { items: [] } }));
      const none = await stub.run(['audit', list, '--json']);
      expect([none.code, none.out], list).to.deep.equal([0, '']);
      expect(none.err, list).to.not.equal('');
    }
  });

  it('prints answers as JSON where that is asked for', async () => {
    const answer = { id: 'x-1', state: 'complete' };
    stub.answers(() => ({ body: answer }));
    for (const command of [
      ['hold', '--all', '--reason', 'r'],
      ['grant', 's-1', '--all', '--reason', 'r'],
      ['erase', 's-1', '--tenant', 'acme', '--reason', 'r', '--yes'],
      ['export', '--no-wait'],
      ['show', 'e-1'],
    ])
      expect(
        JSON.parse(await stub.succeeds(['audit', ...command, '--json'])),
        command.join(' '),
      ).to.deep.equal(answer);
  });

  it('says that a file is not there yet, so that it is tried again', async () => {
    stub.answers(() => ({ body: { id: 'x-1', state: 'running' } }));
    const { code, err } = await stub.run(['audit', 'fetch', 'x-1', '-o', join(tmpdir(), 'never.tar')]);
    expect([code, err]).to.deep.equal([
      4,
      'ledgerctl: export x-1 is not made yet: it is running; try again later\n',
    ]);
  });

  it('shows which options must be given', async () => {
    const usage = async (...command: string[]): Promise<string> =>
      (await stub.run(['audit', ...command, '--help'])).out;
    expect(await usage('erase'))
      .to.include('Usage: ledgerctl audit erase <subject> --tenant <name> --reason <text> --yes [options]\n')
      .and.to.match(/--tenant <name> .*tenant of the person \(required\)/)
      .and.to.match(/--request <number> .*in your own files\n/);
    expect(await usage('hold'))
      .to.include('audit hold (--subject <id> | --tenant <name> | --all) --reason <text> [options]\n')
      .and.to.match(/--reason <text> .*\(required\)/);
    expect(await usage('release')).to.include(
      'Usage: ledgerctl audit release <hold> --reason <text> [options]',
    );
    expect(await usage('grant')).to.include(
      '<subject> (--tenant <name...> | --all) --reason <text> [options]\n',
    );
    expect(await usage('diff')).to.include(
      'Usage: ledgerctl audit diff <kind> <id> --from <moment> [options]',
    );
    expect(await usage('events')).to.include('Usage: ledgerctl audit events [options]\n');
  });

  it('says of an erasure that was done before when that was, and by whom', async () => {
    const before = {
      id: 'e-1',
      state: 'complete',
      subject_id: 's-1',
      completed_at: 'T',
      by: 'root',
      already: true,
    };
    stub.answers(() => ({ body: before }));
    const erase = ['audit', 'erase', 's-1', '--tenant', 'acme', '--reason', 'asked', '--yes'];
    const { code, out, err } = await stub.run(erase);
    expect([code, out]).to.deep.equal([0, 'e-1\n']);
    expect(err).to.equal('the data of s-1 was erased already, at T, by root: nothing was left to do\n');
  });

  it('shows events and objects, and says what changed', async () => {
    stub.answers(() => ({ body: EVENT }));
    expect(JSON.parse(await stub.succeeds(['audit', 'show', 'cluster-a@0']))).to.deep.equal(EVENT);
    await stub.succeeds(['audit', 'show', 'cluster', 'a/b', '--as-of', '2026-11-01T00:00:00Z']);
    expect(stub.calls()).to.deep.equal([
      'GET /api/audit/v1/events/cluster-a%400',
      'GET /api/audit/v1/resources/cluster/a%2Fb',
    ]);
    expect((await stub.run(['audit', 'show', 'e-1', '--as-of', 'x'])).code).to.equal(2);
    for (const kind of ['cluster', 'clusters', 'hostType']) {
      const { code, err } = await stub.run(['audit', 'show', kind]);
      expect(code).to.equal(2);
      expect(err).to.include(`"${kind}" is a kind: give the id of the object, too`);
    }
    expect(stub.asked).to.have.length(2);
    const heads = await stub.run(['audit', 'checkpoints', '--limit', '5']);
    expect(heads.code).to.equal(2);
    expect(heads.err).to.include('give --after');
    const changes = [
      { path: '/spec/size', op: 'replace', before: 1, after: 2 },
      { path: '/metadata/labels', op: 'add', after: { a: 'b' } },
      { path: '/spec/old', op: 'remove', before: null },
    ];
    stub.answers(() => ({ body: { changes } }));
    const text = await stub.succeeds(['audit', 'diff', 'cluster', 'a', '--from', '2026-11-01T00:00:00Z']);
    expect(text).to.equal('~ /spec/size: 1 -> 2\n+ /metadata/labels: {"a":"b"}\n- /spec/old: null\n');
    stub.answers(() => ({ body: { changes: [] } }));
    expect((await stub.run(['audit', 'diff', 'cluster', 'a', '--from', 'x'])).err).to.equal(
      'nothing changed\n',
    );
  });

  it('asks for holds, erasures and grants with a key, and for what it needs to know', async () => {
    stub.answers(() => ({ body: { id: 'h-1', state: 'complete' } }));
    expect(await stub.succeeds(['audit', 'hold', '--tenant', 'acme', '--reason', 'case'])).to.equal('h-1\n');
    expect(stub.asked[0]?.body).to.deep.equal({ scope: { kind: 'tenant', id: 'acme' }, reason: 'case' });
    expect(stub.asked[0]?.headers['idempotency-key']).to.be.a('string');
    expect((await stub.run(['audit', 'hold', '--reason', 'case'])).code).to.equal(2);
    expect((await stub.run(['audit', 'hold', '--all', '--tenant', 'a', '--reason', 'x'])).code).to.equal(2);
    await stub.succeeds(['audit', 'release', 'h-1', '--reason', 'over']);
    expect(stub.asked.at(-1)?.query.get('reason')).to.equal('over');
    const erase = ['audit', 'erase', 's-1', '--tenant', 'acme', '--reason', 'asked'];
    expect((await stub.run(erase)).code).to.equal(2);
    expect(await stub.succeeds([...erase, '--yes'])).to.equal('h-1\n');
    await stub.succeeds(['audit', 'grant', 's-1', '--all', '--reason', 'year']);
    expect(stub.asked.at(-1)?.body).to.deep.equal({ subject: 's-1', tenants: 'all', reason: 'year' });
    stub.answers(() => ({ body: { id: 'g-1', subject_seen: false } }));
    const early = await stub.run(['audit', 'grant', 's-1', '--all', '--reason', 'year']);
    expect([early.code, early.out]).to.deep.equal([0, 'g-1\n']);
    expect(early.err).to.match(/^nobody with the id s-1 has logged in yet/);
    expect((await stub.run(['audit', 'grant', 's-1', '--reason', 'year'])).code).to.equal(2);
  });
});
