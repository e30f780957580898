import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runMain, startMain, type Run } from '../support/e2e-process.ts';
import { until } from '../support/e2e-stack.ts';

/** A start that cannot be made ends the process, says why in one sentence, and leaves nothing behind it. */
describe('a start that fails', function () {
  this.timeout(180_000);
  let dir: string;
  let taken: Server;
  let address: string;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'ledger-e2e-start-'));
    taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    address = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
  });
  after(() => {
    taken.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const settings = (name: string) => ({
    LEDGER_DATA_DIR: join(dir, name),
    LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
    LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
    LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
  });
  const refused = (run: Run, sentence: string): void => {
    expect(run.err).to.include(sentence);
    expect(run.err, 'no stack').not.to.match(/\n\s+at /);
    expect(run.code, run.err).to.equal(1);
  };

  it('an address that is taken: no lease is taken first, and the same directory starts afterwards', async () => {
    const own = settings('taken');
    for (const variable of [
      'LEDGER_HTTP_ADDRESS',
      'LEDGER_GRPC_ADDRESS',
      'LEDGER_METRICS_ADDRESS',
    ] as const) {
      const run = await runMain(['serve'], { ...own, [variable]: address });
      refused(run, `${variable}: ${address} is used by another process. Example: ${variable}=127.0.0.1:0`);
      expect(run.out).not.to.include('lease taken');
    }
    const again = startMain(['serve'], own);
    await until('it runs', () => again.out().includes('process runner is live'));
    again.child.kill('SIGTERM');
    expect((await again.ended).code).to.equal(0);
  });

  it('LEDGER_EVENT_STORE with several hosts to discover', async () => {
    const store = 'esdb+discover://ledger:hunter2@a.example,b.example,c.example';
    const run = await runMain(['serve'], { ...settings('discover'), LEDGER_EVENT_STORE: store });
    refused(run, 'LEDGER_EVENT_STORE: the event store cannot be used: esdb+discover:// takes one DNS name');
    expect(run.err).to.include('write esdb://a.example,b.example,c.example').and.not.to.include('hunter2');
  });

  it('LEDGER_EVENT_STORE that nobody listens on', async () => {
    const store = 'esdb://admin:hunter2@127.0.0.1:9?tls=false';
    const run = await runMain(['serve'], { ...settings('esdb'), LEDGER_EVENT_STORE: store });
    refused(run, 'LEDGER_EVENT_STORE: the event store cannot be used: ');
    expect(run.err)
      .to.include('ECONNREFUSED')
      .and.to.include('Example: LEDGER_EVENT_STORE=esdb://localhost:2113?tls=false')
      .and.not.to.include('hunter2');
  });

  it('a catalogue that cannot be used', async () => {
    writeFileSync(join(dir, 'tenants.json'), '{{{');
    const run = await runMain(['serve'], { ...settings('catalog'), LEDGER_CATALOG: dir });
    refused(run, `LEDGER_CATALOG: ${join(dir, 'tenants.json')} cannot be read`);
  });

  it('roles and levels in plain words', async () => {
    const run = await runMain(['serve'], { ...settings('plain'), LEDGER_ROLES: 'api,foo' });
    refused(run, 'LEDGER_ROLES: there is no role "foo"; it can name api, processes, publisher, auditor');
  });
});

/** What people type puts npm and a shell between the signal and the service. */
describe('npm start', function () {
  this.timeout(180_000);
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ledger-e2e-npm-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const npmStart = () => {
    const child = spawn('npm', ['start'], {
      env: {
        ...Object.fromEntries(
          Object.entries(process.env).filter(([name]) => !/^(LEDGER|NODE_ENV)/.test(name)),
        ),
        LEDGER_DATA_DIR: dir,
        LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
        LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
        LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => (out += part));
    const ended = new Promise((resolve) => child.once('close', resolve));
    return { child, out: () => out, ended };
  };

  for (const [when, line] of [
    ['while it starts', '"msg":"listening"'],
    ['when it runs', '"msg":"process runner is live"'],
  ] as const)
    it(`SIGTERM to npm ${when} ends the service in order`, async () => {
      const npm = npmStart();
      await until(line, () => npm.out().includes(line));
      npm.child.kill('SIGTERM');
      // The pipe is closed by the last process that holds it: none is left behind.
      await npm.ended;
      expect(npm.out()).to.include('"msg":"stopped"');
    });
});
