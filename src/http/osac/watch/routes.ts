import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Clock, Logger, Timers } from '../../../app/ports.ts';
import type { FilterNode } from '../../../projections/filter/ast.ts';
import {
  compareKeys,
  type ChangeKey,
  type ChangeReader,
} from '../../../projections/resources/change-reader.ts';
import type { Authenticate } from '../../authenticate.ts';
import { admitted, type Admission } from '../../limits/admission.ts';
import { ApiError, denied, methodNotAllowed } from '../../errors.ts';
import type { HttpExchange } from '../../exchange.ts';
import { recordLook, type LookServices } from '../../audit-reads.ts';
import { RESOURCES_VIEW, type Positions } from '../../positions.ts';
import { mayCall } from '../authorization.ts';
import { compileFilter } from '../filter/compile.ts';
import { eventTarget } from '../filter/targets.ts';
import type { Surface } from '../messages.ts';
import type { Principal } from '../principal.ts';
import { onlyOne, queryOf } from '../query.ts';
import { readMetadata } from '../write-metadata.ts';
import { audienceOf, type Audience, type WatchedKind } from './audience.ts';
import { stopping } from './endings.ts';
import { httpSink } from './http-sink.ts';
import { createWatchHub, type WatchHub, type WatchSettings } from './hub.ts';
import { createRenderer, type Framing } from './rendered-change.ts';
import { createSessions, type SessionSettings } from './sessions.ts';
import { createWatchIds } from './watch-id.ts';

export const PRIVATE_WATCH = '/api/private/v1/events/watch';
export const PUBLIC_WATCH = '/api/events/v1/events';

export type WatchServices = {
  readonly changes: ChangeReader;
  readonly kinds: readonly WatchedKind[];
  readonly authenticate: Authenticate;
  /** Absent: everybody is let in. */
  readonly admission?: Admission;
  readonly positions: Positions;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly ending?: AbortSignal;
  readonly settings?: Partial<WatchSettings & SessionSettings>;
  readonly looks: LookServices;
};

/** A path whose answer goes on until one side ends it. */
export type WatchRoute = {
  readonly surface: Surface;
  readonly path: string;
  readonly serve: (exchange: HttpExchange) => Promise<void>;
};

export type Watch = { readonly routes: readonly WatchRoute[]; readonly status: WatchHub['status'] };

/**
 * `Events/Watch` of both surfaces: what changes, as newline-delimited JSON in OSAC's form, or as
 * Server-Sent Events for who accepts those. Beyond OSAC it resumes: `from`, or `Last-Event-ID`, after an event's id.
 */
export const createWatch = (services: WatchServices): Watch => {
  const { changes, kinds, positions, clock, timers, logger, ending, settings = {}, looks } = services;
  const ids = createWatchIds(positions);
  const render = createRenderer({
    kinds,
    formatId: ids.format,
    documentBefore: changes.documentBefore,
    nowMs: () => Date.parse(clock.now()),
  });
  const hub = createWatchHub({
    changes,
    render,
    formatId: ids.format,
    timers,
    monotonicMs: () => clock.monotonicMs(),
    logger,
    settings,
  });
  const sessions = createSessions({ authenticate: services.authenticate, timers, logger, settings });
  const filters = createFilterCache(kinds);
  ending?.addEventListener('abort', () => hub.endAll(stopping), { once: true });

  /** Where to begin: behind what the caller has, else behind what there is. */
  const startOf = async (asked: Asked): Promise<ChangeKey> => {
    const given = resumeId(asked);
    if (given === undefined) return changes.newest();
    const from = ids.parse(given.text, given.name);
    await positions.waitForMinimum(positions.format(from.position), RESOURCES_VIEW);
    const pruned = changes.prunedTo();
    if (pruned === undefined || compareKeys(from, pruned) >= 0) return from;
    throw new ApiError(
      'OUT_OF_RANGE',
      `changes right after '${given.name}' are no longer kept: watch again without it, then list to see what is there now`,
      { reason: 'FROM_TOO_OLD', facts: { oldest_id: ids.format(pruned) } },
    );
  };

  /** Changes that were there before the watch are history: an admin who has them shown again looks at it. */
  const recordReplay = async (
    exchange: HttpExchange,
    principal: Principal,
    { after, filterText }: { readonly after: ChangeKey; readonly filterText: string },
  ): Promise<void> => {
    if (compareKeys(after, changes.newest()) >= 0) return;
    const filter =
      filterText === '' ? {} : { filter: { ...(await looks.conceal(principal.subjectId, filterText)) } };
    const look = { what: 'watch', query: { from: ids.format(after), ...filter }, tenants: undefined };
    await recordLook({ principal, metadata: readMetadata(exchange, exchange.route) }, look, looks);
  };

  const serve = async (exchange: HttpExchange, surface: Surface): Promise<void> => {
    const { request, response } = exchange;
    exchange.method = `/osac.${surface}.v1.Events/Watch`;
    const verb = request.method;
    if (verb !== 'GET' && verb !== 'HEAD') throw methodNotAllowed();
    const { authorization, accept } = request.headers;
    const rightsOf = (caller: Principal): Audience => audienceFor(caller, surface, kinds);
    const principal = await admitted(exchange, services, { listens: true });
    const audience = rightsOf(principal);
    const asked = { headers: request.headers, url: request.url ?? '' };
    const filterText = readFilter(asked.url);
    const filter = filterText === '' ? undefined : filters(filterText, surface);
    await positions.waitForMinimum(request.headers['x-ledger-min-position'], RESOURCES_VIEW);
    const after = await startOf(asked);
    if (principal.admin && verb === 'GET') await recordReplay(exchange, principal, { after, filterText });
    if (response.destroyed) return;
    if (ending?.aborted === true) throw stopping(undefined);
    const seat = sessions.enter({
      principal,
      authorization,
      method: exchange.method,
      filter: filterText === '' ? '' : `${surface} ${filterText}`,
      rightsOf: (caller) => rightsOf(caller).key,
      rights: audience.key,
    });
    response.once('close', seat.leave);
    const framing: Framing = /\btext\/event-stream\b/i.test(accept ?? '') ? 'sse' : 'ndjson';
    sendHead(exchange, framing, after.position === '' ? undefined : ids.format(after));
    if (verb === 'HEAD') return void response.end();
    const sink = httpSink(response, timers);
    if (framing === 'sse') sink.write(retryLine());
    const watch = hub.open({ audience, filter, filterText, framing, after, sink });
    seat.take(watch);
    response.once('close', watch.forget);
  };

  const route = (path: string, surface: Surface): WatchRoute => ({
    surface,
    path,
    serve: (exchange) => {
      exchange.route = path;
      return serve(exchange, surface);
    },
  });
  return { routes: [route(PRIVATE_WATCH, 'private'), route(PUBLIC_WATCH, 'public')], status: hub.status };
};

/** Throws ApiError 403. */
const audienceFor = (principal: Principal, surface: Surface, kinds: readonly WatchedKind[]): Audience => {
  if (!mayCall(principal, surface, { service: 'Events' }, 'Watch')) throw denied();
  return audienceOf(principal, surface, kinds);
};

type Asked = { readonly headers: IncomingHttpHeaders; readonly url: string };

/** A browser reconnects with the address it began with, so what it saw last counts more. */
const resumeId = ({ headers, url }: Asked): { readonly text: string; readonly name: string } | undefined => {
  const header = headers['last-event-id'];
  if (typeof header === 'string' && header !== '') return { text: header, name: 'Last-Event-ID' };
  const from = onlyOne(queryOf(url), 'from');
  return from === null || from === '' ? undefined : { text: from, name: 'from' };
};

const readFilter = (url: string): string => onlyOne(queryOf(url), 'filter')?.trim() ?? '';

const KEPT_FILTERS = 1_000;

/** Equal texts give the same compiled filter, so that it is evaluated once for all who sent it. Throws ApiError 400. */
const createFilterCache = (
  kinds: readonly WatchedKind[],
): ((text: string, surface: Surface) => FilterNode) => {
  const kept = new LRUCache<string, FilterNode>({ max: KEPT_FILTERS });
  const targets = { public: eventTarget('public', kinds), private: eventTarget('private', kinds) };
  return (text, surface) => {
    const key = `${surface} ${text}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const compiled = compileFilter(text, targets[surface]);
    kept.set(key, compiled);
    return compiled;
  };
};

/** Milliseconds after which a browser reconnects; not the same for all, since all are cut off by the same stop. */
const retryLine = (): Uint8Array => Buffer.from(`retry: ${2000 + Math.floor(Math.random() * 3000)}\n\n`);
/** Milliseconds of silence after which TCP asks whether the far side is still there: lines of JSON allow no heartbeat. */
const TCP_KEEP_ALIVE_MS = 30_000;

const sendHead = (exchange: HttpExchange, framing: Framing, startId: string | undefined): void => {
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
