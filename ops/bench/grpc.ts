/**
 * Get, List of 100, Create and Update over gRPC and the same over HTTP beside them, and before it watches. Arguments: [seconds]
 * [repetitions] [streams, 1,8,32] [connections] [watchers, 1,100,1000] [writes, 50]. Both protocols have the same load
 * generator, in a process of its own where there is Go.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { create, toBinary, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import { EventsWatchRequestSchema } from '../../src/gen/osac/private/v1/events_pb.ts';
import {
  HostTypesCreateRequestSchema,
  HostTypesUpdateRequestSchema,
} from '../../src/gen/osac/private/v1/host_types_pb.ts';
import {
  ClustersCreateRequestSchema,
  ClustersGetRequestSchema,
  ClustersListRequestSchema,
  ClustersUpdateRequestSchema,
} from '../../src/gen/osac/public/v1/clusters_pb.ts';
import { SERVICE_STORE } from './support/event-store.ts';
import { openGrpcLoader, type LoadOrder } from './support/grpc-loader.ts';
import { printMachine, processorMs, range, residentMb } from './support/report.ts';
import { startBenchService, type LoadResult } from './support/service.ts';

const seconds = Number(process.argv[2] ?? 5);
const repetitions = Number(process.argv[3] ?? 3);
const streamCounts = (process.argv[4] ?? '1,8,32').split(',').map(Number);
const connections = Number(process.argv[5] ?? 1);
const watcherCounts = (process.argv[6] ?? '1,100,1000').split(',').map(Number);
const writes = Number(process.argv[7] ?? 50);
const CLUSTERS = '/osac.public.v1.Clusters';
const HOST_TYPES = '/osac.private.v1.HostTypes';
const COLLECTION = '/api/fulfillment/v1/clusters';
const STORED = 1_000;
/** Connections of all watchers together. */
const WATCH_CONNECTIONS = 10;
/** More than is answered in one run. */
const MOST_WRITES = 5_000 * Math.max(1, seconds);

type Run = LoadResult & { readonly cpuMicros: number };
type Prepare = () => Pick<LoadOrder, 'method' | 'messages' | 'http' | 'once'>;
type Row = {
  readonly name: string;
  readonly prepare: Prepare;
  /** One call for each stored object comes first: creations before it push their states out of the service's memory. */
  readonly recalls?: boolean;
};

const loader = openGrpcLoader();
printMachine({ seconds, repetitions, connections, loader: loader.name, store: SERVICE_STORE });
const bench = await startBenchService('api', [], undefined, { LEDGER_RATE_LIMIT_ADMIN: '0' });
const { service, userToken, adminToken } = bench;
const { grpc } = service;
if (grpc === undefined) throw new Error('the service has no gRPC listener');

const encoded = <Desc extends DescMessage>(desc: Desc, message: MessageInitShape<Desc>): Uint8Array =>
  toBinary(desc, create(desc, message));
const many = (count: number, message: (i: number) => Uint8Array): Uint8Array[] =>
  Array.from({ length: count }, (_, i) => message(i));
const httpMessage = (path: string, body?: object): Uint8Array =>
  Buffer.from(`${path}\n${body === undefined ? '' : JSON.stringify(body)}`);

const run = randomUUID().slice(0, 4);
let serial = 0;
const fresh = (): object => ({
  metadata: { name: `g-${run}-${(serial += 1)}`, labels: { env: 'bench' } },
  spec: { template: { id: 'osac.templates.ocp_small' } },
});
const labels = (): object => ({ metadata: { labels: { env: `e${(serial += 1)}` } } });
const createMessage = (): Uint8Array => encoded(ClustersCreateRequestSchema, { object: fresh() });

const drive = async (streams: number, prepare: Prepare): Promise<Run> => {
  const order = prepare();
  const address = order.http === true ? service.http : grpc;
  const cpu = processorMs(service.pid);
  const told = await loader.load({ ...order, address, token: userToken, streams, connections, seconds });
  const calls = Math.max(1, told.perSecond * seconds);
  return { ...told, cpuMicros: ((processorMs(service.pid) - cpu) * 1_000) / calls };
};

const recall = async (streams: number, order: ReturnType<Prepare>, count: number): Promise<void> => {
  const address = order.http === true ? service.http : grpc;
  const messages = order.messages.slice(0, count);
  await loader.load({ ...order, messages, address, token: userToken, streams, connections, seconds: 60 });
};

const printCalls = async (ids: readonly string[]): Promise<void> => {
  const idOf = (i: number): string => ids[i % ids.length] ?? '';
  const page = [encoded(ClustersListRequestSchema, { limit: 100 })];
  const updateMask = { paths: ['metadata.labels'] };
  const calls: readonly Row[] = [
    {
      name: 'Get',
      prepare: () => ({
        method: `${CLUSTERS}/Get`,
        messages: many(ids.length, (i) => encoded(ClustersGetRequestSchema, { id: idOf(i) })),
      }),
    },
    {
      name: 'HTTP GET',
      prepare: () => ({
        http: true,
        method: 'GET',
        messages: many(ids.length, (i) => httpMessage(`${COLLECTION}/${idOf(i)}`)),
      }),
    },
    { name: 'List of 100', prepare: () => ({ method: `${CLUSTERS}/List`, messages: page }) },
    {
      name: 'HTTP list',
      prepare: () => ({ http: true, method: 'GET', messages: [httpMessage(`${COLLECTION}?limit=100`)] }),
    },
    {
      name: 'Create',
      prepare: () => ({
        once: true,
        method: `${CLUSTERS}/Create`,
        messages: many(MOST_WRITES, createMessage),
      }),
    },
    {
      name: 'HTTP POST',
      prepare: () => ({
        http: true,
        once: true,
        method: 'POST',
        messages: many(MOST_WRITES, () => httpMessage(COLLECTION, fresh())),
      }),
    },
    {
      name: 'Update',
      recalls: true,
      prepare: () => ({
        once: true,
        method: `${CLUSTERS}/Update`,
        messages: many(MOST_WRITES, (i) =>
          encoded(ClustersUpdateRequestSchema, { object: { id: idOf(i), ...labels() }, updateMask }),
        ),
      }),
    },
    {
      name: 'HTTP PATCH',
      recalls: true,
      prepare: () => ({
        http: true,
        once: true,
        method: 'PATCH',
        messages: many(MOST_WRITES, (i) =>
          httpMessage(`${COLLECTION}/${idOf(i)}?update_mask=metadata.labels`, labels()),
        ),
      }),
    },
  ];
  console.log(
    'call          streams  per s              p50 ms        p99 ms          failed   processor µs per call',
  );
  for (const streams of streamCounts) {
    const rows = calls.map((row) => ({ ...row, runs: [] as Run[] }));
    // One after the other, so that all have the same machine; the first round warms up.
    for (let round = 0; round <= repetitions; round += 1)
      for (const { prepare, recalls = false, runs } of rows) {
        if (recalls) await recall(streams, prepare(), ids.length);
        const one = await drive(streams, prepare);
        if (round > 0) runs.push(one);
      }
    for (const { name, runs } of rows)
      printRow(
        [14, 9, 19, 14, 16, 9, 12],
        [
          name,
          String(streams),
          range(runs.map(({ perSecond }) => perSecond)),
          ...(['p50', 'p99'] as const).map((part) =>
            range(
              runs.map((each) => each[part]),
              1,
            ),
          ),
          String(runs.reduce((sum, { errors }) => sum + errors, 0)),
          range(runs.map(({ cpuMicros }) => cpuMicros)),
        ],
      );
  }
};

const printWatches = async (): Promise<void> => {
  const at = { address: grpc, token: adminToken };
  const id = `bench-${run}`;
  const made = encoded(HostTypesCreateRequestSchema, { object: { id, title: 'bench' } });
  const once = { once: true, streams: 1, connections: 1, seconds: 10 };
  const { errors } = await loader.load({
    ...at,
    ...once,
    method: `${HOST_TYPES}/Create`,
    messages: [made],
  });
  if (errors > 0) throw new Error('there is no host type to change');
  const changes = (): Uint8Array[] =>
    many(writes, () =>
      encoded(HostTypesUpdateRequestSchema, {
        object: { id, description: `${(serial += 1)}` },
        updateMask: { paths: ['description'] },
      }),
    );
  console.log('watchers      opened per s  kB per watcher  answer → event, p50 ms  p99 ms');
  for (const watchers of watcherCounts) {
    await pause(1_000); // what the last row left is collected
    const before = residentMb(service.pid);
    const begun = performance.now();
    const messages = [encoded(EventsWatchRequestSchema, {})];
    const many = { streams: watchers, connections: Math.min(watchers, WATCH_CONNECTIONS) };
    await loader.watch({ ...at, ...many, method: '/osac.private.v1.Events/Watch', messages });
    const opened = performance.now() - begun;
    await pause(1_000);
    const each = ((residentMb(service.pid) - before) * 1_024) / watchers;
    const told = await loader.deliver({ ...at, method: `${HOST_TYPES}/Update`, messages: changes() });
    await loader.unwatch();
    printRow(
      [14, 14, 16, 24, 0],
      [
        String(watchers),
        (watchers / (opened / 1_000)).toFixed(0),
        watchers < 100 ? '-' : each.toFixed(1),
        told.p50.toFixed(1),
        told.p99.toFixed(1),
      ],
    );
  }
};

const printRow = (widths: readonly number[], columns: readonly string[]): void =>
  console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));

try {
  // First: what calls leave free would hide what watches take.
  await printWatches();
  const seed = { address: grpc, token: userToken, method: `${CLUSTERS}/Create`, streams: 32 };
  await loader.load({
    ...seed,
    messages: many(STORED, createMessage),
    once: true,
    connections: 1,
    seconds: 600,
  });
  const listed = await fetch(`${service.http}${COLLECTION}?limit=${STORED}`, {
    headers: { authorization: `Bearer ${userToken}` },
  });
  const { items } = (await listed.json()) as { items: readonly { readonly id: string }[] };
  await printCalls(items.map(({ id }) => id));
} finally {
  await loader.close();
  await bench.close();
}
