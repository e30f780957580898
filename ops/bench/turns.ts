/** Does anything hold the HTTP thread? POST clusters by 32 clients with all roles. Arguments: [seconds, 10] [clients, 32] [roles, all]. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICE_STORE } from './support/event-store.ts';
import { printMachine } from './support/report.ts';
import { load, orderRequest, startBenchService } from './support/service.ts';

const seconds = Number(process.argv[2] ?? 10);
const clients = Number(process.argv[3] ?? 32);
const roles = process.argv[4] ?? 'all';
type Turns = { looks: number; late: number; computed: number; longestMs: number; longestComputedMs: number };

printMachine({ seconds, clients, roles, store: SERVICE_STORE, loader: 'same machine' });
const dir = mkdtempSync(join(tmpdir(), 'ledger-turns-'));
const file = join(dir, 'turns.json');
process.env['BENCH_TURNS_FILE'] = file;
const probe = join(import.meta.dirname, 'support/turns-probe.ts');
const bench = await startBenchService(roles === 'all' ? 'api,processes' : roles, ['--import', probe]);
try {
  await load(bench.service.http, bench.userToken, clients, 3, orderRequest('warm-up'));
  process.kill(bench.service.pid, 'SIGUSR2');
  const run = await load(bench.service.http, bench.userToken, clients, seconds, orderRequest('measured'));
  const turns = JSON.parse(readFileSync(file, 'utf8')) as Turns;
  console.log(
    `${Math.round(run.perSecond)} orders/s; the thread was looked at ${turns.looks} times, 1 ms apart`,
  );
  console.log(
    `late by more than 20 ms: ${turns.late} times, longest ${turns.longestMs.toFixed(1)} ms (waiting for a core included)`,
  );
  console.log(
    `computed for more than 20 ms at a stretch: ${turns.computed} times, longest ${turns.longestComputedMs.toFixed(1)} ms`,
  );
} finally {
  await bench.close();
  rmSync(dir, { recursive: true, force: true });
}
