import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client, credentials, Metadata, type ClientReadableStream } from '@grpc/grpc-js';
import { goProgram } from '../../real/go-program.ts';
import { percentile } from './report.ts';
import { load, type LoadResult } from './service.ts';

export type Target = {
  /** Of gRPC: `host:port`. Of HTTP: the base URL. */
  readonly address: string;
  readonly token: string;
  /** Of gRPC: the path of the method. Of HTTP: the verb. */
  readonly method: string;
  /** Requests of gRPC; of HTTP: the path, the end of a line, and the body. */
  readonly messages: readonly Uint8Array[];
};

export type LoadOrder = Target & {
  readonly http?: boolean;
  /** Each message is sent at most once. Default: they are sent again and again. */
  readonly once?: boolean;
  readonly streams: number;
  readonly connections: number;
  readonly seconds: number;
};

export type Delivery = Pick<LoadResult, 'p50' | 'p99'>;

/** Makes calls over gRPC, and the same over HTTP, from a process of its own where there is Go. */
export type GrpcLoader = {
  readonly name: string;
  readonly load: (order: LoadOrder) => Promise<LoadResult>;
  /** Resolves when that many watches have begun. */
  readonly watch: (order: Target & Pick<LoadOrder, 'streams' | 'connections'>) => Promise<void>;
  /** One write after the other: milliseconds from its answer to its event at each watch; 0: it came before. */
  readonly deliver: (target: Target) => Promise<Delivery>;
  readonly unwatch: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export const openGrpcLoader = (): GrpcLoader => {
  const sources = join(import.meta.dirname, 'grpc-loader');
  const takes = 'building a load generator with grpc-go; this takes about half a minute, once per machine';
  const found = goProgram({ sources, name: 'grpc-loader', program: 'loader', takes }, (line) =>
    console.error(line),
  );
  return 'missing' in found ? withGrpcJs() : withGrpcGo(found.path);
};

type Told = Delivery & {
  readonly calls: number;
  readonly errors: number;
  readonly seconds: number;
  readonly why?: string;
};

const withGrpcGo = (program: string): GrpcLoader => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-load-'));
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting: PromiseWithResolvers<Told>[] = [];
  createInterface({ input: child.stdout }).on('line', (line) =>
    waiting.shift()?.resolve(JSON.parse(line) as Told),
  );
  child.once('close', () => {
    for (const { reject } of waiting) reject(new Error('the load generator ended'));
  });
  const ask = (what: string, { messages, ...order }: Partial<LoadOrder> = {}): Promise<Told> => {
    const file = join(folder, 'messages');
    const head = (message: Uint8Array): Buffer => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(message.byteLength);
      return length;
    };
    writeFileSync(file, Buffer.concat((messages ?? []).flatMap((message) => [head(message), message])));
    const told = Promise.withResolvers<Told>();
    waiting.push(told);
    child.stdin.write(`${JSON.stringify({ do: what, file, ...order })}\n`);
    return told.promise;
  };
  return {
    name: 'grpc-go and net/http of Go',
    load: async (order) => {
      const { calls, errors, seconds, p50, p99, why } = await ask('load', order);
      if (why !== undefined) console.error(why);
      return { perSecond: (calls - errors) / seconds, p50, p99, errors };
    },
    watch: async (order) => void (await ask('watch', order)),
    deliver: (target) => ask('deliver', target),
    unwatch: async () => void (await ask('unwatch')),
    close: async () => {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.stdin.end();
      await closed;
      rmSync(folder, { recursive: true });
    },
  };
};

const withGrpcJs = (): GrpcLoader => {
  let clients: Client[] = [];
  let streams: ClientReadableStream<Buffer>[] = [];
  let arrivals = 0;
  let arrived: (at: number) => void = () => undefined;
  const same = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
  const dial = (address: string, count: number): Client[] =>
    Array.from(
      { length: count },
      () => new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 }),
    );
  const bearer = (token: string): Metadata => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    return metadata;
  };
  const call = (client: Client, method: string, message: Uint8Array, metadata: Metadata): Promise<void> =>
    new Promise((resolve, reject) =>
      client.makeUnaryRequest(method, same, same, message, metadata, (error) =>
        error === null ? resolve() : reject(error),
      ),
    );
  const close = (): void => {
    for (const stream of streams.splice(0)) stream.cancel();
    for (const client of clients.splice(0)) client.close();
  };
  const overHttp = (order: LoadOrder): Promise<LoadResult> => {
    let next = 0;
    const decoder = new TextDecoder();
    return load(order.address, order.token, order.streams, order.seconds, {
      method: order.method as 'GET',
      setupRequest: (request) => {
        const text = decoder.decode(order.messages[next++ % order.messages.length]);
        const end = text.indexOf('\n');
        return { ...request, path: text.slice(0, end), body: text.slice(end + 1) };
      },
    });
  };
  return {
    name: '@grpc/grpc-js and autocannon',
    load: async (order) => {
      if (order.http === true) return overHttp(order);
      const { messages, once = false, method, seconds } = order;
      const own = dial(order.address, order.connections);
      const metadata = bearer(order.token);
      const times: number[] = [];
      let [next, errors] = [0, 0];
      const begun = performance.now();
      const until = begun + seconds * 1_000;
      const one = async (client: Client): Promise<void> => {
        while (performance.now() < until && !(once && next >= messages.length)) {
          const message = messages[next++ % messages.length] ?? new Uint8Array();
          const from = performance.now();
          await call(client, method, message, metadata).catch(() => (errors += 1));
          times.push(performance.now() - from);
        }
      };
      await Promise.all(Array.from({ length: order.streams }, (_, i) => one(own[i % own.length] as Client)));
      for (const client of own) client.close();
      const perSecond = ((times.length - errors) / (performance.now() - begun)) * 1_000;
      return { perSecond, p50: percentile(times, 0.5), p99: percentile(times, 0.99), errors };
    },
    watch: async ({ address, token, method, messages, streams: count, connections }) => {
      clients = dial(address, connections);
      streams = Array.from({ length: count }, (_, i) =>
        (clients[i % connections] as Client).makeServerStreamRequest(
          method,
          same,
          same,
          messages[0] ?? new Uint8Array(),
          bearer(token),
        ),
      );
      await Promise.all(streams.map((stream) => new Promise((resolve) => stream.once('metadata', resolve))));
      for (const stream of streams)
        stream.on('error', () => undefined).on('data', () => arrived(performance.now()));
    },
    deliver: async ({ address, token, method, messages }) => {
      const [client] = dial(address, 1) as [Client];
      const delays: number[] = [];
      for (const message of messages) {
        const came = Promise.withResolvers<void>();
        const times: number[] = [];
        arrivals = streams.length;
        arrived = (at) => {
          times.push(at);
          if ((arrivals -= 1) === 0) came.resolve();
        };
        await call(client, method, message, bearer(token));
        const answered = performance.now();
        await came.promise;
        delays.push(...times.map((at) => Math.max(0, at - answered)));
      }
      client.close();
      return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
    },
    unwatch: async () => close(),
    close: async () => close(),
  };
};
