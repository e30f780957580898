import { expect } from 'chai';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

const ROW = {
  period_start: '2026-11-01T00:00:00.000Z',
  period_end: '2026-12-01T00:00:00.000Z',
  tenant: 'acme',
  resource_seconds: 64_800.5,
  node_seconds: 324_002.5,
};

describe('ledgerctl usage', () => {
  let stub: CliStub;
  before(async () => {
    stub = await startCliStub();
  });
  after(() => stub.close());
  beforeEach(() => {
    stub.asked.length = 0;
    stub.answers(() => ({ body: { as_of: '2026-11-21T00:00:00.000Z', items: [ROW] } }));
  });

  it('prints a table of what the service added up', async () => {
    const out = await stub.succeeds(['usage', '--by', 'tenant', '--tenant', 'acme', '--period', 'month']);
    expect(out).to.equal(
      'PERIOD START              PERIOD END                TENANT  RESOURCE SECONDS  NODE SECONDS\n' +
        '2026-11-01T00:00:00.000Z  2026-12-01T00:00:00.000Z  acme    64800.5           324002.5\n',
    );
    expect(stub.calls()).to.deep.equal(['GET /api/ledger/v1/usage']);
    expect(Object.fromEntries(stub.asked[0]?.query ?? [])).to.deep.equal({
      format: 'json',
      period: 'month',
      by: 'tenant',
      tenant: 'acme',
    });
  });

  it('passes every other form through as it came', async () => {
    for (const format of ['json', 'ndjson', 'csv']) {
      const out = await stub.succeeds(['usage', '--incomplete', '-o', format]);
      expect(JSON.parse(out)).to.deep.equal({ as_of: '2026-11-21T00:00:00.000Z', items: [ROW] });
      expect(Object.fromEntries(stub.asked.at(-1)?.query ?? [])).to.deep.equal({
        format,
        incomplete: 'true',
      });
    }
  });

  it('says on the other channel that there is nothing', async () => {
    stub.answers(() => ({ body: { as_of: '2026-11-21T00:00:00.000Z', items: [] } }));
    expect(await stub.run(['usage'])).to.deep.equal({
      code: 0,
      out: '',
      err: 'nothing was billed in this time, as of 2026-11-21T00:00:00.000Z\n',
    });
  });

  it('says so of files, too, and what else the reason may be where filters were given', async () => {
    stub.answers(({ query }) => ({
      text: query.get('format') === 'csv' ? 'period_start,period_end\r\n' : '',
    }));
    for (const format of ['csv', 'ndjson']) {
      const { code, err } = await stub.run(['usage', '-o', format]);
      expect([code, err]).to.deep.equal([0, 'nothing was billed in this time\n']);
    }
    stub.answers(() => ({ body: { as_of: '2026-11-21T00:00:00.000Z', items: [] } }));
    const { code, err } = await stub.run(['usage', '--tenant', 'acme', '--template', 'ocp-small']);
    expect([code, err]).to.deep.equal([
      0,
      'nothing was billed in this time, as of 2026-11-21T00:00:00.000Z, of --tenant acme --template ocp-small ' +
        '(names and ids as `ledgerctl usage --by tenant,template` shows them)\n',
    ]);
  });

  it('prints no control characters of names', async () => {
    const row = { ...ROW, node_set: 'a\u001b[2J\nb' };
    stub.answers(() => ({ body: { as_of: '2026-11-21T00:00:00.000Z', items: [row] } }));
    expect(await stub.succeeds(['usage', '--by', 'node_set'])).to.contain('  a\ufffd[2J b');
  });

  it('refuses a period, a kind and a dimension that there is not', async () => {
    for (const [words, said] of [
      [['--period', 'week'], 'total, hour, day, month'],
      [['--kind', 'clusters'], 'Allowed choices are bareMetalInstance, cluster'],
      [['--by', 'tenant,colour'], '"colour" is none of tenant, project, kind, template, resource, node_set'],
      [['--by', 'tenant,tenant'], '"tenant" is given twice'],
    ] as const) {
      const { code, err } = await stub.run(['usage', ...words]);
      expect(code, err).to.equal(2);
      expect(err).to.contain(said);
    }
    expect(stub.asked).to.deep.equal([]);
    await stub.succeeds(['usage', '--by', ' tenant, kind']);
    expect(stub.asked[0]?.query.get('by')).to.equal('tenant,kind');
    await stub.succeeds(['usage', '--by', '']);
    expect(stub.asked[1]?.query.get('by')).to.equal('');
  });
});
