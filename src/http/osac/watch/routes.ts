import type { IncomingHttpHeaders } from 'node:http';
import type { Timers } from '../../../app/ports.ts';
import { methodNotAllowed } from '../../errors.ts';
import type { HttpExchange } from '../../exchange.ts';
import type { Surface } from '../messages.ts';
import { onlyOne, queryOf } from '../query.ts';
import type { StreamService } from '../service-table.ts';
import { httpSink, type HttpFraming } from './http-sink.ts';
import { createWatches, type Asked, type Watches, type WatchServices } from './opening.ts';
import { watchStreams } from './streams.ts';

export type { WatchServices } from './opening.ts';

export const PRIVATE_WATCH = '/api/private/v1/events/watch';
export const PUBLIC_WATCH = '/api/events/v1/events';

export type Watch = {
  readonly routes: readonly WatchRoute[];
  readonly streams: readonly StreamService[];
  readonly status: Watches['status'];
};

/** `Events/Watch` of both surfaces, over HTTP and over gRPC. */
export const createWatch = (services: WatchServices): Watch => {
  const watches = createWatches(services);
  return {
    routes: watchRoutes(watches, services.timers),
    streams: watchStreams(watches),
    status: watches.status,
  };
};

/** A path whose answer goes on until one side ends it. */
export type WatchRoute = {
  readonly surface: Surface;
  readonly path: string;
  readonly serve: (exchange: HttpExchange) => Promise<void>;
};

/**
 * `Events/Watch` over HTTP: what changes, as newline-delimited JSON in OSAC's form, or as Server-Sent Events for who
 * accepts those. Beyond OSAC it resumes: `from`, or `Last-Event-ID`, after an event's id.
 */
const watchRoutes = ({ open }: Watches, timers: Timers): readonly WatchRoute[] => {
  const serve = async (exchange: HttpExchange, surface: Surface): Promise<void> => {
    const { request, response } = exchange;
    exchange.method = `/osac.${surface}.v1.Events/Watch`;
    const verb = request.method;
    if (verb !== 'GET' && verb !== 'HEAD') throw methodNotAllowed();
    const headOnly = verb === 'HEAD';
    const read = (): Asked => ({ ...askedBy(request.headers, request.url ?? ''), headOnly });
    const opened = await open(exchange, surface, read);
    if (opened === undefined) return;
    const framing = /\btext\/event-stream\b/i.test(request.headers.accept ?? '') ? 'sse' : 'ndjson';
    sendHead(exchange, framing, opened.startId);
    if (headOnly) return void response.end();
    const sink = httpSink(response, timers, framing);
    if (framing === 'sse') sink.write([retryLine()]);
    opened.start(framing, sink);
  };

  const route = (path: string, surface: Surface): WatchRoute => ({
    surface,
    path,
    serve: (exchange) => {
      exchange.route = path;
      return serve(exchange, surface);
    },
  });
  return [route(PRIVATE_WATCH, 'private'), route(PUBLIC_WATCH, 'public')];
};

const askedBy = (headers: IncomingHttpHeaders, url: string): Asked => {
  const query = queryOf(url);
  return { from: resumeId(headers, query), filterText: onlyOne(query, 'filter')?.trim() ?? '' };
};

/** A browser reconnects with the address it began with, so what it saw last counts more. */
const resumeId = (headers: IncomingHttpHeaders, query: URLSearchParams): Asked['from'] => {
  const header = headers['last-event-id'];
  if (typeof header === 'string' && header !== '') return { text: header, name: 'Last-Event-ID' };
  const from = onlyOne(query, 'from');
  return from === null || from === '' ? undefined : { text: from, name: 'from' };
};

/** Milliseconds after which a browser reconnects; not the same for all, since all are cut off by the same stop. */
const retryLine = (): Uint8Array => Buffer.from(`retry: ${2000 + Math.floor(Math.random() * 3000)}\n\n`);
/** Milliseconds of silence after which TCP asks whether the far side is still there: lines of JSON allow no heartbeat. */
const TCP_KEEP_ALIVE_MS = 30_000;

const sendHead = (exchange: HttpExchange, framing: HttpFraming, startId: string | undefined): void => {
  const { request, response, requestId } = exchange;
  request.socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
  response.appendHeader('vary', 'Accept');
  response.writeHead(200, {
    'content-type': framing === 'sse' ? 'text/event-stream' : 'application/json',
    'grpc-metadata-content-type': 'application/grpc',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-request-id': requestId,
    ...(startId === undefined ? {} : { 'x-ledger-watch-id': startId }),
  });
  response.flushHeaders();
};
