import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { pack } from 'tar-stream';
import { EXIT, EXIT_HELP } from '../../../src/cli/exit.ts';
import { startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

/** One table of exit statuses for all commands: what is wrong with the command line is 2, what went wrong is 1. */
describe('exit statuses of ledgerctl', () => {
  let stub: CliStub;
  let folder: string;
  before(async () => {
    stub = await startCliStub();
    folder = mkdtempSync(join(tmpdir(), 'ledger-exit-'));
  });
  after(() => {
    stub.close();
    rmSync(folder, { recursive: true });
  });
  const problem = (code: string, title: string, status = 400) => ({
    status,
    body: { title, status, code, detail: 'no' },
  });
  const codeOf = async (...argv: string[]): Promise<number> => (await stub.run(argv)).code;

  it('are 2 for an argument that is wrong, whoever finds it', async () => {
    stub.answers(() => problem('INVALID_ARGUMENT', 'The request is wrong'));
    for (const command of [
      ['audit', 'events', '--outcome', 'bad'],
      ['audit', 'events', '--type', 'bad'],
      ['audit', 'events', '--from', 'bad'],
      ['audit', 'show', 'cluster', 'a', '--as-of', 'bad'],
      ['audit', 'export', '--type', 'bad', '--no-wait'],
      ['audit', 'consistency', '--from', '2', '--to', '1'],
      ['audit', 'grant', 's', '--tenant', 'bad', '--reason', 'r'],
      ['events', '--from', 'bad'],
      ['usage', '--by', 'bad'],
      ['store', 'backup', 'not-absolute'],
    ])
      expect(await codeOf(...command), command.join(' ')).to.equal(EXIT.usage);
    stub.answers(() => problem('IN_THE_FUTURE', 'The request is wrong'));
    expect(await codeOf('audit', 'show', 'cluster', 'a', '--as-of', '2999-01-01T00:00:00Z')).to.equal(2);
    stub.answers(() => ({ status: 400, body: { code: 3, message: 'filter at line 1: no' } }));
    expect(await codeOf('get', 'clusters', '--filter', 'bad')).to.equal(EXIT.usage);
  });

  it('are 1 for what the service refuses or fails to do', async () => {
    for (const answer of [
      problem('NO_AUDITOR', 'The object is not in the right state'),
      problem('NOTHING_TO_EXPORT', 'The object is not in the right state'),
      problem('PERMISSION_DENIED', 'The caller may not do this', 403),
      problem('INTERNAL', 'Internal error', 500),
      { status: 400, body: 'not our own answer' },
    ]) {
      stub.answers(() => answer);
      expect(await codeOf('audit', 'events'), JSON.stringify(answer)).to.equal(EXIT.failed);
      expect(await codeOf('audit', 'export', '--no-wait'), JSON.stringify(answer)).to.equal(EXIT.failed);
    }
    // The object in a file has rules of its own.
    const file = join(folder, 'cluster.yaml');
    writeFileSync(file, 'kind: cluster\nmetadata: {name: web}\n');
    stub.answers(() => ({ status: 400, body: { code: 3, message: 'a template is needed' } }));
    expect(await codeOf('create', '-f', file)).to.equal(EXIT.failed);
  });

  it('are 3 and 4 for what is not there, and for a service that is not', async () => {
    stub.answers(() => undefined);
    expect(await codeOf('audit', 'show', 'cluster-a@0')).to.equal(EXIT.notFoundOrConflict);
    expect(await codeOf('--url', 'http://127.0.0.1:1', 'audit', 'events')).to.equal(EXIT.unavailable);
  });

  it('are 2 for every file that is named and not there, or is of another sort', async () => {
    const missing = join(folder, 'nothing');
    const [empty, text] = [join(folder, 'empty'), join(folder, 'text')];
    writeFileSync(empty, '');
    writeFileSync(text, 'hello: [');
    const hub = ['--id', 'h', '--namespace', 'n', '--kubeconfig'];
    for (const command of [
      ['audit', 'verify', missing],
      ['audit', 'verify', text],
      ['audit', 'verify', '--store', missing],
      ['audit', 'verify', '--store', empty],
      ['audit', 'proof', 'e', '--trust', missing],
      ['audit', 'export', '--trust', missing],
      ['store', 'check', '--file', missing],
      ['store', 'check', '--data-dir', missing],
      ['store', 'check', '--file', text],
      ['hubs', 'add', ...hub, missing],
      ['hubs', 'add', ...hub, empty],
      ['apply', '-f', missing],
      ['apply', '-f', empty],
      ['create', '-f', text],
    ]) {
      const { code, err } = await stub.run(command);
      expect(code, `${command.join(' ')}: ${err}`).to.equal(EXIT.usage);
      expect(err).to.include(folder);
    }
  });

  it('are 2 for a pipe in place of a store or of an export, without waiting for who writes into it', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    for (const command of [
      ['store', 'check', '--file', pipe],
      ['audit', 'verify', '--store', pipe],
      ['audit', 'verify', pipe],
    ]) {
      const { code, err } = await stub.run(command);
      expect(code, `${command.join(' ')}: ${err}`).to.equal(EXIT.usage);
      expect(err).to.include(pipe).and.include('is neither a file nor a directory');
    }
  });

  it('of a store check that was given something else say what it takes', async () => {
    const tar = join(folder, 'x.tar');
    const archive = pack();
    archive.entry({ name: 'manifest.json' }, '{}');
    archive.finalize();
    writeFileSync(tar, Buffer.concat(await Array.fromAsync(archive)));
    for (const command of [
      ['store', 'check', '--file', tar],
      ['audit', 'verify', '--store', tar],
    ]) {
      const { code, err } = await stub.run(command);
      expect(code).to.equal(EXIT.usage);
      expect(err).to.match(
        /^ledgerctl: --(file|store): \S+x\.tar is a tar, and no embedded store: give events\.db/,
      );
      expect(err).to.include(`an export is checked with ledgerctl audit verify ${tar}`);
    }
    // What begins as a store does not, and is none in clear text either, may be a damaged one: that is found, not refused.
    const damaged = join(folder, 'events.db');
    writeFileSync(damaged, Buffer.from([1, 2, 3, 0, 0, 0]));
    expect((await stub.run(['store', 'check', '--file', damaged])).err).to.equal(
      'ledgerctl: not in this test\n',
    );
  });

  it('are explained once, by --help', async () => {
    const { out } = await stub.run(['--help']);
    expect(out).to.include(EXIT_HELP.trim());
    for (const status of Object.values(EXIT))
      expect(EXIT_HELP).to.match(new RegExp(`^ {2}${status} {2}\\S`, 'm'));
  });

  it('of a command that has another name here are 2, and it is named', async () => {
    for (const [name, meant] of [
      ['revoke', 'audit ungrant'],
      ['unhold', 'audit release'],
    ] as const) {
      const { code, err } = await stub.run(['audit', name, 'x']);
      expect(code).to.equal(EXIT.usage);
      expect(err).to.match(new RegExp(`unknown command '${name}'[^]*\\(Did you mean ${meant}\\?\\)`));
    }
    const misspelt = (await stub.run(['audit', 'exprot'])).err;
    expect(misspelt.match(/Did you mean/g)).to.have.length(1);
    expect((await stub.run(['audit', '__proto__'])).err).to.not.match(/Did you mean/);
  });
});
