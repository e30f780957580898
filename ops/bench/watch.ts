/**
 * Watchers of one instance: memory of each while idle, reply of a write → its event at all of them, alone and beside one
 * who stops reading. Arguments: [subscribers, 1,100] [writes 50]. The same process writes and watches, so that with
 * thousands of watchers the figures are those of the loader too.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { SERVICE_STORE } from './support/event-store.ts';
import { percentile, printMachine, residentMb } from './support/report.ts';
import { metric, startBenchService } from './support/service.ts';
import { openWatcher, type BenchWatcher } from './support/watchers.ts';

const counts = (process.argv[2] ?? '1,100').split(',').map(Number);
const writes = Number(process.argv[3] ?? 50);
const PATH = '/api/private/v1/events/watch';
const HOST_TYPE = '/api/private/v1/host_types';
/** Watchers that are opened at one time. */
const OPENING = 50;
/** Characters of a change that fills the network buffers of one who does not read. */
const LARGE = 60_000;
const PATIENCE_MS = 60_000;

printMachine({ subscribers: counts.join(','), writes, loader: 'same machine', store: SERVICE_STORE });
const bench = await startBenchService('api');
const { http, pid, metrics } = bench.service;
const headers = { authorization: `Bearer ${bench.adminToken}`, 'content-type': 'application/json' };

let n = 0;
const patch = async (characters: number): Promise<void> => {
  const description = `${(n += 1)} `.padEnd(characters, 'x');
  const answer = await fetch(`${http}${HOST_TYPE}/bench`, {
    method: 'PATCH',
    headers,
    body: JSON.stringify({ description }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.arrayBuffer();
};
const until = async (what: string, reached: () => boolean): Promise<void> => {
  const deadline = performance.now() + PATIENCE_MS;
  while (!reached()) {
    if (performance.now() > deadline) throw new Error(`within ${PATIENCE_MS} ms there was no ${what}`);
    await pause(1);
  }
};

/** Milliseconds from the reply of each write to its event at each watcher; negative ones came before the reply. */
const measure = async (watchers: readonly BenchWatcher[], arrivals: number[]): Promise<number[]> => {
  const delays: number[] = [];
  for (let i = 0; i < writes; i += 1) {
    arrivals.length = 0;
    await patch(0);
    const replied = performance.now();
    await until('event', () => arrivals.length === watchers.length);
    for (const arrived of arrivals) delays.push(arrived - replied);
  }
  return delays;
};

const measured = async (subscribers: number): Promise<void> => {
  const arrivals: number[] = [];
  const open = (onEvent: (at: number) => void): Promise<BenchWatcher> =>
    openWatcher({ url: http, token: bench.adminToken, path: PATH, onEvent });
  await pause(1000); // what the last row left is collected
  const before = residentMb(pid);
  const watchers: BenchWatcher[] = [];
  const started = performance.now();
  while (watchers.length < subscribers) {
    const batch = Math.min(OPENING, subscribers - watchers.length);
    watchers.push(
      ...(await Promise.all(Array.from({ length: batch }, () => open((at) => arrivals.push(at))))),
    );
  }
  const opened = performance.now() - started;
  await pause(1000);
  const each = ((residentMb(pid) - before) * 1024) / subscribers;
  const alone = await measure(watchers, arrivals);

  const stopped = await open(() => undefined);
  stopped.pause();
  const beside = await measure(watchers, arrivals);
  for (const watcher of watchers.slice(100)) watcher.close(); // the large changes are for the one who does not read
  const filled = performance.now();
  let large = 0;
  const openWatches = (): Promise<number> => metric(metrics, 'ledger_watches');
  while ((await openWatches()) > Math.min(subscribers, 100) && performance.now() - filled < PATIENCE_MS) {
    await patch(LARGE);
    large += 1;
  }
  const columns = [
    String(subscribers),
    (subscribers / (opened / 1000)).toFixed(0),
    subscribers < 100 ? '-' : each.toFixed(1),
    ...[alone, beside].flatMap((delays) => [
      percentile(delays, 0.5).toFixed(1),
      percentile(delays, 0.99).toFixed(1),
    ]),
    `${((performance.now() - filled) / 1000).toFixed(1)} (${large} × ${LARGE / 1000} kB)`,
  ];
  console.log(columns.map((text, i) => text.padEnd(WIDTHS[i] ?? 0)).join(''));
  for (const watcher of [...watchers, stopped]) watcher.close();
  const closing = performance.now() + PATIENCE_MS;
  while ((await openWatches()) > 0 && performance.now() < closing) await pause(10);
};

const WIDTHS = [13, 12, 14, 10, 10, 16, 10, 0];
try {
  const created = await fetch(`${http}${HOST_TYPE}`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ id: 'bench', title: 'bench' }),
  });
  if (!created.ok) throw new Error(await created.text());
  console.log(
    '             opened      kB per        reply → event       beside one who stops      stopped one closed',
  );
  console.log('subscribers  per s       watcher       p50 ms    p99 ms    p50 ms          p99 ms    after s');
  for (const subscribers of counts) await measured(subscribers);
  const delay = await metric(metrics, 'ledger_event_loop_delay_seconds{quantile="0.99"}');
  console.log(`event loop delay p99 ${(delay * 1000).toFixed(1)} ms, RSS ${residentMb(pid).toFixed(0)} MB`);
} finally {
  await bench.close();
}
