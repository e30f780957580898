/**
 * Get, List of 100 and Create over gRPC, and Get and Create over HTTP beside them. Arguments: [seconds] [repetitions]
 * [streams, 1,8,32] [connections]. The caller is Node's own HTTP/2, which costs less than a client library.
 */
import { randomUUID } from 'node:crypto';
import { connect, type ClientHttp2Session } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type autocannon from 'autocannon';
import {
  ClustersCreateRequestSchema,
  ClustersGetRequestSchema,
  ClustersListRequestSchema,
  ClustersListResponseSchema,
} from '../../src/gen/osac/public/v1/clusters_pb.ts';
import { SERVICE_STORE } from './support/event-store.ts';
import { percentile, printMachine, processorMs, range } from './support/report.ts';
import { load, orderRequest, startBenchService } from './support/service.ts';

const seconds = Number(process.argv[2] ?? 5);
const repetitions = Number(process.argv[3] ?? 3);
const streamCounts = (process.argv[4] ?? '1,8,32').split(',').map(Number);
const connections = Number(process.argv[5] ?? 1);
const CLUSTERS = '/osac.public.v1.Clusters';
const COLLECTION = '/api/fulfillment/v1/clusters';
const STORED = 1_000;

type Run = {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
  readonly cpuMicros: number;
};

const framed = (message: Uint8Array): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
};

/** One call; gives back the message of its answer, or undefined when it failed. */
const call = (
  session: ClientHttp2Session,
  path: string,
  token: string,
  message: Uint8Array,
): Promise<Buffer | undefined> =>
  new Promise((resolve) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${token}`,
    });
    const parts: Buffer[] = [];
    let fine = false;
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('trailers', (trailers) => (fine = trailers['grpc-status'] === '0'));
    stream.on('error', () => undefined);
    stream.on('close', () => resolve(fine ? Buffer.concat(parts).subarray(5) : undefined));
    stream.end(framed(message));
  });

printMachine({ seconds, repetitions, connections, loader: 'same machine', store: SERVICE_STORE });
const bench = await startBenchService('api');
const { service, userToken } = bench;
if (service.grpc === undefined) throw new Error('the service has no gRPC listener');
const sessions = Array.from({ length: connections }, () => connect(`http://${service.grpc}`));

const drive = async (path: string, streams: number, message: () => Uint8Array): Promise<Run> => {
  const times: number[] = [];
  let errors = 0;
  const cpu = processorMs(service.pid);
  const until = performance.now() + seconds * 1_000;
  const one = async (session: ClientHttp2Session): Promise<void> => {
    while (performance.now() < until) {
      const begun = performance.now();
      if ((await call(session, path, userToken, message())) === undefined) errors += 1;
      times.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, i) => one(sessions[i % connections] ?? fail())));
  return {
    perSecond: times.length / seconds,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    errors,
    cpuMicros: ((processorMs(service.pid) - cpu) * 1_000) / times.length,
  };
};
const fail = (): never => {
  throw new Error('no connection');
};
const overHttp = async (clients: number, request: Partial<autocannon.Request>): Promise<Run> => {
  const cpu = processorMs(service.pid);
  const run = await load(service.http, userToken, clients, seconds, request);
  return { ...run, cpuMicros: ((processorMs(service.pid) - cpu) * 1_000) / (run.perSecond * seconds) };
};

const run = randomUUID().slice(0, 4);
let orders = 0;
const order = (): Uint8Array =>
  toBinary(
    ClustersCreateRequestSchema,
    create(ClustersCreateRequestSchema, {
      object: {
        metadata: { name: `g-${run}-${(orders += 1)}`, labels: { env: 'bench' } },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      },
    }),
  );

try {
  while (orders < STORED)
    await Promise.all(
      Array.from({ length: 32 }, () => call(sessions[0] ?? fail(), `${CLUSTERS}/Create`, userToken, order())),
    );
  const page = toBinary(ClustersListRequestSchema, create(ClustersListRequestSchema, { limit: 100 }));
  const listed = await call(sessions[0] ?? fail(), `${CLUSTERS}/List`, userToken, page);
  const ids = fromBinary(ClustersListResponseSchema, listed ?? fail()).items.map(({ id }) => id);
  let next = 0;
  const anyId = (): string => ids[(next = (next + 1) % ids.length)] ?? fail();
  const get = (): Uint8Array =>
    toBinary(ClustersGetRequestSchema, create(ClustersGetRequestSchema, { id: anyId() }));
  const getRequest: Partial<autocannon.Request> = {
    method: 'GET',
    path: `${COLLECTION}/${ids[0]}`,
    setupRequest: (request) => ({ ...request, path: `${COLLECTION}/${anyId()}` }),
  };

  console.log(
    'call          streams  per s              p50 ms        p99 ms          failed   processor µs per call',
  );
  const calls: readonly (readonly [string, (streams: number) => Promise<Run>])[] = [
    ['Get', (streams) => drive(`${CLUSTERS}/Get`, streams, get)],
    ['HTTP GET', (streams) => overHttp(streams, getRequest)],
    ['List of 100', (streams) => drive(`${CLUSTERS}/List`, streams, () => page)],
    ['Create', (streams) => drive(`${CLUSTERS}/Create`, streams, order)],
    ['HTTP POST', (streams) => overHttp(streams, orderRequest('h'))],
  ];
  for (const [name, measure] of calls)
    for (const streams of streamCounts) {
      const runs: Run[] = [];
      for (let i = 0; i < repetitions; i += 1) runs.push(await measure(streams));
      const columns = [
        name,
        String(streams),
        range(runs.map(({ perSecond }) => perSecond)),
        range(
          runs.map(({ p50 }) => p50),
          1,
        ),
        range(
          runs.map(({ p99 }) => p99),
          1,
        ),
        String(runs.reduce((sum, { errors }) => sum + errors, 0)),
        range(runs.map(({ cpuMicros }) => cpuMicros)),
      ];
      const widths = [14, 9, 19, 14, 16, 9, 12];
      console.log(columns.map((text, i) => text.padEnd(widths[i] ?? 0)).join(''));
    }
} finally {
  for (const session of sessions) session.destroy();
  await bench.close();
}
