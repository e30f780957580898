import { createServer as createHttp2, type ServerHttp2Session } from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import type { Clock, Timers } from '../app/ports.ts';
import { countPings, type PingRules } from './keepalive.ts';
import { createProtocol, type ProtocolSettings } from './protocol.ts';
import type { Peer, ServeStream } from './serve.ts';

export type GrpcServer = {
  /** Listens; its address is the listener's. */
  readonly server: Server;
  /** Tells callers to leave, waits for running calls up to the bound, then cuts what is left. */
  readonly close: (graceMs: number) => Promise<void>;
};

export type GrpcServerOptions = {
  readonly timers: Timers;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly keepalive?: Partial<PingRules & ProtocolSettings>;
  /** Takes connections, for example under TLS. Default: in clear. */
  readonly accept?: (taken: (socket: Socket) => void) => Server;
};

/** The first bytes of HTTP/2. */
const PREFACE = 'PRI * HTTP/2.0';
/** Milliseconds in which they must have come. */
const PREFACE_MS = 10_000;
/** What HTTP/1.1 is answered here, and anything else that is not HTTP/2. */
const EXPECTED = 'this port speaks gRPC: HTTP/2 is expected here\n';
const NOT_HTTP2 =
  'HTTP/1.1 505 HTTP Version Not Supported\r\ncontent-type: text/plain\r\nconnection: close\r\n' +
  `content-length: ${EXPECTED.length}\r\n\r\n${EXPECTED}`;

const SETTINGS = {
  /** Calls and watches of one connection at one time. */
  maxConcurrentStreams: 2_000,
  maxHeaderListSize: 32 * 1024,
  initialWindowSize: 128 * 1024,
};
/** Metadata entries of one call; more is reset by ENHANCE_YOUR_CALM. */
const MAX_HEADER_FIELDS = 200;
const MAX_CONNECTIONS = 20_000;

/** OSAC's, which are those of gRPC for Go. */
const KEEPALIVE = { leastBetweenMs: 10_000, forgiven: 2, idleMs: 15_000, answerMs: 10_000 };

/** A listener for HTTP/2 alone, with limits against floods and silent connections. */
export const createGrpcServer = (
  serve: ServeStream,
  { timers, clock, keepalive, accept = inClear }: GrpcServerOptions,
): GrpcServer => {
  const rules = { ...KEEPALIVE, ...keepalive };
  const protocol = createProtocol(rules);
  const sessions = new Map<ServerHttp2Session, Peer>();
  const http2 = createHttp2({ settings: SETTINGS, maxHeaderListPairs: MAX_HEADER_FIELDS });
  http2.on('session', (session) => {
    const { remoteAddress } = session.socket;
    const touched = countPings(session, rules, () => clock.monotonicMs());
    sessions.set(session, { remoteAddress, touched, accept: protocol.accept });
    protocol.follow(session);
    session.once('close', () => sessions.delete(session));
  });
  http2.on('sessionError', () => undefined);
  http2.on('stream', (stream, headers, _flags, rawHeaders) => {
    // Whoever resets a stream is gone; `close` says so, too.
    stream.on('error', () => undefined);
    const peer =
      stream.session === undefined ? undefined : sessions.get(stream.session as ServerHttp2Session);
    if (peer === undefined) return stream.destroy();
    serve(stream, headers, rawHeaders as unknown as readonly string[], peer);
  });

  /** Connections, and whether they have said that they speak HTTP/2. */
  const sockets = new Map<Socket, { spoke: boolean }>();
  const server = accept((socket) => {
    const known = { spoke: false };
    sockets.set(socket, known);
    socket.once('close', () => sockets.delete(socket));
    hasPreface(socket, () => {
      known.spoke = true;
      http2.emit('connection', socket);
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  return {
    server,
    close: (graceMs) =>
      new Promise((resolve) => {
        const cut = timers.after(graceMs, () => {
          for (const session of sessions.keys()) session.destroy();
          for (const socket of sockets.keys()) socket.destroy();
        });
        server.close(() => {
          cut();
          resolve();
        });
        for (const session of sessions.keys()) session.close();
        for (const [socket, { spoke }] of sockets) if (!spoke) socket.destroy();
      }),
  };
};

const inClear = (taken: (socket: Socket) => void): Server => createServer({ noDelay: true }, taken);

/** Hands the connection on once it has said that it speaks HTTP/2; another one is told what is expected. */
const hasPreface = (socket: Socket, go: () => void): void => {
  let first = Buffer.alloc(0);
  const refuse = (): void => {
    socket.end(NOT_HTTP2);
    socket.setTimeout(1_000, () => socket.destroy());
  };
  const look = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    first = Buffer.concat([first, chunk]);
    const begun = first.subarray(0, PREFACE.length).toString('latin1');
    if (!PREFACE.startsWith(begun)) {
      socket.off('readable', look);
      socket.resume();
      refuse();
    } else if (begun.length === PREFACE.length) {
      socket.off('readable', look);
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      socket.unshift(first);
      go();
    }
  };
  socket.on('error', () => undefined);
  socket.setTimeout(PREFACE_MS, () => socket.destroy());
  socket.on('readable', look);
};
