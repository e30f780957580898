import {
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
  type ServerOptions,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Server as TlsServer, TlsOptions } from 'node:tls';
import express from 'express';
import type { Express } from 'express';
import type { Ids } from '../app/ports.ts';
import { onlyAuditors } from './audit/access.ts';
import type { ConsoleSocket } from './console-socket.ts';
import { objectOfCall } from './audit/object-of-call.ts';
import { createBodyBudget } from './body.ts';
import { ApiError, errorHeaders, invalid, osacErrorBody, methodNotAllowed, urlNotFound } from './errors.ts';
import {
  finish,
  openExchange,
  requestIds,
  send,
  sendError,
  SLOW_READER_MS,
  type ErrorStyle,
  type ExchangeServices,
  type HttpExchange,
} from './exchange.ts';
import { serveLedger, type LedgerRoute } from './ledger/serve.ts';
import { createCors, type CorsSettings } from './limits/cors.ts';
import { createDocuments } from './openapi/serve.ts';
import { serveRest, type Target } from './osac/rest.ts';
import type { CallServices } from './osac/served.ts';
import type { SurfaceTable } from './osac/service-table.ts';
import type { WatchRoute } from './osac/watch/routes.ts';

/** Milliseconds that a caller who was refused has to read the answer and to stop sending. */
const LINGER_MS = 1_000;

/**
 * What Node's parser refuses before there is a request (no HTTP, too large a header, too slow) is answered by a bare
 * status line by default. Here it gets the error body of OSAC's surfaces, and the connection ends. `headerBytes`: the
 * server's limit, for the text.
 */
const answerParserErrors = (server: Server, headerBytes: number): void => {
  const open = new WeakMap<Duplex, Set<ServerResponse>>();
  const note = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const responses = open.get(socket) ?? new Set();
    open.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  };
  server.prependListener('request', note);
  // Without a listener Node answers these itself.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error: Error & { readonly code?: string }, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) {
      socket.destroy();
      return;
    }
    // Refused before; what still comes is not read.
    if (!socket.writable) return;
    // In the middle of an answer, another one would look like a part of it.
    if ([...(open.get(socket) ?? [])].some(({ headersSent }) => headersSent)) {
      socket.destroy(error);
      return;
    }
    socket.end(answerText(refusalOf(error.code, headerBytes)));
    const late = setTimeout(() => socket.destroy(), LINGER_MS);
    late.unref();
    socket.once('close', () => clearTimeout(late));
  });
};

const refusalOf = (code: string | undefined, headerBytes: number): ApiError => {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(
        'HEADERS_TOO_LARGE',
        `the URL and the header fields of a request may have at most ${headerBytes} bytes together`,
      );
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('BODY_TOO_LARGE', 'the chunk extensions of the request body are too large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('REQUEST_TIMEOUT', 'the request did not arrive in time; nothing was carried out');
    default:
      return invalid('not an HTTP request: its first line, a header field or the form of its body is wrong');
  }
};

const answerText = (error: ApiError): string => {
  const body = JSON.stringify(osacErrorBody(error));
  const headers = {
    ...errorHeaders(error),
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}\r\n${lines.join('')}\r\n${body}`;
};

/** How often a field was sent; `rawHeaders` holds names and values in turn. */
const timesGiven = (rawHeaders: readonly string[], name: string): number =>
  rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === name.length && text.toLowerCase() === name,
  ).length;

/** Node would take the first: a proxy that checked another one would have checked for nothing. */
const ONCE = { host: 'Host', authorization: 'Authorization' } as const;

/**
 * Refusals of whole requests that Node would answer without a body; undefined: none. What asks for something that this
 * server does not do must not be carried out without it.
 */
const headerRefusal = (
  { headers, rawHeaders, httpVersion }: Pick<IncomingMessage, 'headers' | 'rawHeaders' | 'httpVersion'>,
  maxFields: number,
): ApiError | undefined => {
  const close = { headers: { connection: 'close' } };
  // Node would drop the surplus without a word, and with it a precondition perhaps.
  if (rawHeaders.length > 2 * maxFields)
    return new ApiError('HEADERS_TOO_LARGE', `a request may have at most ${maxFields} header fields`, close);
  if (headers.host === undefined && httpVersion === '1.1')
    return new ApiError('INVALID_ARGUMENT', "a request must have the header 'Host'", close);
  for (const [name, shown] of Object.entries(ONCE))
    if (timesGiven(rawHeaders, name) > 1)
      return new ApiError('INVALID_ARGUMENT', `header '${shown}' may be given once`, close);
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return new ApiError('EXPECTATION_FAILED', "only '100-continue' can be expected here", close);
  return undefined;
};

/** Whether this instance should get traffic, and what says so (`/readyz`). */
export type Readiness = {
  readonly ready: boolean;
  readonly checks: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly message?: string;
    /** What is wrong although traffic may come. */
    readonly warning?: string;
  }[];
};

export type HttpAppOptions = ExchangeServices &
  CallServices & {
    readonly ids: Ids;
    readonly surfaces: readonly SurfaceTable[];
    /** `Events/Watch` of the surfaces. Default: none. */
    readonly watches?: readonly WatchRoute[];
    readonly ledgerRoutes: readonly LedgerRoute[];
    /** Routes of `/api/audit/v1`. Default: none. */
    readonly auditRoutes?: readonly LedgerRoute[];
    /** Milliseconds without progress after which a caller who does not read its answer is cut off. Default 30,000. */
    readonly slowReaderMs?: number;
    /** Which pages of browsers may call. Default: those of no other origin. */
    readonly cors?: CorsSettings;
    readonly readiness: () => Promise<Readiness> | Readiness;
    /** JSON Web Key Set of what signs console tickets. Default: an empty one. */
    readonly keySet?: () => Promise<string>;
    /** Aborted when the service stops: answers that go on until the caller leaves end then. */
    readonly ending?: AbortSignal;
  };

export type HttpLimits = {
  /** Milliseconds until a request's headers must have arrived. Default 10,000. */
  readonly headersTimeoutMs?: number;
  /** Milliseconds until a whole request must have arrived; a slow sender gets 408. Default 30,000. */
  readonly requestTimeoutMs?: number;
  /** Milliseconds an idle connection is kept; above the idle time of the proxy in front. Default 65,000. */
  readonly keepAliveTimeoutMs?: number;
  /** Default: plaintext. */
  readonly tls?: ServerCertificate | undefined;
  /** Default: no connection becomes another protocol. */
  readonly consoleSocket?: ConsoleSocket | undefined;
};

/** What TLS is served with, and who has to be told of servers that do: files change. */
type ServerCertificate = {
  readonly options: TlsOptions;
  readonly follow: (server: TlsServer) => void;
};

/** Bytes of a request's headers; more is answered 431. */
const MAX_HEADER_BYTES = 32 * 1024;

/** Header fields of one request; more is answered 431. */
const MAX_HEADER_FIELDS = 200;

/**
 * Keys of the service's own signer (OSAC). It signs console tickets, which come with the console: until then
 * the set is empty, and whoever looks finds that nothing can have been signed.
 */
const KEYS_PATH = '/.well-known/jwks.json';
const NO_KEYS = '{"keys":[]}';

/** Bytes that the bodies of all running requests may take together; more is answered 503. */
const MAX_BODIES_BYTES = 128 * 1024 * 1024;

const LEDGER_PREFIX = '/api/ledger/v1';
const AUDIT_PREFIX = '/api/audit/v1';

/**
 * The Express application of every surface. Express matches paths; everything else is a codec around handlers that
 * know nothing of HTTP. No middleware stands before the routes: request log and metrics are one listener.
 */
export const createHttpApp = (options: HttpAppOptions): Express => {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  // One object, one path: what is written otherwise (a slash at the end, capitals) is another path, which nothing has.
  app.enable('strict routing');
  app.enable('case sensitive routing');

  const nextRequestId = requestIds(options.ids);
  const limited = { bodies: createBodyBudget(MAX_BODIES_BYTES), ...options };
  const cors = createCors(options.cors ?? { origins: [] });
  const run = (
    request: IncomingMessage,
    response: ServerResponse,
    style: ErrorStyle,
    serve: (exchange: HttpExchange) => Promise<void>,
  ): void => {
    const exchange = openHttp(request, response, options, nextRequestId);
    response.once('close', () => finish(exchange, options));
    if (cors(exchange)) return send(exchange, 200, '');
    const refusal = headerRefusal(request, MAX_HEADER_FIELDS);
    const served = refusal === undefined ? serve(exchange) : Promise.reject(refusal);
    served.catch((error: unknown) => sendError(exchange, error, style, options));
  };

  const watches = options.watches ?? [];
  for (const { path, serve } of watches)
    app.all(path, (request, response) => run(request, response, 'osac-stream', serve));
  for (const table of options.surfaces) {
    app.all(`${table.prefix}/:collection{/:id}{/:sub}`, (request, response) => {
      run(request, response, 'osac', (exchange) =>
        serveRest(exchange, table, request.params as unknown as Target, limited),
      );
    });
  }
  const ledger = serveLedger(LEDGER_PREFIX, options.ledgerRoutes, options);
  app.all(`${LEDGER_PREFIX}/*path`, (request, response) => run(request, response, 'problem', ledger));
  const auditRoutes = options.auditRoutes ?? [];
  const audit = serveLedger(AUDIT_PREFIX, auditRoutes, {
    ...options,
    name: 'audit.v1',
    mayEnter: onlyAuditors,
    watched: true,
    about: objectOfCall,
  });
  app.all(`${AUDIT_PREFIX}/*path`, (request, response) => run(request, response, 'problem', audit));
  const onlyRead = (
    path: string,
    style: ErrorStyle,
    serve: (exchange: HttpExchange) => Promise<void> | void,
  ): void => {
    app.all(path, (request, response) =>
      run(request, response, style, async (exchange) => {
        exchange.route = path;
        assertRead(exchange);
        await serve(exchange);
      }),
    );
  };
  onlyRead('/healthz', 'osac', (exchange) => send(exchange, 200, ''));
  onlyRead('/readyz', 'problem', async (exchange) => {
    const readiness = await options.readiness();
    send(exchange, readiness.ready ? 200 : 503, JSON.stringify(readiness), {
      'content-type': 'application/json',
      'cache-control': 'no-store',
    });
  });
  onlyRead(KEYS_PATH, 'osac', async (exchange) => {
    options.admission?.stranger(exchange);
    const keySet = (await options.keySet?.()) ?? NO_KEYS;
    send(exchange, 200, keySet, { 'content-type': 'application/json' });
  });
  const documents = createDocuments({
    surfaces: options.surfaces,
    watches,
    ledgerPrefix: LEDGER_PREFIX,
    ledgerRoutes: options.ledgerRoutes,
    auditPrefix: AUDIT_PREFIX,
    auditRoutes,
  });
  for (const path of documents.paths)
    app.all(path, (request, response) =>
      run(request, response, 'osac', async (exchange) => {
        options.admission?.stranger(exchange);
        await documents.serve(exchange);
      }),
    );
  app.use((request, response) => {
    run(request, response, styleOf(request.url), () => Promise.reject(urlNotFound()));
  });
  // Express calls this for what it cannot match itself, for example `%zz` in a path.
  app.use(
    (error: unknown, request: express.Request, response: express.Response, _next: express.NextFunction) => {
      run(request, response, styleOf(request.url), () =>
        Promise.reject(error instanceof Error ? error : new Error('request failed', { cause: error })),
      );
    },
  );
  return app;
};

/** Verbs of what can only be read; any other is answered as on OSAC's surfaces. */
const assertRead = ({ request }: HttpExchange): void => {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
};

const styleOf = (url: string): ErrorStyle => (/^\/api\/(ledger|audit)\//.test(url) ? 'problem' : 'osac');

/** A listener for the application with limits against slow and oversized senders. */
export const createHttpServer = (app: Express, limits: HttpLimits = {}): Server => {
  const headersTimeout = limits.headersTimeoutMs ?? 10_000;
  const requestTimeout = limits.requestTimeoutMs ?? 30_000;
  const options = {
    maxHeaderSize: MAX_HEADER_BYTES,
    // Asked for by the application, which says so in its answer.
    requireHostHeader: false,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout: limits.keepAliveTimeoutMs ?? 65_000,
    connectionsCheckingInterval: Math.min(2_000, headersTimeout, requestTimeout),
    shouldUpgradeCallback: (request: IncomingMessage): boolean =>
      limits.consoleSocket?.takes(request) === true,
  };
  const server = secured(limits.tls, options, app) ?? createServer(options, app);
  // Counted by the application, which refuses what is too much; only the bytes are limited here.
  server.maxHeadersCount = 0;
  answerParserErrors(server, MAX_HEADER_BYTES);
  if (limits.consoleSocket !== undefined) server.on('upgrade', limits.consoleSocket.upgrade);
  return server;
};

const secured = (
  tls: ServerCertificate | undefined,
  options: ServerOptions,
  app: Express,
): Server | undefined => {
  if (tls === undefined) return undefined;
  const server = createSecureServer({ ...options, ...tls.options }, app);
  tls.follow(server);
  return server;
};

const openHttp = (
  request: IncomingMessage,
  response: ServerResponse,
  { clock, slowReaderMs = SLOW_READER_MS }: HttpAppOptions,
  nextRequestId: () => string,
): HttpExchange => {
  let controller: AbortController | undefined;
  const signal = (): AbortSignal => {
    if (controller === undefined) {
      const created = new AbortController();
      controller = created;
      response.once('close', () => {
        if (!response.writableFinished) created.abort();
      });
    }
    return controller.signal;
  };
  return openExchange(request, response, { clock, nextRequestId, slowReaderMs, signal });
};
