import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { ledgerctlOn } from '../support/service/ledgerctl.ts';
import { runMain, startMain, type Run } from '../support/service/run-main.ts';
import { E2E_STORE, createStack, until, type Stack } from '../support/service/stack.ts';

/** The commands about resources as a customer types them, with the real service behind them. */
describe('ledgerctl about resources', function () {
  this.timeout(180_000);
  let stack: Stack;
  let token: string;

  before(async () => {
    stack = await createStack(E2E_STORE);
    await stack.start();
    token = await stack.token({ tenant: 'acme', user: 'alice' });
  });
  after(() => stack.dispose());

  const settings = () => ({
    LEDGER_DATA_DIR: stack.dataDir,
    LEDGERCTL_URL: stack.http(),
    LEDGERCTL_TOKEN: token,
  });
  const ledgerctl = (...argv: string[]): Promise<Run> => ledgerctlOn(stack)('--token', token, ...argv);
  const succeeds = async (...argv: string[]): Promise<string> => {
    const { code, out, err } = await ledgerctl(...argv);
    expect(code, `${argv.join(' ')}: ${err}`).to.equal(0);
    return out;
  };
  const fails = async (code: number, says: RegExp, ...argv: string[]): Promise<void> => {
    const run = await runMain(argv, settings());
    expect(run.err, argv.join(' ')).to.match(says);
    expect(run.err, 'no stack').not.to.match(/\n\s+at /);
    expect({ code: run.code, out: run.out }, `${argv.join(' ')}: ${run.err}`).to.deep.equal({
      code,
      out: '',
    });
  };
  const file = (name: string): string => {
    const path = join(dirname(stack.dataDir), `${name}.yaml`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(
      path,
      `kind: cluster\nmetadata: {name: ${name}, annotations: {simulation: factor=0.05}}\n` +
        'spec: {template: {id: osac.templates.ocp_ci_small}}\n',
    );
    return path;
  };
  const state = async (name: string): Promise<string> =>
    await succeeds('get', 'cluster', name, '--no-headers');

  it('a cluster from the file to READY, bigger, and gone', async () => {
    expect(await succeeds('apply', '-f', file('life'))).to.equal('cluster/life created\n');
    await until('it is ready', async () => / READY +1\/1 /.test(await state('life')));
    expect(await succeeds('apply', '-f', file('life'))).to.equal('cluster/life unchanged\n');
    expect(await succeeds('kubeconfig', 'life')).to.match(/^apiVersion: v1\n/m);
    expect((await succeeds('password', 'life')).trim()).to.match(/^\S{8,}$/);
    expect(await succeeds('scale', 'cluster', 'life', 'workers=2')).to.equal(
      'cluster/life scaled: workers=2\n',
    );
    await until('it has two nodes', async () => / READY +2\/2 /.test(await state('life')));
    expect(await succeeds('label', 'cluster', 'life', 'env=prod')).to.equal('cluster/life labelled\n');
    const described = await succeeds('describe', 'cluster', 'life');
    expect(described)
      .to.match(/^cluster life$/m)
      .and.to.match(/labels: +env=prod$/m)
      .and.to.match(/^READY +TRUE /m);
    expect(described).to.match(/^AGO +EVENT +WHAT$/m);
    expect(
      await succeeds('get', 'clusters', '--filter', "this.metadata.labels['env'] == 'prod'", '-o', 'name'),
    ).to.equal('cluster/life\n');
    expect(await succeeds('delete', 'cluster', 'life', '--wait')).to.equal(
      'cluster/life deleted\ncluster/life gone\n',
    );
    expect(await ledgerctl('get', 'clusters')).to.deep.equal({
      code: 0,
      out: '',
      err: 'no clusters match\n',
    });
  });

  it('exit statuses tell what went wrong', async () => {
    await fails(1, /answered 403/, 'get', 'hubs');
    await fails(1, /field object\.spec\.template: /, 'create', '-f', wrongTemplate());
    await fails(2, /unknown kind "volcano"/, 'get', 'volcano');
    await fails(3, /cluster 'gone' not found\n$/, 'describe', 'cluster', 'gone');
    await fails(3, /cluster 'gone' not found; nothing was deleted\n$/, 'delete', 'cluster', 'gone');
    await fails(4, /cannot reach/, '--address', 'http://127.0.0.1:9', 'get', 'clusters');
  });
  const wrongTemplate = (): string => {
    const path = join(dirname(stack.dataDir), 'wrong.json');
    writeFileSync(
      path,
      '{"kind":"cluster","metadata":{"name":"wrong"},"spec":{"template":{"id":"no-such"}}}',
    );
    return path;
  };

  it('a watch goes on over a killed service, and ends quietly when it is interrupted', async () => {
    const watching = startMain(['get', 'clusters', '--watch', '-o', 'json'], settings());
    await succeeds('create', '-f', file('first'));
    await until('the first is told', () => watching.out().includes('"first"'));
    const address = stack.http().replace('http://', '');
    await stack.stop('SIGKILL');
    await until('the loss is noticed', () => watching.err().includes('trying again'));
    await stack.start({ LEDGER_HTTP_ADDRESS: address });
    await succeeds('create', '-f', file('second'));
    await until('the second is told', () => watching.out().includes('"second"'));
    watching.child.kill('SIGINT');
    const { code, out, err } = await watching.ended;
    expect(code).to.be.oneOf(['SIGINT', 130]);
    expect(err).not.to.match(/\n\s+at /);
    const told = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; id?: string });
    const ids = told.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size, 'nothing is told twice').to.equal(ids.length);
  });
});
