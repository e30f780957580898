/** PATCH of labels over N clusters at 1, 8 and 32 clients, and 32 writers with `lock=true` on one object. Arguments: [clusters, 1000] [seconds, 5] [repetitions, 3] [clients, 1,8,32]. */
import type autocannon from 'autocannon';
import { SERVICE_STORE } from './support/event-store.ts';
import { printMachine, range } from './support/report.ts';
import { load, orderRequest, startBenchService, type LoadResult } from './support/service.ts';

const clusters = Number(process.argv[2] ?? 1000);
const seconds = Number(process.argv[3] ?? 5);
const repetitions = Number(process.argv[4] ?? 3);
const clientCounts = (process.argv[5] ?? '1,8,32').split(',').map(Number);
const COLLECTION = '/api/fulfillment/v1/clusters';
const WRITERS = 32;

type Listed = { readonly total?: number; readonly items?: readonly { readonly id: string }[] };

printMachine({ clusters, seconds, repetitions, roles: 'api', store: SERVICE_STORE });
const bench = await startBenchService('api');
const headers = { authorization: `Bearer ${bench.userToken}`, 'content-type': 'application/json' };
const get = async <T>(path: string): Promise<T> =>
  (await (await fetch(bench.service.http + path, { headers })).json()) as T;

/** What one writer did who reads, changes and writes back with the version that was read. */
const lockedWriter = async (
  id: string,
  until: number,
  name: string,
): Promise<[won: number, lost: number]> => {
  let won = 0;
  let lost = 0;
  for (let n = 0; performance.now() < until; n += 1) {
    const { metadata } = await get<{ metadata: { version?: number } }>(`${COLLECTION}/${id}`);
    const answer = await fetch(`${bench.service.http}${COLLECTION}/${id}?lock=true`, {
      method: 'PATCH',
      headers,
      body: JSON.stringify({
        metadata: { version: metadata.version ?? 0, labels: { writer: name, n: String(n) } },
      }),
    });
    await answer.arrayBuffer();
    if (answer.status === 200) won += 1;
    else if (answer.status === 409) lost += 1;
    else throw new Error(`a locked PATCH answered ${answer.status}`);
  }
  return [won, lost];
};

try {
  for (let round = 0; ((await get<Listed>(`${COLLECTION}?limit=0`)).total ?? 0) < clusters; round += 1)
    await load(bench.service.http, bench.userToken, 32, 3, orderRequest(`p${round}`));
  const ids = ((await get<Listed>(`${COLLECTION}?limit=1000`)).items ?? []).map(({ id }) => id);
  let n = 0;
  /** Another object each time, and always another value: a change that changes nothing would write nothing. */
  const labels = (request: Partial<autocannon.Request>): Partial<autocannon.Request> => {
    n += 1;
    return {
      ...request,
      path: `${COLLECTION}/${ids[n % ids.length]}`,
      body: JSON.stringify({ metadata: { labels: { env: 'bench', n: String(n) } } }),
    };
  };
  console.log('request             clients  per s              p50 ms   p99 ms   failed');
  for (const clients of clientCounts) {
    const runs: LoadResult[] = [];
    for (let i = 0; i < repetitions; i += 1)
      runs.push(
        await load(bench.service.http, bench.userToken, clients, seconds, {
          method: 'PATCH',
          path: COLLECTION,
          setupRequest: labels,
        }),
      );
    const columns = [
      'PATCH labels',
      String(clients),
      range(runs.map((run) => run.perSecond)),
      range(runs.map((run) => run.p50)),
      range(runs.map((run) => run.p99)),
      String(runs.reduce((sum, run) => sum + run.errors, 0)),
    ];
    const widths = [20, 9, 19, 9, 9, 6];
    console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));
  }
  const [id = ''] = ids;
  const before = (await get<{ metadata: { version?: number } }>(`${COLLECTION}/${id}`)).metadata.version ?? 0;
  const until = performance.now() + seconds * 1000;
  const writers = Array.from({ length: WRITERS }, (_, i) => lockedWriter(id, until, `w${i}`));
  const done = await Promise.all(writers);
  const won = done.reduce((sum, [each]) => sum + each, 0);
  const lost = done.reduce((sum, [, each]) => sum + each, 0);
  const after = (await get<{ metadata: { version?: number } }>(`${COLLECTION}/${id}`)).metadata.version ?? 0;
  console.log(
    `${WRITERS} writers with lock=true on one object: ${Math.round(won / seconds)} changes/s, ${Math.round(lost / seconds)} refused/s; version ${before} → ${after}, ${after - before === won ? 'as many as succeeded' : 'WRONG'}`,
  );
} finally {
  await bench.close();
}
