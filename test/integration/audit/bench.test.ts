import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);
const BENCH = join(import.meta.dirname, '../../../ops/bench/audit.ts');
const PATIENCE_MS = 120_000;

describe('the bench of the audit, in small', function () {
  this.timeout(PATIENCE_MS);

  it('writes a history that the verifier finds right, measures everything and ends', async () => {
    // An order is 11 events; the tenants have one each. More events than an export has pins.
    const args = ['--orders', '40', '--tenants', '3', '--repeat', '1', '--seconds', '0.05'];

    const { stdout } = await run(process.execPath, [BENCH, ...args], { timeout: PATIENCE_MS - 10_000 });

    expect(stdout).to.contain('  443 events\n');
    for (const figure of [
      'build of the tree: events/s',
      'verifying the export (directory): peak MB',
      'verifying the export (tar): peak MB',
      'export with 512 pins: bytes of proofs',
      'appends with the tree: events/s',
    ])
      expect(stdout).to.match(new RegExp(`^  ${figure.replaceAll(/[()]/g, '\\$&')} +\\d`, 'm'));
  });
});
