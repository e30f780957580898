import type { IncomingHttpHeaders } from 'node:http';
import { valueAtPlace } from '../../domain/document-places.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Authenticate } from '../authenticate.ts';
import { bodyText, parseJson, readBody } from '../body.ts';
import { ApiError, denied, invalid, urlNotFound } from '../errors.ts';
import { send, writeAll, type HttpExchange, bytesOf } from '../exchange.ts';
import { admitted, type Admission } from '../limits/admission.ts';
import { isDryRun } from '../osac/call.ts';
import type { Principal } from '../osac/principal.ts';

/** A file that is answered whole or in part, so that a download that broke off can be resumed (RFC 9110 §14). */
type ServedFile = {
  readonly bytes: number;
  readonly contentType: string;
  /** Strong tag, with its quotes. */
  readonly etag: string;
  /** What the file is called when it is saved: letters, digits, dots and hyphens. */
  readonly name: string;
  /**
   * Called once before the answer begins; `handsOut`: whether it is going to have bytes of the file, which answers to HEAD and
   * to who has the file already have not. Throws what is answered instead.
   */
  readonly before?: (handsOut: boolean) => Promise<void>;
  /** Bytes [from, to). */
  readonly read: (from: number, to: number) => AsyncIterable<Uint8Array>;
};

type Part = { readonly from: number; readonly to: number };

/** A failure in the middle ends the connection: whoever asks again for the rest gets it. */
export const sendFile = async (exchange: HttpExchange, file: ServedFile): Promise<void> => {
  const { request, response, requestId } = exchange;
  const common = {
    etag: file.etag,
    'accept-ranges': 'bytes',
    'cache-control': 'no-store',
    'content-type': file.contentType,
    'content-disposition': `attachment; filename="${file.name}"`,
  };
  if (request.headers['if-none-match'] === file.etag) {
    await file.before?.(false);
    send(exchange, 304, '', common);
    return;
  }
  const part = partOf(request.headers, file);
  const { from, to } = part ?? { from: 0, to: file.bytes };
  await file.before?.(request.method !== 'HEAD');
  response.writeHead(part === undefined ? 200 : 206, {
    ...common,
    'content-length': String(to - from),
    'x-request-id': requestId,
    ...(part === undefined ? {} : { 'content-range': `bytes ${from}-${to - 1}/${file.bytes}` }),
  });
  try {
    await writeAll(exchange, file.read(from, to));
  } catch (error) {
    if (!exchange.signal().aborted) exchange.failure = error;
    response.destroy();
  }
};

/** Undefined: the whole file. Several ranges at once are answered with the whole. Throws ApiError 416. */
const partOf = (
  headers: HttpExchange['request']['headers'],
  { bytes, etag }: ServedFile,
): Part | undefined => {
  const condition = headers['if-range'];
  if (headers.range === undefined || (condition !== undefined && condition !== etag)) return undefined;
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.range) ?? [];
  if (first === '' && last === '') return undefined;
  const from = first === '' ? Math.max(0, bytes - Number(last)) : Number(first);
  const to = first === '' || last === '' ? bytes : Math.min(bytes, Number(last) + 1);
  if (from < to) return { from, to };
  throw new ApiError('RANGE_NOT_SATISFIABLE', `the file has ${bytes} bytes: there is nothing in that range`, {
    headers: { 'content-range': `bytes */${bytes}` },
  });
};

/**
 * Our own surface `/api/ledger/v1` (provider staff, but for routes that say otherwise): JSON in, JSON or newline-delimited JSON out, errors as
 * RFC 9457 problem documents. A route is a row: verb, path template, handler.
 */
export type LedgerRoute = {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  /** Relative to the prefix: `orders/{id}/retry`; a last `{name*}` stands for all that follows. */
  readonly path: string;
  /** Names of the fields that its body may have, dotted. Default: none is told. */
  readonly fields?: readonly string[];
  /** Who may use it, where that is not whoever may use the surface. Throws ApiError 403. */
  readonly mayEnter?: (principal: Principal) => void;
  readonly handler: (call: LedgerCall) => Promise<LedgerAnswer> | LedgerAnswer;
};

export type LedgerCall = {
  readonly principal: Principal;
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** `{}` when the request has no body. */
  readonly body: JsonObject;
  /** Names of the fields that it sets, for the record of a refusal. */
  readonly fields?: () => readonly string[];
  readonly requestId: string;
  readonly traceparent: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly verb: string;
  readonly route: string;
  readonly headers?: IncomingHttpHeaders;
  readonly remoteAddress?: string | undefined;
  readonly signal: AbortSignal;
  /** Aborted when the service stops, see `HttpAppOptions.ending`. */
  readonly ending?: AbortSignal | undefined;
};

type Answered = Readonly<Record<string, string>>;

/**
 * A value is answered as JSON; lines as newline-delimited JSON, sent as they come until they end; pieces are the text of an
 * answer of any type; bytes are an answer that is there already; of a file, parts may be fetched.
 */
export type LedgerAnswer =
  | {
      /** By the schema of the answer; what is undefined is left out. */
      readonly json: object;
      readonly headers?: Answered;
      /** Default: 200. */
      readonly status?: 200 | 202;
    }
  | {
      readonly bytes: string | Uint8Array;
      readonly contentType: string;
      readonly headers?: Answered;
    }
  | { readonly file: ServedFile }
  | { readonly lines: AsyncIterable<object> }
  | {
      readonly pieces: AsyncIterable<string>;
      readonly contentType: string;
      readonly headers?: Answered;
    };

type Matched = { readonly route: LedgerRoute; readonly path: Readonly<Record<string, string>> };

export const serveLedger = (
  prefix: string,
  routes: readonly LedgerRoute[],
  {
    authenticate,
    admission,
    ending,
    name = 'ledger.v1',
    mayEnter = onlyAdmins,
    watched = false,
    about = () => ({}),
  }: {
    readonly authenticate: Authenticate;
    /** Of the surface, in names of methods. */
    readonly name?: string;
    /** Throws ApiError 403. */
    readonly mayEnter?: (principal: Principal) => void;
    /** True: every call that is refused is recorded, also one that only reads. */
    readonly watched?: boolean;
    /** The object that a call is about, by its template and the values of the names in it. */
    readonly about?: (
      template: string,
      path: Readonly<Record<string, string>>,
    ) => { readonly kind?: string; readonly id?: string };
    readonly admission?: Admission;
    readonly ending?: AbortSignal | undefined;
  },
): ((exchange: HttpExchange) => Promise<void>) => {
  const templates = routes.map((route) => ({ route, segments: route.path.split('/') }));

  const match = (pathname: string): readonly Matched[] => {
    const wanted = pathname
      .slice(prefix.length + 1)
      .split('/')
      .map((segment) => decodeURIComponent(segment));
    return templates.flatMap(({ route, segments }) => {
      const path = fit(segments, wanted);
      return path === undefined ? [] : [{ route, path }];
    });
  };

  const enter = async (exchange: HttpExchange, assertMay = mayEnter): Promise<Principal> => {
    const principal = await admitted(exchange, { authenticate, admission });
    assertMay(principal);
    return principal;
  };

  return async (exchange) => {
    const url = exchange.request.url ?? '';
    const at = url.indexOf('?');
    const candidates = match(at < 0 ? url : url.slice(0, at));
    const verb = exchange.request.method === 'HEAD' ? 'GET' : exchange.request.method;
    const wanted = candidates.find((candidate) => candidate.route.verb === verb);
    const meant = wanted ?? candidates[0];
    if (watched) exchange.watched = true;
    if (watched || meant !== undefined) {
      exchange.method = `/${name}/${meant?.route.path ?? ''}`;
      exchange.command = `${exchange.request.method ?? ''} ${exchange.method}`;
    }
    // What is recorded has to be somebody's.
    if (wanted === undefined && watched) await enter(exchange);
    if (meant === undefined) throw urlNotFound();
    exchange.route = `${prefix}/${meant.route.path}`;
    exchange.asked = about(meant.route.path, meant.path);
    if (wanted === undefined) throw verbNotAllowed(candidates.map((candidate) => candidate.route.verb));
    const { route, path } = wanted;
    exchange.writes = route.verb !== 'GET';
    const principal = await enter(exchange, route.mayEnter);
    if (exchange.writes && isDryRun(exchange.request.headers)) throw cannotBeTried();
    const body = route.verb === 'POST' ? await countedObject(exchange, principal, admission) : {};
    const { fields } = route;
    if (route.verb === 'POST')
      exchange.asked = {
        ...exchange.asked,
        body: () => body,
        ...(fields === undefined ? {} : { fields: () => namesIn(body, fields) }),
      };
    const answer = await route.handler({
      principal,
      path,
      query: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)),
      body,
      ...(exchange.asked.fields === undefined ? {} : { fields: exchange.asked.fields }),
      requestId: exchange.requestId,
      traceparent: exchange.traceparent,
      idempotencyKey: headerOf(exchange, 'idempotency-key'),
      verb: route.verb,
      route: exchange.route.replace(/\{(\w+)\*?\}/g, (_whole, name: string) =>
        encodeURIComponent(path[name] ?? ''),
      ),
      headers: exchange.request.headers,
      remoteAddress: exchange.request.socket.remoteAddress,
      signal: exchange.signal(),
      ending,
    });
    if ('json' in answer) sendWhole(exchange, JSON.stringify(answer.json), 'application/json', answer);
    else if ('bytes' in answer) sendWhole(exchange, answer.bytes, answer.contentType, answer);
    else if ('file' in answer) await sendFile(exchange, answer.file);
    else if ('pieces' in answer) await sendPieces(exchange, answer);
    else await sendLines(exchange, answer.lines);
  };
};

/** Those of the known names that the body sets: any other is the caller's own word. */
const namesIn = (body: JsonObject, known: readonly string[]): readonly string[] =>
  known.filter((name) => valueAtPlace(body, name.split('.')) !== undefined);

const onlyAdmins = ({ admin }: Principal): void => {
  if (!admin) throw denied('only provider admins may use this surface');
};

/** Ignoring the wish would carry out what was only to be tried. */
const cannotBeTried = (): ApiError =>
  new ApiError('UNIMPLEMENTED', 'operators’ acts have no dry run; nothing was done', {
    reason: 'NO_DRY_RUN',
  });

const headerOf = (exchange: HttpExchange, name: string): string | undefined => {
  const value = exchange.request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
};

/** Values of `{name}` segments, or undefined when the path does not fit the template. */
const fit = (segments: readonly string[], wanted: readonly string[]): Record<string, string> | undefined => {
  const open = segments.at(-1)?.endsWith('*}') === true;
  if (open ? wanted.length < segments.length : segments.length !== wanted.length) return undefined;
  const values: Record<string, string> = {};
  for (const [i, segment] of segments.entries()) {
    if (segment.endsWith('*}')) {
      values[segment.slice(1, -2)] = wanted.slice(i).join('/');
      break;
    }
    const value = wanted[i] ?? '';
    if (segment.startsWith('{')) {
      if (value === '') return undefined;
      values[segment.slice(1, -1)] = value;
    } else if (segment !== value) return undefined;
  }
  return values;
};

const verbNotAllowed = (allowed: readonly string[]): ApiError =>
  new ApiError('METHOD_NOT_ALLOWED', `only ${allowed.join(' and ')} may be used here`, {
    headers: { allow: allowed.join(', ') },
  });

/** What operators send is small. */
const MAX_ADMIN_BODY_BYTES = 64 * 1024;

/** A body counts for its caller whatever becomes of it. */
const countedObject = async (
  exchange: HttpExchange,
  principal: Principal,
  admission: Admission | undefined,
): Promise<JsonObject> => {
  try {
    return await readObject(exchange);
  } finally {
    admission?.countBody(exchange, principal);
  }
};

/** Unlike OSAC's surfaces, ours insist on JSON: another content type is 415. */
const readObject = async (exchange: HttpExchange): Promise<JsonObject> => {
  const body = await readBody(exchange.request, { limit: MAX_ADMIN_BODY_BYTES, onBytes: bytesOf(exchange) });
  if (body.length === 0) return {};
  const type = (exchange.request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (type !== 'application/json' && !/^application\/[a-z0-9.-]+\+json$/.test(type))
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'the content type must be application/json');
  const value = parseJson(bodyText(body));
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('the request body must be a JSON object');
  return value;
};

const sendWhole = (
  exchange: HttpExchange,
  body: string | Uint8Array,
  contentType: string,
  { headers = {}, status = 200 }: { readonly headers?: Answered; readonly status?: 200 | 202 },
): void => {
  send(exchange, status, body, { 'content-type': contentType, 'cache-control': 'no-store', ...headers });
};

const sendLines = async (exchange: HttpExchange, lines: AsyncIterable<object>): Promise<void> => {
  const { response, requestId } = exchange;
  response.writeHead(200, {
    'content-type': 'application/x-ndjson',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-request-id': requestId,
  });
  response.flushHeaders();
  await writeAll(exchange, textOf(exchange, lines));
};

/** A failure ends with an error line. */
async function* textOf(exchange: HttpExchange, lines: AsyncIterable<object>): AsyncGenerator<string> {
  try {
    for await (const line of lines) yield `${JSON.stringify(line)}\n`;
  } catch (error) {
    if (exchange.signal().aborted) return;
    const known = error instanceof ApiError;
    if (!known) exchange.failure = error;
    yield `${JSON.stringify({ error: known ? error.message : 'an internal error ended this answer' })}\n`;
  }
}

/** A failure ends the connection, so that nobody takes what was sent for the whole answer. */
const sendPieces = async (
  exchange: HttpExchange,
  { pieces, contentType, headers = {} }: Extract<LedgerAnswer, { readonly pieces: unknown }>,
): Promise<void> => {
  const { response, requestId } = exchange;
  response.writeHead(200, {
    'content-type': contentType,
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...headers,
  });
  try {
    await writeAll(exchange, pieces);
  } catch (error) {
    exchange.failure = error;
    response.destroy();
  }
};
