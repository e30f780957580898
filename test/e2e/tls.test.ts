import { readFileSync, statSync } from 'node:fs';
import { get } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { runMain, type Run } from '../support/service/run-main.ts';
import { createStack, type Stack } from '../support/service/stack.ts';
import { eventually } from '../support/eventually.ts';

describe('a service with a certificate of `ledgerctl dev-cert`', function () {
  this.timeout(120_000);
  let stack: Stack;
  let out: string;
  let made: Run;
  before(async () => {
    stack = await createStack('sqlite', { LEDGER_GRPC_ADDRESS: '' });
    out = join(stack.dataDir, '../tls');
    made = await runMain(['dev-cert', '--out', out]);
    const settings = {
      LEDGER_TLS_CERT_FILE: join(out, 'tls.crt'),
      LEDGER_TLS_KEY_FILE: join(out, 'tls.key'),
    };
    await stack.start(settings, { until: 'listening' });
  });
  after(() => stack.dispose());

  const ca = (): string => readFileSync(join(out, 'ca.crt'), 'utf8');
  const answer = (path: string, options: object = { ca: ca() }): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      get(new URL(path, stack.http()), options, (response) => {
        void text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }));
      }).once('error', reject);
    });
  const ledgerctl = (...argv: string[]): Promise<Run> =>
    runMain(['--url', stack.http(), ...argv], { LEDGER_DATA_DIR: stack.dataDir });

  it('has a key that its owner alone can read, and says how to use it', () => {
    expect(made.code, made.err).to.equal(0);
    expect(made.out)
      .to.include(`LEDGER_TLS_CERT_FILE=${out}/tls.crt`)
      .and.include(`LEDGERCTL_SERVICE_CA=${out}/ca.crt`);
    expect(statSync(join(out, 'tls.key')).mode & 0o777).to.equal(0o600);
    expect(ca()).to.match(/^-----BEGIN CERTIFICATE-----/);
  });

  it('answers probes to those who trust its authority, and to nobody else', async () => {
    expect(stack.http()).to.match(/^https:\/\/127\.0\.0\.1:\d+$/);
    await eventually('the service is ready', async () => (await answer('/readyz')).status === 200);
    expect((await answer('/healthz')).status).to.equal(200);
    const refused = await answer('/healthz', {}).catch((error: NodeJS.ErrnoException) => error.code);
    expect(refused).to.equal('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });

  it('answers probes on the metrics listener, too, where nobody needs a certificate', async () => {
    const { metrics } = stack.service();
    expect((await fetch(`${metrics}/healthz`)).status).to.equal(200);
    const ready = await fetch(`${metrics}/readyz`);
    expect(await ready.json()).to.have.property('checks');
    expect(await (await fetch(`${metrics}/metrics`)).text()).to.include('ledger_commands_total');
  });

  it('is for localhost too', async () => {
    const { port } = new URL(stack.http());
    expect((await answer(`https://localhost:${port}/healthz`, { ca: ca(), family: 4 })).status).to.equal(200);
  });

  it('answers no plaintext, and lives on', async () => {
    const { port } = new URL(stack.http());
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(await text(socket).catch(() => '')).not.to.include('200 OK');
    expect((await answer('/healthz')).status).to.equal(200);
  });

  it('is used by ledgerctl, which says what is missing without the authority', async () => {
    const done = await ledgerctl(
      '--service-ca',
      join(out, 'ca.crt'),
      'get',
      'tenants',
      '--private',
      '-o',
      'name',
    );
    expect(done.code, done.err).to.equal(0);
    expect(done.out).to.include('acme');
    const untrusted = await ledgerctl('get', 'tenants', '--private');
    expect(untrusted.code).to.equal(4);
    expect(untrusted.err).to.include('name its authority with --service-ca');
    const wrong = await ledgerctl('--service-ca', join(out, 'tls.key'), 'get', 'tenants', '--private');
    expect(wrong.code, wrong.err).to.equal(2);
    expect(wrong.err).to.include('tls.key holds no certificate (PEM)');
  });

  it('is overwritten by --force alone', async () => {
    const before = ca();
    const again = await runMain(['dev-cert', '--out', out]);
    expect(again.code).to.equal(2);
    expect(again.err).to.include('there already; --force overwrites');
    expect(ca()).to.equal(before);
    expect((await runMain(['dev-cert', '--out', out, '--force'])).code).to.equal(0);
    expect(ca()).not.to.equal(before);
    expect(statSync(join(out, 'tls.key')).mode & 0o777).to.equal(0o600);
  });
});
