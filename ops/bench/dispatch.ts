/** Accepted → hub write: orders at a steady rate, the hub's own creation time minus the time of the answer. Arguments: [orders per s] [seconds]. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { SERVICE_STORE } from './support/event-store.ts';
import { percentile, printMachine } from './support/report.ts';
import { loopDelay, startBenchService } from './support/service.ts';

const rate = Number(process.argv[2] ?? 100);
const seconds = Number(process.argv[3] ?? 10);
const total = rate * seconds;
const PATIENCE_MS = 60_000;

printMachine({
  rate,
  seconds,
  roles: 'api,processes',
  hub: 'simulated, synchronous=FULL',
  store: SERVICE_STORE,
});
const bench = await startBenchService('api,processes');
try {
  const acceptedAt = new Map<string, number>();
  const post = async (n: number): Promise<void> => {
    const response = await fetch(`${bench.service.http}/api/fulfillment/v1/clusters`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bench.userToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        metadata: { name: `d-${n}` },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      }),
    });
    if (!response.ok) throw new Error(`order ${n} answered ${response.status}: ${await response.text()}`);
    const { id } = (await response.json()) as { id: string };
    acceptedAt.set(id, Date.now());
  };
  await loopDelay(bench.service.metrics);
  const started = performance.now();
  const posts: Promise<void>[] = [];
  for (let n = 0; n < total; n += 1) {
    const wait = started + (n * 1000) / rate - performance.now();
    if (wait > 1) await pause(wait);
    posts.push(post(n));
  }
  await Promise.all(posts);

  const createdAt = (): Map<string, number> => {
    const found = new Map<string, number>();
    for (const file of globSync(join(bench.dataDir, 'hubs', '*.sqlite'))) {
      const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
      for (const row of db
        .prepare("SELECT object_id, created_at FROM objects WHERE kind = 'ClusterOrder'")
        .all())
        found.set(String(row['object_id']), Number(row['created_at']));
      db.close();
    }
    return found;
  };
  const deadline = performance.now() + PATIENCE_MS;
  let written = createdAt();
  while (written.size < total && performance.now() < deadline) {
    await pause(200);
    written = createdAt();
  }
  const delays = [...acceptedAt].flatMap(([id, at]) => {
    const created = written.get(id);
    return created === undefined ? [] : [created - at];
  });
  const loop = await loopDelay(bench.service.metrics);
  console.log(`${total} orders accepted, ${delays.length} on a hub`);
  console.log(
    `accepted → hub write ms: p50 ${percentile(delays, 0.5)}, p99 ${percentile(delays, 0.99)}, max ${Math.max(...delays)}; loop p99/max ${loop}`,
  );
} finally {
  await bench.close();
}
