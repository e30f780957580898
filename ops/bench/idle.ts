/**
 * What a service costs that nobody asks anything: processor time by thread and events that it writes by itself, with so many READY
 * clusters on the simulated hubs of the demo. Arguments: [clusters] [seconds].
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { SERVICE_STORE } from './support/event-store.ts';
import { threadsOf } from './support/processor-parts.ts';
import { printMachine, processorMs, residentMb } from './support/report.ts';
import { startBenchService } from './support/service.ts';

const clusters = Number(process.argv[2] ?? 1_000);
const seconds = Number(process.argv[3] ?? 600);
const CLIENTS = 8;
/** Milliseconds after the last cluster became READY: what followed from it is over. */
const SETTLING_MS = 20_000;

printMachine({ clusters, seconds, hub: 'simulated', store: SERVICE_STORE });
const bench = await startBenchService('api,processes,publisher,auditor');
try {
  const { http, pid } = bench.service;
  const url = `${http}/api/fulfillment/v1/clusters`;
  const headers = { authorization: `Bearer ${bench.userToken}`, 'content-type': 'application/json' };
  let left = clusters;
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const name = `idle-${left}-${randomUUID().slice(0, 4)}`;
      const body = JSON.stringify({
        metadata: { name },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      });
      const answer = await fetch(url, { method: 'POST', headers, body });
      if (!answer.ok) throw new Error(`an order was answered ${answer.status}: ${await answer.text()}`);
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const filter = encodeURIComponent('this.status.state == CLUSTER_STATE_READY');
  for (let ready = 0; ready < clusters; await pause(500)) {
    const answer = await fetch(`${url}?limit=1&filter=${filter}`, { headers });
    ready = ((await answer.json()) as { total?: number }).total ?? 0;
  }
  await pause(SETTLING_MS);

  const log = new DatabaseSync(join(bench.dataDir, 'events.db'), { readOnly: true, timeout: 5_000 });
  const last = Number(log.prepare('SELECT max(position) AS last FROM events').get()?.['last']);
  const threads = threadsOf(pid);
  const before = processorMs(pid);
  await pause(1_000 * seconds);
  const used = processorMs(pid) - before;
  const written = log
    .prepare('SELECT type, count(*) AS n FROM events WHERE position > ? GROUP BY type ORDER BY n DESC')
    .all(last) as { type: string; n: number }[];
  log.close();
  const events = written.reduce((sum, { n }) => sum + n, 0);
  console.log(
    `${((100 * used) / (1_000 * seconds)).toFixed(2)} % of a core, ${((60 * events) / seconds).toFixed(1)} events a minute,` +
      ` ${residentMb(pid).toFixed(0)} MB resident`,
  );
  for (const [name, ms] of threadsOf(pid)) {
    const spent = ms - (threads.get(name) ?? 0);
    if (spent > 0) console.log(`  ${name.padEnd(18)} ${((100 * spent) / (1_000 * seconds)).toFixed(3)} %`);
  }
  for (const { type, n } of written) console.log(`  ${type.padEnd(28)} ${n}`);
} finally {
  await bench.close();
}
