import type { IncomingHttpHeaders } from 'node:http';
import { parseIdempotencyKey } from '../../app/commands/command.ts';
import { isDerivedForm } from '../../app/log/identifiers.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError, invalid } from '../errors.ts';
import type { Surface } from './messages.ts';
import type { Principal } from './principal.ts';

/**
 * What a handler gets: who calls, the request message, what came beside it, and a signal. Nothing here is
 * HTTP: the REST codec fills it from headers and query, a gRPC codec would fill it from its metadata.
 */
export type Call<Message> = {
  readonly surface: Surface;
  /** For error texts and logs: `/osac.public.v1.Clusters/List`. */
  readonly method: string;
  readonly principal: Principal;
  readonly message: Message;
  readonly metadata: CallMetadata;
  readonly signal: AbortSignal;
};

export type CallMetadata = {
  /** Correlation id of everything that follows from this call: `X-Request-Id`, else generated. */
  readonly requestId: string;
  readonly traceparent?: string;
  readonly idempotencyKey?: string;
  /** Repeats exactly this command after an unknown outcome of a call without a key. */
  readonly commandId?: string;
  /** Revision that the caller's copy had (`If-Match`). */
  readonly ifRevision?: number;
  readonly ticket?: string;
  /** Every check and default, no effect at all: nothing is stored, reserved, appended or remembered (OSAC). */
  readonly dryRun?: true;
  /** Verb and path of the call with its ids, the scope of an idempotency key. */
  readonly verb: string;
  readonly route: string;
  readonly remoteAddress?: string;
  readonly userAgent?: string;
  /** Names of the fields that the body sets, for the record of a refusal. */
  readonly fields?: () => readonly string[];
};

export type ListMessage = {
  readonly offset: number;
  readonly limit: number;
  /** As sent; empty texts are left out (OSAC). */
  readonly filter?: string;
  readonly order?: string;
  readonly asOf?: string;
};
export type IdMessage = {
  readonly id: string;
  /** Of what is read, our addition: the moment that is asked about, as sent. */
  readonly asOf?: string;
};
/** A part of one object; what is a list of its own is paged by position. */
export type ExtraMessage = IdMessage & { readonly limit: number; readonly after?: string };
export type CreateMessage = { readonly object: JsonObject };
export type UpdateMessage = {
  readonly id: string;
  readonly object: JsonObject;
  /** The body as sent: says which fields were present, and with `null` or `{}` which are to be cleared. */
  readonly present: JsonObject;
  readonly updateMask?: readonly string[];
  readonly lock: boolean;
  /** True where what is absent may be empty as well: protobuf sends no empty texts, maps and zeros. */
  readonly whole?: true;
};

/** What a handler returns; a streaming method would return an async iterable of these. */
export type Answer = {
  /** The reply message as JSON text, or another representation with its media type. */
  readonly body: string | Uint8Array;
  /** Instead of the body, where that would be long: sent one after the other, as the caller reads them. */
  readonly parts?: Iterable<string>;
  /** Of a list also its documents by themselves, each read when its turn comes. */
  readonly page?: { readonly total: number; readonly documents: Iterable<string> };
  readonly contentType?: string;
  readonly etag?: string;
  readonly position?: string;
  /** Of a repeated write, answered as before: the object was deleted since, ISO. */
  readonly deletedAt?: string;
};

export type Handler<Message> = (call: Call<Message>) => Promise<Answer> | Answer;

/** `"<kind>-<revision>"`: the strong tag of one state of one object. */
export const etagOf = (kind: string, revision: number): string => `"${kind}-${revision}"`;

export const MAX_TICKET = 128;

/** Of a call that is recorded although it writes nothing of its own; one that no write could carry is left out. */
export const ticketOf = (headers: IncomingHttpHeaders): { readonly ticket?: string } => {
  const ticket = headers['x-ledger-ticket'];
  return typeof ticket === 'string' && ticket !== '' && ticket.length <= MAX_TICKET ? { ticket } : {};
};

/** OSAC's header, plain and as its gateway forwards it. */
const DRY_RUN = ['x-dry-run', 'grpc-metadata-x-dry-run'];

/**
 * Whether the call shall only be tried. Throws ApiError 400 for anything but `true` and `false`: carrying out by
 * mistake
 * what was meant as a trial could not be taken back.
 */
export const isDryRun = (headers: IncomingHttpHeaders): boolean =>
  DRY_RUN.map((name) => {
    const header = headers[name];
    if (header === undefined || header === 'false') return false;
    if (header === 'true') return true;
    throw invalid("header 'X-Dry-Run' must be true or false", 'X-Dry-Run');
  }).includes(true);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
/** No address: it stands in events and topics in clear, for as long as they do. */
const REQUEST_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

/** `Idempotency-Key`, see `parseIdempotencyKey`. Throws ApiError 400. */
export const readIdempotencyKey = (header: string | undefined): string | undefined => {
  const parsed = parseIdempotencyKey(header);
  if (!parsed.ok) throw invalid(parsed.message, 'Idempotency-Key');
  return parsed.key;
};

/** `If-Match` with the tag of this kind; `*` and a missing header ask for nothing. Throws ApiError 400 or 412. */
export const readIfMatch = (header: string | undefined, kind: string): number | undefined => {
  if (header === undefined || header.trim() === '*') return undefined;
  const match = /^"([A-Za-z]+)-(\d{1,15})"$/.exec(header.trim());
  if (match === null)
    throw invalid(`header 'If-Match' must hold one ETag as it was answered, or *`, 'If-Match');
  if (match[1] !== kind) throw staleEtag(`the ETag belongs to a ${match[1]}, not to a ${kind}`);
  return Number(match[2]);
};

/** `current`: the object's tag now, so that the caller need not guess what to read and compare. */
export const staleEtag = (message: string, current?: string): ApiError =>
  new ApiError('STALE_ETAG', message, current === undefined ? {} : { headers: { etag: current } });

export const readCommandId = (header: string | undefined, key: string | undefined): string | undefined => {
  if (header === undefined) return undefined;
  if (!UUID.test(header)) throw invalid(`header 'X-Ledger-Command-Id' must be a UUID`, 'X-Ledger-Command-Id');
  if (isDerivedForm(header))
    throw invalid(
      "header 'X-Ledger-Command-Id' must not be a UUID of version 5: such a command is repeated by its Idempotency-Key",
      'X-Ledger-Command-Id',
    );
  if (key !== undefined)
    throw invalid(`send 'Idempotency-Key' or 'X-Ledger-Command-Id', not both`, 'X-Ledger-Command-Id');
  return header.toLowerCase();
};

/** Values that only describe the call are dropped when they are malformed, never refused. */
export const readTraceparent = (headers: IncomingHttpHeaders): string | undefined => {
  const value = headers['traceparent'];
  return typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined;
};

export const readRequestId = (headers: IncomingHttpHeaders, fresh: () => string): string => {
  const value = headers['x-request-id'];
  return typeof value === 'string' && REQUEST_ID.test(value) ? value : fresh();
};
