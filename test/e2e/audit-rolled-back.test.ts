import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { EXIT } from '../../src/cli/exit.ts';
import { ledgerctlOn } from '../support/service/ledgerctl.ts';
import type { Run } from '../support/service/run-main.ts';
import { AS_DEPLOYED, CLUSTERS, createStack, until, type Stack } from '../support/service/stack.ts';

/** With the modes of the files: secrets that others may read are refused. */
const copy = (from: string, to: string): Buffer => execFileSync('cp', ['-a', from, to]);

/** A provider stops the service, puts the data directory back to an older state, and goes on from there as if nothing had been. */
describe('a data directory that was put back', function () {
  this.timeout(120_000);
  let stack: Stack;
  let folder: string;
  let trust: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-put-back-'));
    trust = join(folder, 'trust.json');
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
    await order('before');
    // Its key signs from then on, in both histories.
    await audit('trust', '-o', join(folder, 'before.json'));
    await stack.stop();
    copy(stack.dataDir, join(folder, 'copy'));
    await stack.start();
  });
  after(async () => {
    await stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const ledgerctl = (...argv: string[]): Promise<Run> => ledgerctlOn(stack)(...argv);
  const audit = (...argv: string[]): Promise<Run> => ledgerctl('audit', ...argv);
  const order = async (id: string): Promise<void> => {
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await alice.send('POST', CLUSTERS, {
      id,
      metadata: { name: id },
      spec: { template: { name: 'ocp-small' } },
    });
  };
  /** Once the event is in the tree and a signed head covers it: until then the service asks for patience. */
  const proofOf = async (id: string): Promise<Run> => {
    let run: Run | undefined;
    await until(`the order of ${id} is signed`, async () => {
      run = await audit('proof', `cluster-${id}@0`, '--trust', trust);
      return run.code !== EXIT.notFoundOrConflict && run.code !== EXIT.unavailable;
    });
    return run as Run;
  };
  const signed = async (): Promise<number> =>
    (JSON.parse((await audit('tree', '--json')).out) as { signed_size: number }).signed_size;
  const pinned = (): number => {
    const { pin } = JSON.parse(readFileSync(trust, 'utf8')) as { pin: string };
    return Number(pin.split('\n')[1]);
  };

  it('passes with an auditor who holds every event against the pin only while it is the history that was pinned', async () => {
    await order('truth');
    expect(await audit('trust', '-o', trust)).to.include({ code: 0 });
    const right = await proofOf('truth');
    expect(right.code, right.out + right.err).to.equal(0);
    expect(right.out).to.match(
      /\nkeys: yours\npin: (continued|the signed head lies before your pin, which continues it)/,
    );

    await stack.stop();
    rmSync(stack.dataDir, { recursive: true });
    copy(join(folder, 'copy'), stack.dataDir);
    await stack.start();
    await order('forged');
    let orders = 0;
    await until('more is signed than is pinned', async () => {
      if (orders < 5) {
        orders += 1;
        await order(`more-${orders}`);
      }
      return (await signed()) > pinned();
    });
    const first = await proofOf('forged');
    expect(first.code, first.out + first.err).to.equal(1);
    expect(first.out)
      .to.match(/^wrong: /)
      .and.match(/\npin: (not shown|BROKEN)/);
    expect(first.out).not.to.include('is leaf');
    await order('forged-behind');
    const behind = await proofOf('forged-behind');
    expect(behind.code, behind.out + behind.err).to.equal(1);
    expect(behind.out).to.include(
      `\npin: BROKEN: this is not the history that you pinned: somewhere before leaf ${pinned()} at least one event`,
    );
  });

  it('passes with no other command that is given the pin', async () => {
    const mirror = await audit('mirror', join(folder, 'mirror'), '--trust', trust);
    expect(mirror.code).to.equal(1);
    expect(mirror.out).to.include('pin: BROKEN').and.include('holds no signed head yet');
    const renewed = await audit('trust', '-o', trust, '--force');
    expect(renewed.code, renewed.err).to.equal(1);
    expect(renewed.err).to.include('another history than your pin').and.include(`${trust} is kept`);
    const file = join(folder, 'all.tar');
    expect(await audit('export', '--trust', trust, '-o', file)).to.include({ code: 0 });
    const verify = await audit('verify', file, '--trust', trust);
    expect(verify.code).to.equal(1);
    expect(verify.out).to.include('pin: BROKEN').and.include('its events are sound by themselves');
  });

  it('is told from one whose key was replaced meanwhile', async () => {
    const own = join(folder, 'own.json');
    expect(await audit('trust', '-o', own)).to.include({ code: 0 });
    trust = own;
    expect(await audit('rotate-key', '--yes')).to.include({ code: 0 });
    await order('rotated');
    const run = await proofOf('rotated');
    expect(run.code, run.out + run.err).to.equal(0);
    expect(run.out).to.include('\nkeys: yours\npin: continued\n');
  });
});
