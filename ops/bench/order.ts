/**
 * What an order costs until it is READY: processor time by thread and by part, rate and memory. Simulated hubs that do every step
 * themselves (`steps` are `hub`). Arguments: [orders] [repetitions] [clients] [roles] [--parts: with a profile of every thread,
 * which makes it slower].
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SERVICE_STORE } from './support/event-store.ts';
import { logOf } from './support/log-size.ts';
import { partsOf, threadsOf } from './support/processor-parts.ts';
import { printMachine, processorMs, residentMb } from './support/report.ts';
import { startBenchService } from './support/service.ts';

const { values, positionals } = parseArgs({
  options: { parts: { type: 'boolean' } },
  allowPositionals: true,
});
const orders = Number(positionals[0] ?? 2_000);
const repetitions = Number(positionals[1] ?? 1);
const clients = Number(positionals[2] ?? 8);
const roles = positionals[3] ?? 'api,processes,publisher,auditor';
/** Orders before those that are counted: a fresh process compiles what it runs. */
const WARM_UP = 200;
const PATIENCE_MS = 120_000;
const STEPS = [
  'agents',
  'l2',
  'l3',
  'floating-ip',
  'storage',
  'dns',
  'install',
  'post-install',
  'validation',
];

printMachine({ orders, clients, roles, hub: 'simulated, steps by the hub', store: SERVICE_STORE });
for (let i = 0; i < repetitions; i += 1) {
  const profiles = mkdtempSync(join(tmpdir(), 'ledger-bench-profiles-'));
  const bench = await startBenchService(
    roles,
    values.parts === true ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [],
    undefined,
    {},
    (hub) => ({ ...hub, steps: Object.fromEntries(STEPS.map((step) => [step, 'hub'])) }),
  );
  const { http, pid } = bench.service;
  const headers = { authorization: `Bearer ${bench.userToken}`, 'content-type': 'application/json' };
  const post = async (count: number, name: string): Promise<void> => {
    const run = randomUUID().slice(0, 4);
    let left = count;
    const client = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const body = JSON.stringify({
          metadata: { name: `${name}-${run}-${left}` },
          spec: { template: { id: 'osac.templates.ocp_small' } },
        });
        const answer = await fetch(`${http}/api/fulfillment/v1/clusters`, { method: 'POST', headers, body });
        if (!answer.ok) throw new Error(`an order was answered ${answer.status}: ${await answer.text()}`);
        await answer.arrayBuffer();
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
  };
  const ready = async (count: number): Promise<void> => {
    const filter = encodeURIComponent('this.status.state == CLUSTER_STATE_READY');
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await fetch(`${http}/api/fulfillment/v1/clusters?limit=1&filter=${filter}`, { headers });
      const { total = 0 } = (await answer.json()) as { total?: number };
      if (total >= count) return;
      if (!answer.ok || performance.now() > deadline)
        throw new Error(`${total} of ${count} orders are READY`);
      await pause(100);
    }
  };
  try {
    await post(WARM_UP, 'warm');
    await ready(WARM_UP);
    const threads = threadsOf(pid);
    const used = processorMs(pid);
    const before = logOf(bench.dataDir);
    const started = performance.now();
    await post(orders, 'o');
    const posted = performance.now();
    await ready(WARM_UP + orders);
    const seconds = (performance.now() - started) / 1_000;
    const perOrder = (ms: number): string => (ms / orders).toFixed(2);
    console.log(
      `${perOrder(processorMs(pid) - used)} ms of processor time per order, ${(orders / seconds).toFixed(0)} orders/s to READY` +
        ` (${((1_000 * orders) / (posted - started)).toFixed(0)} POST/s), ${residentMb(pid).toFixed(0)} MB resident`,
    );
    for (const [name, ms] of threadsOf(pid)) {
      const spent = ms - (threads.get(name) ?? 0);
      if (spent >= orders / 50) console.log(`  ${name.padEnd(18)} ${perOrder(spent)} ms`);
    }
    const after = logOf(bench.dataDir);
    const each = (name: keyof typeof before): string =>
      ((Number(after[name]) - Number(before[name])) / orders).toFixed(name === 'events' ? 1 : 0);
    console.log(
      `  in the log per order: ${each('events')} events, ${each('data')} bytes of data, ${each('metadata')} of metadata`,
    );
  } finally {
    await bench.close();
  }
  // A profile holds start and warm-up, too: shares, not times.
  for (const [thread, parts] of values.parts === true ? partsOf(profiles) : []) {
    console.log(`  ${thread}`);
    for (const [part, share] of parts) console.log(`    ${(100 * share).toFixed(1).padStart(5)} %  ${part}`);
  }
  rmSync(profiles, { recursive: true, force: true });
}
