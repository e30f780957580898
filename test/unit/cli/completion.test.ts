import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { clusterOf, page, startCliStub, type CliStub } from '../../support/cli/stub-service.ts';

describe('ledgerctl completes', () => {
  let cli: CliStub;
  beforeEach(async () => {
    cli = await startCliStub();
    cli.answers(() => page(clusterOf('id-1', 'web'), clusterOf('id-2', 'db')));
  });
  afterEach(() => cli.close());

  const completed = async (...words: string[]): Promise<string[]> =>
    (await cli.succeeds(['__complete', '--', ...words])).split('\n').slice(0, -1);

  it('commands, and commands of commands, but no hidden ones', async () => {
    expect(await completed('de')).to.deep.equal(['demo', 'describe', 'detach', 'delete', 'dev-cert']);
    expect(await completed(''))
      .to.include('get')
      .and.not.include('__complete');
    expect(await completed('orders', 'c')).to.deep.equal(['cancel']);
  });

  it('options of the command and of all commands, and their choices', async () => {
    expect(await completed('get', 'clusters', '--')).to.include.members([
      '--filter',
      '--watch',
      '--private',
      '--token',
    ]);
    expect(await completed('get', '-o', 'j')).to.deep.equal(['json']);
    expect(await completed('get', '--filter', '')).to.deep.equal([]);
    expect(await completed('completion', '')).to.deep.equal(['bash']);
  });

  it('kinds and names', async () => {
    expect(await completed('get', 'host')).to.deep.equal(['host_type', 'host_types']);
    expect(await completed('--timeout', '5s', 'describe', 'cluster', '')).to.deep.equal(['web', 'db']);
    expect(await completed('kubeconfig', 'w')).to.deep.equal(['web']);
    expect(await completed('attach', 'w')).to.deep.equal(['web']);
    expect(await completed('attach', 'web', 'cluster/shop', '--endpoint', 'i')).to.deep.equal(['ingress']);
    expect(await completed('get', 'volcano', '')).to.deep.equal([]);
  });

  it('nothing, rather than an error, when the service does not answer', async () => {
    cli.answers(() => undefined);
    expect(await cli.run(['__complete', '--', 'get', 'cluster', ''])).to.deep.equal({
      code: 0,
      out: '',
      err: '',
    });
  });

  it('in a bash without ledgerctl on the PATH, as its page and its help say', async function () {
    this.timeout(180_000);
    const line = 'ledgerctl() { npx ledgerctl "$@"; }; source <(ledgerctl completion bash)';
    expect(readFileSync('docs/command-line.md', 'utf8')).to.include(`\`${line}\``);
    expect(await cli.succeeds(['completion', '--help'])).to.include(line);
    const script = `${line}
COMP_WORDS=(ledgerctl orders ca); COMP_CWORD=2
_ledgerctl
printf '%s|' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
    expect(stdout, stderr).to.equal('cancel|');
  });

  it('in a real bash', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'ledger-completion-'));
    try {
      // In place of the command: answers with what it was asked.
      const path = join(dir, 'ledgerctl');
      writeFileSync(path, '#!/bin/sh\nshift 2\nprintf "%s\\n" "asked:$*" "second one"\n');
      chmodSync(path, 0o755);
      const script = `${await cli.succeeds(['completion', 'bash'])}
COMP_WORDS=(ledgerctl get cluster we); COMP_CWORD=3
_ledgerctl
printf '%s|' "\${COMPREPLY[@]}"; complete -p ledgerctl`;
      const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], {
        encoding: 'utf8',
        env: { PATH: `${dir}:${process.env['PATH'] ?? ''}` },
      });
      expect(stderr).to.equal('');
      expect(stdout).to.equal(
        'asked:get cluster we|second one|complete -o default -F _ledgerctl ledgerctl\n',
      );
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
