import { setImmediate } from 'node:timers/promises';
import type { Method } from '../../domain/resource.ts';
import type { Authenticate } from '../authenticate.ts';
import type { BodyBudget } from '../body.ts';
import { invalid, ApiError, denied } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import { admitted, namingFailures, type Admission } from '../limits/admission.ts';
import type { Positions } from '../positions.ts';
import { lackedRight, mayCall, type AnyMethod } from './authorization.ts';
import {
  isDryRun,
  MAX_TICKET,
  readCommandId,
  readIdempotencyKey,
  readIfMatch,
  ticketOf,
  type CallMetadata,
  type Answer,
  type Call,
  type ListMessage,
} from './call.ts';
import { fieldNames, type Decoded } from './messages.ts';
import type { Principal } from './principal.ts';
import type { KindService, SingleService, SurfaceTable } from './service-table.ts';

type WriteMetadata = Pick<CallMetadata, 'idempotencyKey' | 'commandId' | 'ifRevision' | 'ticket' | 'dryRun'>;

/** What is known of every call, also of one that only reads; `route`: its path with its ids. */
export const readMetadata = (
  { request, requestId, traceparent }: Pick<Exchange, 'request' | 'requestId' | 'traceparent'>,
  route: string,
): CallMetadata => {
  const remoteAddress = request.socket.remoteAddress;
  const userAgent = request.headers['user-agent'];
  return {
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
    verb: request.method ?? '',
    route,
    ...(remoteAddress === undefined ? {} : { remoteAddress }),
    ...(userAgent === undefined ? {} : { userAgent }),
    ...ticketOf(request.headers),
  };
};

/** What headers say of a write, checked before anything else is done. Throws ApiError 400 or 412. */
export const writeMetadata = (
  { request }: { readonly request: Pick<Exchange['request'], 'headers'> },
  kind: string,
): WriteMetadata => {
  const { headers } = request;
  const idempotencyKey = readIdempotencyKey(one(headers['idempotency-key']));
  const commandId = readCommandId(one(headers['x-ledger-command-id']), idempotencyKey);
  const ifRevision = readIfMatch(headers['if-match'], kind);
  const ticket = one(headers['x-ledger-ticket']);
  if (ticket !== undefined && ticket.length > MAX_TICKET)
    throw invalid(`header 'X-Ledger-Ticket' must be at most ${MAX_TICKET} characters`, 'X-Ledger-Ticket');
  return {
    ...(isDryRun(headers) ? { dryRun: true } : {}),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(commandId === undefined ? {} : { commandId }),
    ...(ifRevision === undefined ? {} : { ifRevision }),
    ...(ticket === undefined || ticket === '' ? {} : { ticket }),
  };
};

const one = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;

/** What a call of a kind goes through in every protocol: between the codec that reads it and the handler. */

export type CallServices = {
  readonly authenticate: Authenticate;
  /** Absent: everybody is let in. */
  readonly admission?: Admission;
  /** Absent: bodies take what they need. */
  readonly bodies?: BodyBudget;
  readonly positions: Positions;
};

export type Served<Kind extends Exchange = Exchange> = {
  readonly exchange: Kind;
  readonly table: SurfaceTable;
  readonly service: KindService;
  readonly options: CallServices;
};

/** What of a service every method needs, also where nothing is kept. */
export type ServedMethod<Kind extends Exchange = Exchange> = Omit<Served<Kind>, 'service'> & {
  readonly service: Pick<KindService, 'kind' | 'collection' | 'governed' | 'schema'>;
};

/** What a surface does not offer is told to those who might call it (OSAC). */
export const begin = async (served: Served, method: AnyMethod): Promise<void> => {
  const { exchange, table, service } = served;
  exchange.method = `/osac.${table.surface}.v1.${service.governed.service}/${method}`;
  if (!isStandard(method) || service.methods.includes(method)) return;
  await admit(served, method);
  throw new ApiError('UNIMPLEMENTED', `method '${exchange.method}' is not implemented`);
};

export const isStandard = (method: string): method is Method =>
  method === 'List' || method === 'Get' || method === 'Create' || method === 'Update' || method === 'Delete';

/** Authentication, then authorization (OSAC). */
export const admit = async (
  { exchange, table, service, options }: ServedMethod,
  method: AnyMethod,
): Promise<Principal> => {
  const principal = await admitted(exchange, options);
  const right = [principal, table.surface, service.governed, method] as const;
  if (!mayCall(...right)) throw denied(lackedRight(...right));
  return principal;
};

/** The same for a method without a kind: everybody may call it, or admins alone. */
export const admitSingle = async (
  exchange: Exchange,
  { anonymous }: Pick<SingleService, 'anonymous'>,
  options: CallServices,
): Promise<void> => {
  if (anonymous) return options.admission?.stranger(exchange);
  const principal = await admitted(exchange, options);
  if (!principal.admin) throw denied();
};

/** Rows that count as one request. */
const ROWS_PER_REQUEST = 100;
export const costOfList = ({ limit }: ListMessage): number =>
  Math.max(1, Math.ceil(limit / ROWS_PER_REQUEST));

/** Keeps what was sent for the record of a refusal. */
export const noteSent = ({ exchange, service }: ServedMethod, { present }: Decoded): void => {
  exchange.asked = {
    kind: service.kind,
    ...exchange.asked,
    body: () => present,
    fields: () => fieldNames(service.schema, present),
  };
};

/** Lets others have the thread in the middle of what takes long. */
export const nextTurn = async (exchange: Exchange, { admission }: CallServices): Promise<void> => {
  await setImmediate();
  await admission?.anybody(exchange);
};

/** Refusals of what would have been carried out are recorded; trying leaves no trace. */
export const beginWriting = async ({ exchange, service, options }: ServedMethod): Promise<WriteMetadata> => {
  exchange.writes = true;
  const metadata = await namingFailures(exchange, options, () => writeMetadata(exchange, service.kind));
  if (metadata.dryRun === true) {
    exchange.writes = false;
    exchange.dryRun = true;
  }
  return metadata;
};

/** `sub`: the part of the object that is asked for. */
export const callOf = <Message>(
  { exchange, table, service }: ServedMethod,
  principal: Principal,
  message: Message,
  write: WriteMetadata,
  sub?: string,
): Call<Message> => ({
  surface: table.surface,
  method: exchange.method,
  principal,
  message,
  metadata: {
    ...readMetadata(exchange, pathOf(`${table.prefix}/${service.collection}`, message, sub)),
    ...(exchange.asked?.fields === undefined ? {} : { fields: exchange.asked.fields }),
    ...write,
  },
  get signal() {
    return exchange.signal();
  },
});

/** The path with its id: the same for every protocol and spelling, since it scopes keys. */
const pathOf = (collection: string, message: unknown, sub: string | undefined): string => {
  const { id } = message as { readonly id?: string };
  if (id === undefined) return collection;
  return `${collection}/${encodeURIComponent(id)}${sub === undefined ? '' : `/${sub}`}`;
};

/** A caller may name the position that what it refers to was written at, on another instance perhaps. */
export const waitForMinimum = (
  { exchange, options }: ServedMethod,
  view: string,
): Promise<void> | undefined =>
  options.positions.waitForMinimum(exchange.request.headers['x-ledger-min-position'], view);

/** What an answer says beside its message. */
export const answerHeaders = ({ etag, deletedAt }: Answer): Record<string, string> => ({
  ...(etag === undefined ? {} : { etag }),
  ...(deletedAt === undefined ? {} : { 'x-ledger-deleted-at': deletedAt }),
});

/** The same of a write, once this instance shows it, so that callers read what they wrote. */
export const writtenHeaders = async (
  answer: Answer,
  { positions }: CallServices,
): Promise<Record<string, string>> => {
  const headers = answerHeaders(answer);
  if (answer.position === undefined) return headers;
  await positions.applied(answer.position);
  return { ...headers, 'x-ledger-position': positions.format(answer.position) };
};
