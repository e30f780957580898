import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { LoopbackTls } from '../http/loopback-tls.ts';

export type StandInServer = {
  /** `http(s)://127.0.0.1:<port>`; the same after a restart. */
  readonly url: string;
  listen(): Promise<void>;
  /** Cuts every connection and lets the port go. */
  close(): Promise<void>;
};

/** An HTTP or HTTPS server on loopback that can go away and come back under its address. */
export const standInServer = async (
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  options: { readonly port?: number; readonly tls?: LoopbackTls } = {},
): Promise<StandInServer> => {
  const sockets = new Set<Socket>();
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  const server =
    options.tls === undefined ? createPlain(onRequest) : createSecure({ ...options.tls }, onRequest);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  let port = options.port ?? 0;
  const listen = (): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.removeListener('error', reject);
        port = (server.address() as AddressInfo).port;
        resolve();
      });
    });
  await listen();
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    listen,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
};

export const bodyOf = async (request: IncomingMessage, max = Infinity): Promise<Buffer | undefined> => {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.byteLength;
    if (length <= max) parts.push(part);
  }
  return length > max ? undefined : Buffer.concat(parts);
};

export const sleep = (ms: number): Promise<void> =>
  ms <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));

/** What the next requests are met with, in order; after that what is always done. */
export const behaviours = <Behaviour>(
  usual: Behaviour,
): {
  next(behaviour: Behaviour, times?: number): void;
  always(behaviour: Behaviour): void;
  take(): Behaviour;
} => {
  let always = usual;
  const queue: Behaviour[] = [];
  return {
    next: (behaviour, times = 1) => {
      for (let n = 0; n < times; n += 1) queue.push(behaviour);
    },
    always: (behaviour) => {
      queue.length = 0;
      always = behaviour;
    },
    take: () => queue.shift() ?? always,
  };
};
