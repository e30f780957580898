/** GET by id and list of 100 at 1, 8 and 32 clients over N clusters. Arguments: [clusters] [seconds] [repetitions] [clients, 1,8,32]. */
import type autocannon from 'autocannon';
import { SERVICE_STORE } from './support/event-store.ts';
import { printMachine, range, residentMb } from './support/report.ts';
import { load, loopDelay, orderRequest, startBenchService, type LoadResult } from './support/service.ts';

const clusters = Number(process.argv[2] ?? 1000);
const seconds = Number(process.argv[3] ?? 5);
const repetitions = Number(process.argv[4] ?? 3);
const clientCounts = (process.argv[5] ?? '1,8,32').split(',').map(Number);
const COLLECTION = '/api/fulfillment/v1/clusters';
/** Pages of 100 that the ids to read are taken from. */
const PAGES = 10;

printMachine({ clusters, seconds, repetitions, loader: 'same machine', store: SERVICE_STORE });
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
  /** Some of all ages, so that not one row is read again and again. */
  const ids: string[] = [];
  for (let page = 0; page < PAGES; page += 1) {
    const offset = Math.floor((page * stored) / PAGES);
    const answer = await fetch(`${bench.service.http}${COLLECTION}?limit=100&offset=${offset}`, { headers });
    for (const item of ((await answer.json()) as { items: { id: string }[] }).items) ids.push(item.id);
  }
  let next = 0;
  const anyId = (request: Partial<autocannon.Request>): Partial<autocannon.Request> => {
    next = (next + 1) % ids.length;
    return { ...request, path: `${COLLECTION}/${ids[next]}` };
  };

  console.log(`${stored} clusters stored, RSS ${residentMb(bench.service.pid).toFixed(0)} MB after filling`);
  console.log('request          clients  per s              p50 ms   p99 ms   failed   loop p99/max ms');
  const requests: readonly (readonly [string, Partial<autocannon.Request>])[] = [
    ['GET by id', { method: 'GET', path: `${COLLECTION}/${ids[0]}`, setupRequest: anyId }],
    ['list of 100', { method: 'GET', path: `${COLLECTION}?limit=100` }],
    ['last page', { method: 'GET', path: `${COLLECTION}?limit=100&offset=${Math.max(0, stored - 100)}` }],
    ['count', { method: 'GET', path: `${COLLECTION}?limit=0` }],
  ];
  for (const [name, request] of requests) {
    for (const clients of clientCounts) {
      const runs: LoadResult[] = [];
      await loopDelay(bench.service.metrics);
      for (let i = 0; i < repetitions; i += 1)
        runs.push(await load(bench.service.http, bench.userToken, clients, seconds, request));
      const columns = [
        name,
        String(clients),
        range(runs.map((run) => run.perSecond)),
        range(runs.map((run) => run.p50)),
        range(runs.map((run) => run.p99)),
        String(runs.reduce((sum, run) => sum + run.errors, 0)),
        await loopDelay(bench.service.metrics),
      ];
      const widths = [17, 9, 19, 9, 9, 9, 15];
      console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));
    }
  }
  console.log(`RSS ${residentMb(bench.service.pid).toFixed(0)} MB after reading`);
} finally {
  await bench.close();
}
