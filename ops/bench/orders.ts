/** POST clusters at 1, 8 and 32 clients, with the api role alone and with all roles. Arguments: [seconds] [repetitions] [clients, 1,8,32] [roles, api,all; several of one service as api+auditor]. */
import { SERVICE_STORE } from './support/event-store.ts';
import { printMachine, processorMs, range, residentMb } from './support/report.ts';
import { load, loopDelay, orderRequest, startBenchService, type LoadResult } from './support/service.ts';

const seconds = Number(process.argv[2] ?? 5);
const repetitions = Number(process.argv[3] ?? 3);
const clientCounts = (process.argv[4] ?? '1,8,32').split(',').map(Number);
const roleSets = (process.argv[5] ?? 'api,all').split(',');

printMachine({ seconds, repetitions, store: SERVICE_STORE, loader: 'same machine' });
console.log(
  'roles      clients  POST/s             p50 ms   p99 ms   failed   loop p99/max ms   CPU µs/order   RSS MB',
);
for (const roles of roleSets) {
  for (const clients of clientCounts) {
    const bench = await startBenchService(roles === 'all' ? 'api,processes' : roles.replaceAll('+', ','));
    try {
      const runs: LoadResult[] = [];
      await loopDelay(bench.service.metrics);
      const usedBefore = processorMs(bench.service.pid);
      for (let i = 0; i < repetitions; i += 1)
        runs.push(await load(bench.service.http, bench.userToken, clients, seconds, orderRequest(`o${i}`)));
      const used = processorMs(bench.service.pid) - usedBefore;
      const orders = runs.reduce((sum, run) => sum + run.perSecond * seconds, 0);
      const columns = [
        roles,
        String(clients),
        range(runs.map((run) => run.perSecond)),
        range(runs.map((run) => run.p50)),
        range(runs.map((run) => run.p99)),
        String(runs.reduce((sum, run) => sum + run.errors, 0)),
        await loopDelay(bench.service.metrics),
        ((1000 * used) / orders).toFixed(0),
        residentMb(bench.service.pid).toFixed(0),
      ];
      const widths = [11, 9, 19, 9, 9, 9, 18, 15, 6];
      console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));
    } finally {
      await bench.close();
    }
  }
}
