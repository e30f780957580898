/**
 * What a start costs: processor time by thread, time until `/readyz` says ready, resident memory. First on an empty directory, then
 * again and again on a log with so many clusters. Arguments: [clusters] [repetitions].
 */
import { setTimeout as pause } from 'node:timers/promises';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { writeOrders } from './support/order-history.ts';
import { threadsOf } from './support/processor-parts.ts';
import { printMachine, processorMs, residentMb } from './support/report.ts';
import { startBenchService, type BenchService } from './support/service.ts';

const clusters = Number(process.argv[2] ?? 100_000);
const repetitions = Number(process.argv[3] ?? 3);
const ROLES = 'api,auditor';
/** Milliseconds that a service gets to write down what it has compiled, and to come to rest. */
const SETTLING_MS = 3_000;

const print = ({ service: { pid }, readyMs }: BenchService, what: string): void => {
  const threads = [...threadsOf(pid)].filter(([, ms]) => ms >= 50).map(([name, ms]) => `${name} ${ms}`);
  console.log(
    `${what}: ready after ${readyMs.toFixed(0)} ms, ${processorMs(pid)} ms of processor time (${threads.join(', ')}),` +
      ` ${residentMb(pid).toFixed(0)} MB resident`,
  );
};

printMachine({ clusters, repetitions, roles: ROLES, store: 'sqlite synchronous=FULL' });
for (const [what, prepare] of [
  ['empty directory', () => Promise.resolve()],
  [
    `${clusters} clusters`,
    async (dataDir: string) => {
      const store = await openSqliteEventStore({ dataDir });
      await writeOrders(store, clusters);
      await store.close();
    },
  ],
] as const) {
  const bench = await startBenchService(ROLES, [], prepare);
  try {
    print(bench, `${what}, first start`);
    for (let i = 0; i < repetitions; i += 1) {
      await pause(SETTLING_MS);
      await bench.restart({});
      print(bench, `${what}, restart`);
    }
  } finally {
    await bench.close();
  }
}
