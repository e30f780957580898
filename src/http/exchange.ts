import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import {
  EventTooLarge,
  LogDamaged,
  OutcomeUnknown,
  StoreUnavailable,
  StreamDeleted,
  type DamagedAt,
  type UnavailableReason,
} from '../app/log/event-store.ts';
import { ReferencesBusy } from '../app/references/reference-guard.ts';
import { IdempotencyMismatch } from '../app/commands/command.ts';
import type { Clock, Ids, Logger, RecordRejection, RejectionRecord } from '../app/ports.ts';
import type { RequestSource } from '../app/log/metadata.ts';
import type { JsonObject } from '../domain/json.ts';
import { ApiError, ERRORS, errorHeaders, osacErrorBody, problemBody, unavailable } from './errors.ts';
import { readRequestId, readTraceparent, ticketOf } from './osac/call.ts';
import { namelessActor, personOf, type Principal } from './osac/principal.ts';

/** What every protocol knows of a request. Node's own request is one. */
export type RequestSide = {
  readonly headers: IncomingHttpHeaders;
  /** The verb of REST, also where another protocol has none. */
  readonly method?: string | undefined;
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** What every protocol knows of an answer. Node's own response is one. */
export type AnswerSide = {
  /** Everything has left, or the caller has gone. */
  readonly closed: boolean;
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  /** HTTP status, also where the protocol has codes of its own: for log and metrics. */
  readonly statusCode: number;
  setHeader(name: string, value: string): unknown;
  once(event: 'close', listener: () => void): unknown;
};

/**
 * One request and its answer, as admission, the log line, the metrics and the rejection record see it. It is the same
 * for every protocol; `HttpExchange` is that of HTTP.
 */
export type Exchange = {
  readonly request: RequestSide;
  readonly response: AnswerSide;
  readonly startedAt: number;
  readonly requestId: string;
  readonly traceparent: string | undefined;
  /** Template of the matched route, `/api/fulfillment/v1/clusters/{id}`; `unknown` until one matched. */
  route: string;
  /** Called method, `/osac.public.v1.Clusters/Get`; of our own surfaces the path, `/audit.v1/holds/{id}`. */
  method: string;
  /** What was wanted, for the record of the refusal, where the method does not say it: `DELETE /audit.v1/holds/{id}`. */
  command?: string;
  principal: Principal | undefined;
  /** Who called with a good token that may not come in: known for the record of the refusal alone. */
  turnedAway?: Principal;
  /** True for methods that change something: their refusals are recorded. */
  writes: boolean;
  /** True where refusals of reads are recorded as those of writes are. */
  watched?: true;
  /** Milliseconds without progress after which a caller who does not read a complete answer is cut off. */
  readonly slowReaderMs: number;
  /** Counts bytes that wait for the caller to read them; gives back what ends that. Set once the caller is known. */
  holdUnread?: (bytes: number) => () => void;
  /** What it takes of its caller's rate, in requests. Default 1. */
  cost?: number;
  /** Bytes of its body that have come. */
  bodyBytes?: number;
  /** The object that the call is about and what was sent, for the record of a refusal; set as far as it was read. */
  asked?: {
    readonly kind?: string;
    readonly id?: string;
    readonly body?: () => JsonObject;
    /** Names of the fields that it sets: of the service's own ones alone. */
    readonly fields?: () => readonly string[];
  };
  /** True for a write that is only tried: it leaves no trace, not even of who tried. */
  dryRun?: true;
  /** A fault that ended an answer whose status had been sent already. */
  failure?: unknown;
  /** Aborted when the caller goes away; made on first use. */
  readonly signal: () => AbortSignal;
};

export type HttpExchange = Exchange & {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
};

type Opening = {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly nextRequestId: () => string;
  readonly slowReaderMs: number;
  readonly signal: () => AbortSignal;
};

/** Before anything is known but what was sent. */
export const openExchange = <Request extends RequestSide, Response extends AnswerSide>(
  request: Request,
  response: Response,
  { clock, nextRequestId, slowReaderMs, signal }: Opening,
): Exchange & { readonly request: Request; readonly response: Response } => ({
  request,
  response,
  startedAt: clock.monotonicMs(),
  requestId: readRequestId(request.headers, nextRequestId),
  traceparent: readTraceparent(request.headers),
  route: 'unknown',
  method: '',
  principal: undefined,
  writes: false,
  slowReaderMs,
  signal,
});

/** Milliseconds that a caller has by default, see `slowReaderMs`. */
export const SLOW_READER_MS = 30_000;

/** Unique over all instances without asking for randomness on every request. */
export const requestIds = (ids: Ids): (() => string) => {
  const incarnation = ids.uuidv7();
  let count = 0;
  return () => `${incarnation}.${((count += 1)).toString(36)}`;
};

/** Where requests are counted: route templates only, never ids (labels are bounded). */
export type RequestHook = (request: {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  readonly tenant: string | undefined;
  readonly bytes: number;
}) => void;

export type ExchangeServices = {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly recordRejection: RecordRejection;
  readonly onRequest?: RequestHook;
  /** Is told of an event (`<stream>@<revision>`) that is not the one that was recorded, as reading has found. */
  readonly suspect?: (event: string) => void;
};

export const bytesOf =
  (exchange: Exchange) =>
  (bytes: number): void => {
    exchange.bodyBytes = bytes;
  };

const NO_CONTENT_HEADERS: Readonly<Record<string, string>> = {};

/** Sends a complete answer. HEAD gets the same headers without the body (Node drops it). */
export const send = (
  exchange: HttpExchange,
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = NO_CONTENT_HEADERS,
): void => {
  const { response } = exchange;
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    ...headers,
    'content-length': String(typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength),
    'x-request-id': exchange.requestId,
  });
  response.end(body);
  // Otherwise an answer would be kept for as long as its reader likes. Node's own limits follow once it is out.
  if (response.writableLength > 0) {
    response.setTimeout(exchange.slowReaderMs);
    const read = exchange.holdUnread?.(response.writableLength);
    if (read !== undefined) response.once('close', read);
  }
};

/**
 * Sends an answer part by part, no faster than its reader takes it. `nextTurn` lets others have the thread between two
 * parts. A fault in the middle can only break the answer off: its status has been sent.
 */
export const sendParts = async (
  exchange: HttpExchange,
  parts: Iterable<string>,
  headers: Readonly<Record<string, string>>,
  nextTurn: () => Promise<void>,
): Promise<void> => {
  const { request, response } = exchange;
  if (response.headersSent || response.destroyed) return;
  response.writeHead(200, { ...headers, 'x-request-id': exchange.requestId });
  try {
    if (request.method !== 'HEAD')
      for (const part of parts) {
        if (!response.write(part)) await drained(exchange);
        await nextTurn();
        if (response.destroyed) return;
      }
  } catch (error) {
    if (!response.destroyed) exchange.failure = error;
    response.destroy();
    return;
  }
  response.end();
};

/** Writes what comes after the head of an answer, no faster than it is read, and ends it. */
export const writeAll = async (
  exchange: HttpExchange,
  pieces: AsyncIterable<string | Uint8Array>,
): Promise<void> => {
  const { request, response } = exchange;
  if (request.method !== 'HEAD')
    for await (const piece of pieces) {
      if (response.destroyed) return;
      if (!response.write(piece)) await drained(exchange);
    }
  response.end();
};

/** Resolves when the caller has read what was sent, or is gone. */
const drained = ({ response, slowReaderMs, holdUnread }: HttpExchange): Promise<void> =>
  new Promise((resolve) => {
    response.setTimeout(slowReaderMs);
    const read = holdUnread?.(response.writableLength);
    const done = (): void => {
      read?.();
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });

/** `osac-stream`: OSAC's error body as its streams wrap it, `{"error":{…}}`. */
export type ErrorStyle = 'osac' | 'osac-stream' | 'problem';

export const sendError = (
  exchange: HttpExchange,
  failure: unknown,
  style: ErrorStyle,
  services: ExchangeServices,
): void => {
  const error = failed(exchange, failure, services);
  if (error === undefined) return;
  send(exchange, error.status, JSON.stringify(bodyOf(error, style, exchange.requestId)), {
    'content-type': style === 'problem' ? 'application/problem+json' : 'application/json',
    ...errorHeaders(error),
  });
};

/**
 * Every failure leaves through here: catalogue errors as they are, ports' errors translated, bugs as 500. Logs and
 * records what has to be; undefined: nobody is there to be answered.
 */
export const failed = (
  exchange: Exchange,
  failure: unknown,
  services: ExchangeServices,
): ApiError | undefined => {
  const error = asApiError(failure);
  if (error.error === 'INTERNAL') {
    // The caller has gone, and what was done for him was given up: nobody is answered, and nothing is wrong.
    if (exchange.response.destroyed && isAbort(failure)) return undefined;
    services.logger.error(
      { correlationId: exchange.requestId, method: exchange.method, error: describe(failure) },
      'request failed',
    );
  }
  if (error.error === 'DATA_LOSS') {
    const at = suspected(failure, services);
    services.logger.error(
      { correlationId: exchange.requestId, method: exchange.method, ...at },
      `${error.message}; follow ops/runbooks/LedgerAuditTreeMismatch.md`,
    );
  }
  recordRefused(exchange, error, services);
  return error;
};

/** Which event is another one than was recorded; the service is told of it. */
const suspected = (failure: unknown, { suspect }: ExchangeServices): DamagedAt | undefined => {
  const { at } = failure instanceof LogDamaged ? failure : {};
  if (at !== undefined) suspect?.(at.event);
  return at;
};

const bodyOf = (error: ApiError, style: ErrorStyle, requestId: string): object => {
  if (style === 'problem') return problemBody(error, `urn:fulfillment-ledger:request:${requestId}`);
  return style === 'osac' ? osacErrorBody(error) : { error: osacErrorBody(error) };
};

const isAbort = (failure: unknown): boolean => failure instanceof Error && failure.name === 'AbortError';

const describe = (failure: unknown): object =>
  failure instanceof Error
    ? { name: failure.name, message: failure.message, stack: failure.stack }
    : { message: String(failure) };

/** Translates what ports throw into catalogue errors. */
export const asApiError = (failure: unknown): ApiError => {
  if (failure instanceof ApiError) return failure;
  if (failure instanceof StoreUnavailable) return storeUnavailable(failure);
  if (failure instanceof StreamDeleted)
    return new ApiError(
      'DATA_LOSS',
      'the history of this object was deleted from the event store for good, so nothing was stored; the operators of ' +
        'this service must restore the event store from a backup',
      { reason: 'STREAM_DELETED', cause: failure },
    );
  if (failure instanceof LogDamaged) return logDamaged(failure);
  if (failure instanceof ReferencesBusy)
    return unavailable(`${failure.message}; nothing was stored, try again`, 'REFERENCES_BUSY', 1, failure);
  if (failure instanceof OutcomeUnknown) return outcomeUnknown(undefined, failure);
  if (failure instanceof IdempotencyMismatch)
    return new ApiError(
      'IDEMPOTENCY_MISMATCH',
      'this idempotency key was used before with another request; use a new key for a new request',
      { cause: failure },
    );
  if (failure instanceof EventTooLarge)
    return new ApiError(
      'INVALID_ARGUMENT',
      `the object is too large to be stored (${failure.bytes} bytes, at most ${failure.limit})`,
      { reason: 'OBJECT_TOO_LARGE', cause: failure },
    );
  if (failure instanceof URIError)
    return new ApiError('INVALID_ARGUMENT', 'the URL holds an invalid escape sequence', { cause: failure });
  return new ApiError('INTERNAL', 'internal error; operators find its cause in the log by the request id', {
    cause: failure,
  });
};

/** Only what may pass by itself says when to try again. */
const storeUnavailable = (cause: StoreUnavailable): ApiError => {
  const { reason, text, passes } = UNAVAILABLE[cause.reason];
  const advice = passes ? 'try again' : 'the operators of this service must correct that';
  return new ApiError('UNAVAILABLE', `${text}; nothing was stored, ${advice}`, {
    reason,
    ...(passes && { retryAfterSeconds: cause.retryAfterMs / 1000 }),
    cause,
  });
};

const AWAY = { reason: 'STORE_UNAVAILABLE', text: 'the event store does not answer', passes: true };
const lasting = (reason: string, text: string) => ({ reason, text, passes: false });
const UNAVAILABLE: Readonly<Record<UnavailableReason, typeof AWAY>> = {
  down: AWAY,
  closed: AWAY,
  full: { reason: 'STORE_FULL', text: 'the event store has no space left', passes: true },
  denied: lasting('STORE_ACCESS_DENIED', 'the event store denies this service a right that it needs'),
  credentials: lasting(
    'STORE_CREDENTIALS_REFUSED',
    'the event store does not accept the user or password of this service',
  ),
  untrusted: lasting('STORE_UNTRUSTED', 'this service cannot trust the certificate of the event store'),
};

/** Which event it is may be more than the caller may know: of its place nothing can be told but that it is one. */
const logDamaged = (cause: LogDamaged): ApiError =>
  cause.at === undefined
    ? new ApiError(
        'DATA_LOSS',
        'the event log of this service is damaged, so nothing is shown of what was asked for; its operators are alarmed',
        { reason: 'LOG_DAMAGED', cause },
      )
    : new ApiError(
        'DATA_LOSS',
        `the event that is stored at position ${cause.at.position} is not the one that was recorded, so nothing of the request ` +
          'is answered; the operators of this service are alarmed',
        { reason: 'EVENT_CHANGED', facts: { position: cause.at.position }, cause },
      );

/** 504 with the command to repeat: the same key, or, for a call without one, the id under its header. */
export const outcomeUnknown = (
  command: { readonly id: string; readonly keyed: boolean } | undefined,
  cause: unknown,
): ApiError =>
  new ApiError(
    'OUTCOME_UNKNOWN',
    'the outcome of the request is unknown; repeat it unchanged ' +
      (command?.keyed === false ? 'with this X-Ledger-Command-Id header' : 'with the same Idempotency-Key'),
    {
      reason: 'OUTCOME_UNKNOWN',
      retryAfterSeconds: 1,
      ...(command === undefined
        ? {}
        : {
            facts: { command_id: command.id },
            ...(command.keyed ? {} : { headers: { 'x-ledger-command-id': command.id } }),
          }),
      cause,
    },
  );

/** Nobody said no to what was asked. */
const NOT_DECIDED: ReadonlySet<string> = new Set([
  'CANCELLED',
  'RESOURCE_EXHAUSTED',
  'HEADERS_TOO_LARGE',
  'EXPECTATION_FAILED',
]);

/** Refused writes and looks at the history, and every call by somebody unknown or without the right. */
export const recordRefused = (
  exchange: Exchange,
  error: ApiError,
  services: Pick<ExchangeServices, 'recordRejection' | 'clock'>,
): void => {
  const outcome =
    error.error === 'UNAUTHENTICATED'
      ? 'unauthenticated'
      : error.error === 'PERMISSION_DENIED'
        ? 'denied'
        : 'rejected';
  if (error.options.recorded === true) return;
  const decided = error.status < 500 && !NOT_DECIDED.has(error.error);
  if (outcome === 'rejected' && !((exchange.writes || exchange.watched === true) && decided)) return;
  services.recordRejection({
    tenant: exchange.principal?.homeTenant ?? '',
    subjectId: '',
    command: exchange.command ?? exchange.method,
    ...(error.cause instanceof IdempotencyMismatch && { commandId: error.cause.commandId }),
    outcome,
    code: error.reason,
    error: error.error,
    message: error.message,
    ...(error.options.plain === true && { plain: true }),
    at: services.clock.now(),
    correlationId: exchange.requestId,
    ...(exchange.traceparent === undefined ? {} : { traceparent: exchange.traceparent }),
    ...whoAndWhat(exchange),
  });
};

const whoAndWhat = ({
  turnedAway,
  principal = turnedAway,
  asked,
  request,
}: Exchange): Partial<RejectionRecord> => ({
  ...(principal !== undefined && {
    ...whoOf(principal),
    clear: { person: personOf(principal), source: sourceOf(request) },
    ...ticketOf(request.headers),
  }),
  ...(asked?.kind !== undefined && { kind: asked.kind }),
  ...(asked?.id !== undefined && { resourceId: asked.id }),
  ...(asked?.body !== undefined && { body: asked.body }),
  ...(asked?.fields !== undefined && { fields: asked.fields }),
});

const whoOf = (principal: Principal): Pick<RejectionRecord, 'subjectId' | 'actor'> => {
  const actor = namelessActor(principal);
  return { subjectId: actor.subjectId, actor };
};

const sourceOf = ({ socket, headers }: RequestSide): RequestSource => ({
  ...(socket.remoteAddress !== undefined && { ip: socket.remoteAddress }),
  ...(headers['user-agent'] !== undefined && { userAgent: headers['user-agent'] }),
});

export const finish = (exchange: Exchange, services: ExchangeServices): void => {
  const { clock, logger, onRequest } = services;
  const { request, response, principal, traceparent } = exchange;
  const milliseconds = clock.monotonicMs() - exchange.startedAt;
  const method = request.method ?? '';
  // Nobody was there any more to be answered.
  const status = response.headersSent ? response.statusCode : ERRORS.CANCELLED.http;
  onRequest?.({
    method,
    route: exchange.route,
    status,
    seconds: milliseconds / 1000,
    tenant: principal?.homeTenant,
    bytes: exchange.bodyBytes ?? 0,
  });
  if (exchange.failure !== undefined) {
    suspected(exchange.failure, services);
    logger.error(
      { correlationId: exchange.requestId, method: exchange.method, error: describe(exchange.failure) },
      'answer broke off',
    );
  }
  logger.info(
    {
      method,
      route: exchange.route,
      status,
      ms: Math.round(milliseconds * 10) / 10,
      correlationId: exchange.requestId,
      tenant: principal?.homeTenant,
      subject: principal?.subjectId,
      traceId: traceparent?.slice(3, 35),
    },
    'request',
  );
};
