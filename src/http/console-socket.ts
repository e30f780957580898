import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { createWebSocketStream, WebSocketServer, type WebSocket } from 'ws';
import { ConsoleRefused, type ConnectConsole, type ConsoleRefusal } from '../app/consoles/console-line.ts';
import { duplexLine } from '../app/consoles/duplex-line.ts';
import { keepAlive } from '../app/consoles/keep-alive.ts';
import type { Clock, Logger, Timers } from '../app/ports.ts';
import { CONSOLE_ENDS, type ConsoleEnd } from '../domain/consoles.ts';
import type { RecordRejection } from '../app/ports.ts';
import { ApiError, denied, unauthenticated } from './errors.ts';
import { openExchange, recordRefused, SLOW_READER_MS, type Exchange } from './exchange.ts';
import type { Admission } from './limits/admission.ts';
import type { CorsSettings } from './limits/cors.ts';
import { consoleRefusal } from './osac/console-sessions.ts';

/** Where clients of OSAC connect. */
export const CONNECT_PATH = '/api/fulfillment/v1/console_sessions/connect';
/** As gRPC names the same. */
const METHOD = '/osac.public.v1.ConsoleProxy/Connect';
/** Cookie of pages, which cannot set a header here. */
const COOKIE = 'console-ticket';

/** Bytes of one message of a client; viewers send 32 KiB at most (OSAC). */
const MAX_MESSAGE_BYTES = 256 * 1024;
const HIGH_WATER_BYTES = 16_384;
/** Milliseconds that a client has to answer a close. */
const CLOSING_MS = 2_000;

/** 3000 and 4409 are OSAC's. */
const REFUSED: { readonly [R in ConsoleRefusal]: number } = {
  'invalid-ticket': 3000,
  active: 4409,
  'not-running': 1008,
  unreachable: 1013,
  'too-many': 1013,
};
const ENDED: { readonly [E in ConsoleEnd]: number } = {
  left: 1000,
  closed: 1000,
  limit: 1000,
  unauthorized: 3000,
  replaced: 4409,
  stopped: 1001,
  deleted: 1001,
  shutdown: 1012,
  lost: 1011,
  unreachable: 1013,
  interrupted: 1011,
};

export type ConsoleSocketOptions = {
  readonly connect: ConnectConsole;
  readonly cors: CorsSettings;
  readonly admission?: Pick<Admission, 'stranger'>;
  readonly nextRequestId: () => string;
  readonly recordRejection: RecordRejection;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
};

export type ConsoleSocket = {
  /** Whether a request that asks for another protocol is for a console; any other is served as if it did not ask. */
  readonly takes: (request: Pick<IncomingMessage, 'url' | 'headers'>) => boolean;
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
};

/** Consoles over WebSocket (OSAC): bytes both ways as binary messages, an end as a close with its code and reason. */
export const createConsoleSocket = (options: ConsoleSocketOptions): ConsoleSocket => {
  const { cors, admission, clock, nextRequestId, logger } = options;
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
  });

  const exchangeOf = (request: IncomingMessage): Exchange => {
    const exchange = openExchange(request, new ServerResponse(request), {
      clock,
      nextRequestId,
      slowReaderMs: SLOW_READER_MS,
      signal: () => new AbortController().signal,
    });
    exchange.method = METHOD;
    return exchange;
  };
  const assertAdmitted = (exchange: Exchange, request: IncomingMessage): void => {
    admission?.stranger(exchange);
    if (!isLetIn(request, cors)) throw denied('permission denied: pages of this origin may not connect');
  };

  return {
    takes: ({ url = '', headers }) =>
      url.split('?')[0] === CONNECT_PATH && headers.upgrade?.toLowerCase() === 'websocket',
    upgrade: (request, socket, head) => {
      const onError = (): void => {
        socket.destroy();
      };
      socket.on('error', onError);
      const exchange = exchangeOf(request);
      const { requestId } = exchange;
      try {
        assertAdmitted(exchange, request);
        sockets.handleUpgrade(request, socket, head, (webSocket) => {
          socket.off('error', onError);
          serve(webSocket, request, exchange, options).catch((error: unknown) => {
            logger.error({ err: error, requestId }, 'console connection failed');
            webSocket.terminate();
          });
        });
      } catch (error) {
        const refusal = error instanceof ApiError ? error : new ApiError('INTERNAL', 'internal error');
        recordRefused(exchange, refusal, options);
        socket.end(`HTTP/1.1 ${refusal.status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      }
    },
  };
};

/**
 * Pages of the service's own origin, of those that the setting names, and whatever is no page. A browser adds its cookie
 * to what a foreign page asks for: `*` names none that may use it.
 */
const isLetIn = ({ headers }: IncomingMessage, { origins }: CorsSettings): boolean => {
  const { origin, host, authorization } = headers;
  if (origin === undefined || origins.includes(origin)) return true;
  if (authorization !== undefined && origins.includes('*')) return true;
  return host !== undefined && URL.parse(origin)?.host === host;
};

const ticketIn = ({ headers }: IncomingMessage): string => {
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [name = '', ...value] = pair.trim().split('=');
    if (name === COOKIE) return value.join('=');
  }
  return '';
};

const serve = async (
  webSocket: WebSocket,
  request: IncomingMessage,
  exchange: Exchange,
  options: ConsoleSocketOptions,
): Promise<void> => {
  const { requestId } = exchange;
  const { connect, timers, logger } = options;
  const gone = new AbortController();
  webSocket.once('close', () => gone.abort());
  const stream = createWebSocketStream(webSocket, {
    readableHighWaterMark: HIGH_WATER_BYTES,
    writableHighWaterMark: HIGH_WATER_BYTES,
  });
  // What breaks it ends it, which the close says.
  stream.on('error', () => undefined);
  const endPings = keepAlive(webSocket, timers);
  const remoteAddress = request.socket.remoteAddress;
  const userAgent = request.headers['user-agent'];
  const close = (code: number, reason: string): void => {
    webSocket.close(code, reason);
    const cancel = timers.after(CLOSING_MS, () => webSocket.terminate());
    webSocket.once('close', cancel);
    // A close frame of the client stands behind what was not read of it. A listener, since a reader may still wait.
    stream.on('data', () => undefined);
    stream.resume();
  };
  try {
    const ticket = ticketIn(request);
    if (ticket === '') {
      const missing = 'a ticket is required: header Authorization or cookie console-ticket';
      recordRefused(exchange, unauthenticated(missing, false), options);
      close(REFUSED['invalid-ticket'], missing);
      return;
    }
    const end = await connect(
      ticket,
      { ...duplexLine(stream), connected: () => undefined },
      {
        via: 'websocket',
        requestId,
        ...(remoteAddress === undefined ? {} : { remoteAddress }),
        ...(userAgent === undefined ? {} : { userAgent }),
        signal: gone.signal,
      },
    );
    close(ENDED[end], CONSOLE_ENDS[end]);
  } catch (error) {
    if (error instanceof ConsoleRefused) {
      recordRefused(exchange, consoleRefusal(error), options);
      close(REFUSED[error.refusal], error.message);
    } else {
      logger.error({ err: error, requestId }, 'console session failed');
      close(1011, 'internal error');
    }
  } finally {
    endPings();
  }
};
