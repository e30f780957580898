/** GET by id and list of 100 at 1, 8 and 32 clients over N clusters. Arguments: [clusters] [seconds] [repetitions]. */
import { printMachine, range, residentMb } from './support/report.ts';
import { load, orderRequest, startBenchService, type LoadResult } from './support/service.ts';

const clusters = Number(process.argv[2] ?? 1000);
const seconds = Number(process.argv[3] ?? 5);
const repetitions = Number(process.argv[4] ?? 3);
const COLLECTION = '/api/fulfillment/v1/clusters';

printMachine({ clusters, seconds, repetitions, loader: 'same machine' });
const bench = await startBenchService('api');
try {
  const headers = { authorization: `Bearer ${bench.userToken}` };
  const total = async (): Promise<number> => {
    const answer = await fetch(`${bench.service.http}${COLLECTION}?limit=0`, { headers });
    return ((await answer.json()) as { total?: number }).total ?? 0;
  };
  for (let round = 0; (await total()) < clusters; round += 1)
    await load(bench.service.http, bench.userToken, 32, 5, orderRequest(`r${round}`));
  const stored = await total();
  const first = await fetch(`${bench.service.http}${COLLECTION}?limit=1`, { headers });
  const id = ((await first.json()) as { items: { id: string }[] }).items[0]?.id ?? '';

  console.log(`${stored} clusters stored, RSS ${(await residentMb(bench.service.pid)).toFixed(0)} MB`);
  console.log('request          clients  per s              p50 ms   p99 ms   failed');
  for (const [name, path] of [
    ['GET by id', `${COLLECTION}/${id}`],
    ['list of 100', `${COLLECTION}?limit=100`],
    ['last page', `${COLLECTION}?limit=100&offset=${Math.max(0, stored - 100)}`],
    ['count', `${COLLECTION}?limit=0`],
  ] as const) {
    for (const clients of [1, 8, 32]) {
      const runs: LoadResult[] = [];
      for (let i = 0; i < repetitions; i += 1)
        runs.push(await load(bench.service.http, bench.userToken, clients, seconds, { method: 'GET', path }));
      const columns = [
        name,
        String(clients),
        range(runs.map((run) => run.perSecond)),
        range(runs.map((run) => run.p50)),
        range(runs.map((run) => run.p99)),
        String(runs.reduce((sum, run) => sum + run.errors, 0)),
      ];
      const widths = [17, 9, 19, 9, 9, 6];
      console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));
    }
  }
} finally {
  await bench.close();
}
