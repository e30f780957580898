/**
 * `npm run bench -- list [--clusters 1000,10000,100000] [--seconds 5] [--repeat 3] [--clients 8]`: lists of 100 of so many
 * clusters of one tenant, over HTTP: plain, by every indexed filter, in another order, at deep offsets, and by a filter
 * that no index answers. `cpu ms` is the processor time of the service per answer, all of its threads. At last what such a filter does to reads of single objects beside it.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { v7 } from 'uuid';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { EventStore } from '../../src/app/log/event-store.ts';
import { printMachine, processorMs, range, residentMb } from './support/report.ts';
import { load, startBenchService, type BenchService, type LoadResult } from './support/service.ts';

const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '1000,10000,100000' },
    seconds: { type: 'string', default: '5' },
    repeat: { type: 'string', default: '3' },
    clients: { type: 'string', default: '8' },
  },
});
const seconds = Number(values.seconds);
const repeat = Number(values.repeat);
const clients = Number(values.clients);
const COLLECTION = '/api/fulfillment/v1/clusters';
const TENANT = 'acme';
const AT = '2026-11-21T10:00:00.000Z';
/** Appends under way at the same time. */
const CONCURRENT = 200;

/** One in a hundred has the label, one in a thousand the template, every second one is ready. */
const writeClusters = async (store: EventStore, clusters: number): Promise<void> => {
  let next = 0;
  const one = async (): Promise<void> => {
    while (next < clusters) {
      const n = next;
      next += 1;
      const id = v7();
      await store.append(`cluster-${id}`, 'no_stream', eventsOf(id, n));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, one));
};

const eventsOf = (id: string, n: number): Parameters<EventStore['append']>[2] => {
  const commandId = randomUUID();
  const metadata = JSON.stringify({
    tenant: TENANT,
    project: '',
    actor: {
      subjectId: '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11',
      roles: ['client'],
      authMethod: 'jwt',
      via: 'http',
    },
    command: 'OrderCluster',
    commandId,
    requestHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    correlationId: commandId,
    causationId: commandId,
    occurredAt: AT,
    schemaVersion: 1,
    instance: 'bench',
  });
  const event = (type: string, data: object): ReturnType<typeof eventsOf>[number] => ({
    id: randomUUID(),
    type,
    data: JSON.stringify(data),
    metadata,
  });
  const template = n % 1000 === 0 ? 'osac.templates.rare' : 'osac.templates.ocp_small';
  const hostType = { id: '0190f000-0000-7000-8000-00000000a001', name: 'bm-large' };
  return [
    event('ClusterOrdered', {
      id,
      at: AT,
      tenant: TENANT,
      project: '',
      name: `cluster-${n}`,
      creator: '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11',
      labels: { environment: 'bench', team: `team-${n % 100}` },
      annotations: {},
      template: { id: template, name: template.replaceAll(/[._]/g, '-'), revision: 3 },
      templateParameters: {},
      nodeSets: { workers: { hostType, size: (n % 7) + 1 } },
      version: {
        id: '0190f000-0000-7000-8000-00000000b001',
        name: '4-20-1',
        version: '4.20.1',
        releaseImage: 'quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64',
      },
    }),
    ...(n % 2 === 0
      ? [
          event('HubSelected', {
            at: AT,
            hub: 'sim-hub-1',
            namespace: 'osac',
            mode: 'operator',
            simulated: true,
            controller: 'operator',
            steps: {},
            orderName: `order-${n}`,
            decision: { weightsVersion: 1, candidates: [] },
          }),
          event('ClusterDispatchStarted', { at: AT, hub: 'sim-hub-1', orderName: `order-${n}` }),
          event('ClusterBecameReady', { at: AT }),
        ]
      : []),
  ];
};

const list = (query: Record<string, string>): string =>
  `${COLLECTION}?${new URLSearchParams({ limit: '100', ...query }).toString()}`;

const requestsOf = (clusters: number): readonly (readonly [name: string, path: string])[] => [
  ['plain', list({})],
  ['by label (1 %)', list({ filter: "this.metadata.labels['team'] == 'team-7'" })],
  ['by name', list({ filter: `this.metadata.name == "cluster-${clusters >> 1}"` })],
  ['by id or name', list({ filter: 'this.id == "x" || this.metadata.name == "cluster-7"' })],
  ['by state (half)', list({ filter: 'this.status.state == CLUSTER_STATE_READY' })],
  ['by reference (0.1 %)', list({ filter: 'this.spec.template.id == "osac.templates.rare"' })],
  [
    'by label and state',
    list({ filter: "this.metadata.labels['team'] == 'team-8' && this.status.state == 2" }),
  ],
  ['order by name', list({ order: 'metadata.name desc' })],
  ['order by creation time', list({ order: 'metadata.creation_timestamp desc' })],
  ['last page', list({ offset: String(clusters - 100) })],
  ['last page by state', list({ filter: 'this.status.state == 2', offset: String((clusters >> 1) - 100) })],
  ['middle page', list({ offset: String(clusters >> 1) })],
  ['only the total', list({ limit: '0' })],
  ['no index', list({ filter: 'this.spec.node_sets.workers.size > 6' })],
];

const measure = async (bench: BenchService, name: string, path: string): Promise<void> => {
  const first = await fetch(`${bench.service.http}${path}`, {
    headers: { authorization: `Bearer ${bench.userToken}` },
  });
  const { total = 0 } = (await first.json()) as { total?: number };
  const runs: LoadResult[] = [];
  const processorBefore = processorMs(bench.service.pid);
  for (let i = 0; i < repeat; i += 1)
    runs.push(await load(bench.service.http, bench.userToken, clients, seconds, { method: 'GET', path }));
  const answers = runs.reduce((sum, run) => sum + run.perSecond * seconds, 0);
  print([
    name,
    String(total),
    range(runs.map((run) => run.perSecond)),
    range(runs.map((run) => run.p50)),
    range(runs.map((run) => run.p99)),
    range([(processorMs(bench.service.pid) - processorBefore) / Math.max(1, answers)], 2),
    String(runs.reduce((sum, run) => sum + run.errors, 0)),
  ]);
};

const print = (columns: readonly string[]): void => {
  const widths = [26, 10, 19, 13, 13, 9, 6];
  console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));
};

printMachine({ clusters: values.clusters, seconds, repeat, clients, loader: 'same machine' });
for (const clusters of values.clusters.split(',').map(Number)) {
  const bench = await startBenchService('api', [], async (dataDir) => {
    const store = await openSqliteEventStore({ dataDir });
    await writeClusters(store, clusters);
    await store.close();
  });
  try {
    console.log(`\n${clusters} clusters, RSS ${residentMb(bench.service.pid).toFixed(0)} MB`);
    print(['list of 100', 'matches', 'per s', 'p50 ms', 'p99 ms', 'cpu ms', 'failed']);
    for (const [name, path] of requestsOf(clusters)) await measure(bench, name, path);

    const answer = await fetch(`${bench.service.http}${list({})}`, {
      headers: { authorization: `Bearer ${bench.userToken}` },
    });
    const { items } = (await answer.json()) as { items: readonly { readonly id: string }[] };
    const path = `${COLLECTION}/${items[0]?.id ?? ''}`;
    await measure(bench, 'GET by id alone', path);
    const scanning = load(bench.service.http, bench.userToken, 2, seconds * repeat, {
      method: 'GET',
      path: list({ filter: 'this.spec.node_sets.workers.size > 6' }),
    });
    await measure(bench, 'GET by id beside 2 scans', path);
    await scanning;
    console.log(`RSS ${residentMb(bench.service.pid).toFixed(0)} MB after reading`);
  } finally {
    await bench.close();
  }
}
