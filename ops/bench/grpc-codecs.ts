/**
 * The same Get behind the gRPC port of this service, and behind `@connectrpc/connect` and `@grpc/grpc-js` alone, on a log
 * in memory. Arguments: [seconds] [rounds] [streams]. Each round takes the codecs in another order.
 */
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type ClientHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { create, fromBinary, toBinary, type Message } from '@bufbuild/protobuf';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { Server, ServerCredentials, type handleUnaryCall } from '@grpc/grpc-js';
import { systemClock } from '../../src/adapters/system/system-ports.ts';
import { Clusters, ClustersGetRequestSchema } from '../../src/gen/osac/public/v1/clusters_pb.ts';
import { decode } from '../../src/grpc/documents.ts';
import { pathOf, type Reply } from '../../src/grpc/method.ts';
import { osacMethods } from '../../src/grpc/osac-methods.ts';
import { finish, openExchange, requestIds, type AnswerSide } from '../../src/http/exchange.ts';
import {
  callerOf,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
} from '../../test/support/http/service.ts';
import { silentLogger } from '../../test/support/loggers.ts';
import { printMachine, processorMs, range } from './support/report.ts';

const GET = Clusters.method.get;
const STORED = 100;

type Told = {
  readonly token: string;
  readonly ids: readonly string[];
  readonly addresses: Readonly<Record<string, string>>;
};

/** The three servers in one process; prints where they are. */
const serve = async (): Promise<void> => {
  const service = await startTestService({ forgetful: true });
  await seedCatalogue(callerOf(service, await service.token({ user: 'root', admin: true })));
  const token = await service.token({ tenants: ['t1'], roles: ['tenant-admin'], expiresIn: 3_600 });
  const user = callerOf(service, token);
  const ids: string[] = [];
  for (let i = 0; i < STORED; i += 1) {
    const spec = { template: { id: 'osac.templates.small' } };
    const made = await user('POST', `${PUBLIC}/clusters`, { metadata: { name: `c-${i}` }, spec });
    ids.push(textAt(made.json, 'id'));
  }
  const { authenticate, positions } = service;
  const methods = osacMethods(service.surfaces, [], { authenticate, positions });
  const get = methods.find(({ desc }) => pathOf(desc) === pathOf(GET));
  if (get === undefined || !('serve' in get)) throw new Error('nothing answers Get');
  const clock = systemClock();
  const services = { clock, logger: silentLogger, recordRejection: () => undefined };
  const nextRequestId = requestIds(service.ids);
  /** What a call costs beside its codec. */
  const answer = async (headers: Record<string, string>, message: Message): Promise<Reply> => {
    const sides = {
      closed: false,
      destroyed: false,
      headersSent: true,
      statusCode: 200,
      setHeader: () => {},
    };
    const response = Object.assign(new EventEmitter(), sides) as AnswerSide & EventEmitter;
    const request = { headers, method: get.verb, socket: { remoteAddress: '127.0.0.1' } };
    const signal = (): AbortSignal => new AbortController().signal;
    const opening = { clock, nextRequestId, slowReaderMs: 30_000, signal };
    const exchange = openExchange(request, response, opening);
    const reply = await get.serve(exchange, () => Promise.resolve(message));
    finish(exchange, services);
    response.emit('close');
    return reply;
  };

  const ofConnect = createServer(
    connectNodeAdapter({
      routes: (router) =>
        router.rpc(GET, async (message, context) => {
          const reply = await answer(Object.fromEntries(context.requestHeader), message);
          for (const [name, value] of Object.entries(reply.headers)) context.responseHeader.set(name, value);
          return fromBinary(GET.output, reply.message);
        }),
    }),
  );
  ofConnect.listen(0, '127.0.0.1');
  await once(ofConnect, 'listening');
  const grpcJs = new Server();
  const unary: handleUnaryCall<Message, Buffer> = (call, done) => {
    const headers = Object.fromEntries(
      Object.entries(call.metadata.getMap()).map(([name, value]) => [name, String(value)]),
    );
    answer(headers, call.request).then(
      ({ message }) => done(null, Buffer.from(message)),
      (error: unknown) => done({ code: 2, details: String(error) }),
    );
  };
  const plain = (bytes: Buffer): Buffer => bytes;
  const definition = {
    path: pathOf(GET),
    requestStream: false,
    responseStream: false,
    requestSerialize: plain,
    requestDeserialize: (bytes: Buffer) => decode(GET.input, bytes),
    responseSerialize: plain,
    responseDeserialize: plain,
  } as const;
  grpcJs.addService({ Get: definition }, { Get: unary });
  const port = await new Promise<number>((resolve, reject) =>
    grpcJs.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  const addresses = {
    service: service.grpcAddress,
    connect: `127.0.0.1:${(ofConnect.address() as AddressInfo).port}`,
    'grpc-js': `127.0.0.1:${port}`,
  };
  console.log(JSON.stringify({ token, ids, addresses } satisfies Told));
};

const measure = async (): Promise<void> => {
  const seconds = Number(process.argv[2] ?? 5);
  const rounds = Number(process.argv[3] ?? 3);
  const streams = Number(process.argv[4] ?? 32);
  printMachine({ seconds, rounds, streams, loader: 'same machine', store: 'memory' });
  const flags = ['--max-semi-space-size=16', import.meta.filename];
  const child = spawn(process.execPath, flags, {
    env: { ...process.env, SERVE: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const { token, ids, addresses } = JSON.parse(line) as Told;
    const frames = ids.map((id) => {
      const message = toBinary(ClustersGetRequestSchema, create(ClustersGetRequestSchema, { id }));
      return Buffer.concat([Buffer.from([0, 0, 0, 0, message.byteLength]), message]);
    });
    let calls = 0;
    const call = (session: ClientHttp2Session): Promise<void> =>
      new Promise((resolve, reject) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': pathOf(GET),
          'content-type': 'application/grpc',
          te: 'trailers',
          authorization: `Bearer ${token}`,
        });
        stream.on('trailers', ({ 'grpc-status': status }) => {
          if (status !== '0') reject(new Error(`status ${String(status)}`));
        });
        stream.on('error', reject).on('close', resolve).resume();
        stream.end(frames[(calls += 1) % frames.length]);
      });
    const micros = new Map<string, number[]>();
    const names = Object.keys(addresses);
    const drive = async (name: string): Promise<void> => {
      const session = connect(`http://${addresses[name]}`);
      const [before, cpu] = [calls, processorMs(child.pid ?? 0)];
      const until = performance.now() + seconds * 1_000;
      const one = async (): Promise<void> => {
        while (performance.now() < until) await call(session);
      };
      await Promise.all(Array.from({ length: streams }, one));
      session.destroy();
      const spent = ((processorMs(child.pid ?? 0) - cpu) * 1_000) / (calls - before);
      micros.set(name, [...(micros.get(name) ?? []), spent]);
    };
    // The first round warms the code up.
    for (let round = 0; round <= rounds; round += 1) {
      if (round === 1) micros.clear();
      for (const at of names.keys()) await drive(names[(at + round) % names.length] ?? '');
    }
    console.log('codec     processor µs of the service per call');
    for (const name of names) console.log(name.padEnd(10) + range(micros.get(name) ?? []));
  } finally {
    child.kill();
  }
};

await (process.env['SERVE'] === undefined ? measure() : serve());
