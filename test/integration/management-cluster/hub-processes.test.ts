import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createSimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import {
  assertNoSecondObject,
  checkHubFile,
  readHubCalls,
  readHubOrders,
} from '../../support/hubs/hub-journal.ts';

const WRITER = fileURLToPath(new URL('./hub-writer.ts', import.meta.url));

/** Runs a writer, kills it with SIGKILL after `acknowledged` answers, returns the names it had reported. */
const writeUntilKilled = async (file: string, prefix: string, acknowledged: number): Promise<string[]> => {
  const child = spawn(process.execPath, [WRITER, file, prefix], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const names: string[] = [];
  for await (const name of createInterface({ input: child.stdout })) {
    names.push(name);
    if (names.length === acknowledged) child.kill('SIGKILL');
  }
  const [code, signal] = (await exited) as [number | null, string | null];
  expect([code, signal]).to.deep.equal([null, 'SIGKILL']);
  return names;
};

describe('simulated hub of several processes', function () {
  this.timeout(30_000);
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sim-kill-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  it('killed in the middle of writes: the file is whole and holds every answered write, once', async () => {
    const file = join(dir, 'sim-kill.sqlite');
    const reported: string[] = [];
    // The first two start together on a file that does not exist yet.
    const together = await Promise.all([writeUntilKilled(file, 'a', 20), writeUntilKilled(file, 'b', 35)]);
    reported.push(...together.flat(), ...(await writeUntilKilled(file, 'c', 15)));

    expect(checkHubFile(file)).to.equal('ok');
    const orders = readHubOrders(file);
    const names = orders.map(({ name }) => name);
    expect(new Set(names).size).to.equal(names.length);
    expect(names).to.include.members(reported);
    assertNoSecondObject(file);
    const created = readHubCalls(file).filter(({ result }) => result === 'created');
    expect(created.map(({ effectId }) => effectId)).to.have.members(names.map((name) => `${name}/create`));

    const hub = createSimulatedHub({
      hubId: 'sim-kill',
      file,
      clock: systemClock(),
      timers: systemTimers(),
    });
    // Every third one is deleted, and gone after a while.
    const last = reported.findLast((name) => Number(name.split('-').at(-1)) % 3 !== 0) ?? '';
    const order = await hub.get(
      CLUSTER_ORDER,
      { namespace: 'osac-hub', name: last },
      { effectId: 'look', deadlineMs: 60_000, signal: new AbortController().signal },
    );
    expect(order?.id).to.equal(`id-of-${last}`);
    await hub.close();
  });
});
