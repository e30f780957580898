import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { createBench, rejection } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';

const run = promisify(execFile);

/** The block of the guide that makes the service's user and closes the streams, typed on the peer. */
const block = (): string => {
  const guide = readFileSync('docs/administration.md', 'utf8');
  const blocks = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  return blocks.find((text) => text.includes('grant-rights.ts')) ?? '';
};

describe('the rights of the user of an EventStoreDB, as the guide gives them', function () {
  this.timeout(30_000);
  const bench = createBench();
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-rights-'));
  });
  afterEach(async () => {
    await bench.clean();
    rmSync(folder, { recursive: true });
  });

  const type = (commands: string, peer: Peer) => {
    const here = commands
      .replaceAll('ops/eventstoredb', join(process.cwd(), 'ops/eventstoredb'))
      .replace(/esdb:[^']+/, peer.connectionString);
    return run('bash', ['-ec', here], { cwd: folder });
  };
  const stored = (peer: Peer, stream: string): unknown[] =>
    peer.log.all
      .filter((event) => event.stream === stream)
      .map(({ type: name, data }) => [name, JSON.parse(Buffer.from(data).toString('utf8')) as unknown]);

  it('are a user without groups, $all to read, and closed streams', async () => {
    const peer = await bench.peer();
    expect((await type(block(), peer)).stdout).to.equal("user 'ledger' has the rights of the service\n");
    expect(readFileSync(join(folder, 'ledger.password'), 'utf8')).to.match(/^[\w-]{32}\n$/);
    expect(stored(peer, '$user-ledger')).to.deep.equal([
      ['$UserCreated', { loginName: 'ledger', fullName: 'fulfillment-ledger', groups: [] }],
    ]);
    expect(stored(peer, '$$$all')).to.deep.equal([['$metadata', { $acl: { $r: ['$admins', 'ledger'] } }]]);
    const both = ['$admins', 'ledger'];
    const admins = '$admins';
    expect(stored(peer, '$settings')).to.deep.equal([
      [
        'update-default-acl',
        {
          $userStreamAcl: { $r: both, $w: both, $d: admins, $mr: admins, $mw: both },
          $systemStreamAcl: { $r: admins, $w: admins, $d: admins, $mr: admins, $mw: admins },
        },
      ],
    ]);
  });

  it('are given once, beside those that others have', async () => {
    const peer = await bench.peer();
    peer.log.inject('$$$all', {
      type: '$metadata',
      data: Buffer.from('{"$maxAge":9,"$acl":{"$r":["$admins","other"],"$mr":"other"}}'),
    });
    const again = block().replace('ledger ledger.password', 'ledger');
    await type(again, peer);
    await type(again, peer);
    expect(stored(peer, '$$$all').at(-1)).to.deep.equal([
      '$metadata',
      { $maxAge: 9, $acl: { $r: ['$admins', 'other', 'ledger'], $mr: 'other' } },
    ]);
    expect(stored(peer, '$settings')).to.have.length(1);
    expect(stored(peer, '$user-ledger')).to.deep.equal([]);
  });

  it('do not replace default rights that others have set', async () => {
    const peer = await bench.peer();
    peer.log.inject('$settings', {
      type: 'settings',
      data: Buffer.from('{"$userStreamAcl":{"$r":"other"}}'),
    });
    const refused = (await rejection(type(block(), peer))) as { code: number; stderr: string };
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.include('this store has default rights already').and.to.include('"other"');
    expect(stored(peer, '$settings')).to.have.length(1);
  });
});
