import type { DescMessage } from '@bufbuild/protobuf';
import { setImmediate } from 'node:timers/promises';
import type { Method } from '../../domain/resource.ts';
import type { Authenticate } from '../authenticate.ts';
import { bodyText, LARGE_BODY_BYTES, readBody, type BodyBudget } from '../body.ts';
import { admitted, countingFailures, namingFailures, type Admission } from '../limits/admission.ts';
import { ApiError, denied, methodNotAllowed, urlNotFound } from '../errors.ts';
import { bytesOf, send, sendParts, type Exchange } from '../exchange.ts';
import { RESOURCES_VIEW, TIMELINE_VIEW, type Positions } from '../positions.ts';
import { mayCall, type AnyMethod, type ExtraMethod, type Governed } from './authorization.ts';
import {
  type Answer,
  type Call,
  type CreateMessage,
  type ExtraMessage,
  type Handler,
  type IdMessage,
  type ListMessage,
  type UpdateMessage,
} from './call.ts';
import { fieldNames } from './field-names.ts';
import { decodeMessage, type Decoded, type Surface } from './messages.ts';
import type { Principal } from './principal.ts';
import { queryOf, readAsOf, readListQuery, readPage, readUpdateQuery } from './query.ts';
import { readMetadata, writeMetadata, type WriteMetadata } from './write-metadata.ts';

/**
 * The REST codec of OSAC's surfaces: paths and verbs to methods, query and body to request messages,
 * answers to responses. Knows nothing of any kind but what its service table says.
 */
export type KindService = {
  readonly kind: string;
  readonly collection: string;
  readonly governed: Governed;
  readonly methods: readonly Method[];
  readonly schema: DescMessage;
  readonly list: Handler<ListMessage>;
  readonly get: Handler<IdMessage>;
  readonly create: Handler<CreateMessage>;
  readonly update: Handler<UpdateMessage>;
  readonly remove: Handler<IdMessage>;
  /** Schema rules that hold before anybody asks who calls (OSAC). Throws ApiError. */
  readonly checkCreate: (object: CreateMessage['object']) => void;
  /** `GET …/{id}/{name}`. */
  readonly extras: ReadonlyMap<
    string,
    { readonly method: ExtraMethod; readonly handler: Handler<ExtraMessage> }
  >;
};

/** A method without a kind: `GET P/capabilities`. */
export type SingleService = {
  readonly method: string;
  readonly anonymous: boolean;
  readonly handler: (call: { readonly surface: Surface }) => Answer;
};

export type SurfaceTable = {
  readonly surface: Surface;
  /** `/api/fulfillment/v1`. */
  readonly prefix: string;
  readonly kinds: ReadonlyMap<string, KindService>;
  readonly singles: ReadonlyMap<string, SingleService>;
};

export type RestOptions = {
  readonly authenticate: Authenticate;
  /** Absent: everybody is let in. */
  readonly admission?: Admission;
  /** Absent: bodies take what they need. */
  readonly bodies?: BodyBudget;
  readonly positions: Positions;
};

export type Target = { readonly collection: string; readonly id?: string; readonly sub?: string };

const GRPC_CONTENT = 'application/grpc';

type Served = {
  readonly exchange: Exchange;
  readonly table: SurfaceTable;
  readonly service: KindService;
  readonly options: RestOptions;
};

/** Serves one request of a surface; throws what the caller renders as an error. */
export const serveRest = async (
  exchange: Exchange,
  table: SurfaceTable,
  { collection, id, sub }: Target,
  options: RestOptions,
): Promise<void> => {
  const single = table.singles.get(collection);
  if (single !== undefined && id === undefined) return serveSingle(exchange, table, single, options);
  const service = table.kinds.get(collection);
  if (service === undefined) throw urlNotFound();
  const served = { exchange, table, service, options };
  const verb = exchange.request.method === 'HEAD' ? 'GET' : (exchange.request.method ?? 'GET');
  exchange.asked = { kind: service.kind, ...(id === undefined ? {} : { id }) };
  if (id !== undefined && sub !== undefined) return serveExtra(served, id, sub, verb);
  exchange.route = `${table.prefix}/${service.collection}${id === undefined ? '' : '/{id}'}`;
  if (id === undefined) {
    if (verb === 'GET') return serveList(served);
    if (verb === 'POST') return serveCreate(served);
    throw methodNotAllowed();
  }
  if (verb === 'GET') return serveGet(served, id);
  if (verb === 'PATCH') return serveUpdate(served, id);
  if (verb === 'DELETE') return serveDelete(served, id);
  throw methodNotAllowed();
};

const serveGet = async (served: Served, id: string): Promise<void> => {
  const { exchange, service } = served;
  await begin(served, 'Get');
  const principal = await admit(served, 'Get');
  await waitForMinimum(served, RESOURCES_VIEW);
  const message = { id, ...readAsOf(queryOf(exchange.request.url ?? '')) };
  answerRead(exchange, await service.get(callOf(served, principal, message, {})));
};

const serveDelete = async (served: Served, id: string): Promise<void> => {
  await begin(served, 'Delete');
  const metadata = await beginWriting(served);
  const principal = await admit(served, 'Delete');
  await waitForMinimum(served, RESOURCES_VIEW);
  return answerWrite(served, await served.service.remove(callOf(served, principal, { id }, metadata)));
};

const serveList = async (served: Served): Promise<void> => {
  const { exchange, service } = served;
  await begin(served, 'List');
  const message = readListQuery(exchange.request.url ?? '');
  exchange.cost = costOfList(message);
  const principal = await admit(served, 'List');
  await waitForMinimum(served, RESOURCES_VIEW);
  return answerLong(served, await service.list(callOf(served, principal, message, {})));
};

/** Rows that count as one request. */
const ROWS_PER_REQUEST = 100;
const costOfList = ({ limit }: ListMessage): number => Math.max(1, Math.ceil(limit / ROWS_PER_REQUEST));

const serveCreate = async (served: Served): Promise<void> => {
  const { exchange, service, options } = served;
  await begin(served, 'Create');
  const metadata = await beginWriting(served);
  const object = await countingFailures(exchange, options, async () => {
    const { document } = await decodeBody(served);
    service.checkCreate(document);
    return document;
  });
  const principal = await admit(served, 'Create');
  await waitForMinimum(served, RESOURCES_VIEW);
  return answerWrite(served, await service.create(callOf(served, principal, { object }, metadata)));
};

const serveUpdate = async (served: Served, id: string): Promise<void> => {
  const { exchange, service, options } = served;
  await begin(served, 'Update');
  const metadata = await beginWriting(served);
  const wanted = await namingFailures(exchange, options, () => readUpdateQuery(exchange.request.url ?? ''));
  const { document, present } = await countingFailures(exchange, options, () => decodeBody(served));
  const message: UpdateMessage = { id, object: document, present, ...wanted };
  const principal = await admit(served, 'Update');
  await waitForMinimum(served, RESOURCES_VIEW);
  return answerWrite(served, await service.update(callOf(served, principal, message, metadata)));
};

const serveExtra = async (served: Served, id: string, sub: string, verb: string): Promise<void> => {
  const { exchange, table, service, options } = served;
  const extra = service.extras.get(sub);
  if (extra === undefined) throw urlNotFound();
  exchange.route = `${table.prefix}/${service.collection}/{id}/${sub}`;
  if (verb !== 'GET') throw methodNotAllowed();
  await begin(served, extra.method);
  const principal = await admit(served, extra.method);
  await waitForMinimum(served, extra.method === 'GetTimeline' ? TIMELINE_VIEW : RESOURCES_VIEW);
  const url = exchange.request.url ?? '';
  const message = { id, ...readPage(url, options.positions), ...readAsOf(queryOf(url)) };
  return answerLong(served, await extra.handler(callOf(served, principal, message, {})));
};

const serveSingle = async (
  exchange: Exchange,
  table: SurfaceTable,
  single: SingleService,
  options: RestOptions,
): Promise<void> => {
  exchange.route = `${table.prefix}/${single.method.split('.')[0]?.toLowerCase() ?? ''}`;
  exchange.method = `/osac.${table.surface}.v1.${single.method.replace('.', '/')}`;
  const verb = exchange.request.method;
  if (verb !== 'GET' && verb !== 'HEAD') throw methodNotAllowed();
  if (single.anonymous) options.admission?.stranger(exchange);
  else {
    const principal = await admitted(exchange, options);
    if (!principal.admin) throw denied();
  }
  answerRead(exchange, single.handler({ surface: table.surface }));
};

/** What a surface does not offer is told to those who might call it (OSAC). */
const begin = async (served: Served, method: AnyMethod): Promise<void> => {
  const { exchange, table, service } = served;
  exchange.method = `/osac.${table.surface}.v1.${service.governed.service}/${method}`;
  if (!isStandard(method) || service.methods.includes(method)) return;
  await admit(served, method);
  throw new ApiError('UNIMPLEMENTED', `method '${exchange.method}' is not implemented`);
};

const isStandard = (method: AnyMethod): method is Method =>
  method === 'List' || method === 'Get' || method === 'Create' || method === 'Update' || method === 'Delete';

/** Authentication, then authorization (OSAC). */
const admit = async (
  { exchange, table, service, options }: Served,
  method: AnyMethod,
): Promise<Principal> => {
  const principal = await admitted(exchange, options);
  if (!mayCall(principal, table.surface, service.governed, method)) throw denied();
  return principal;
};

const decodeBody = async ({ exchange, service, options }: Served): Promise<Decoded> => {
  const { bodies: budget, admission } = options;
  const body = await readBody(exchange.request, { budget, onBytes: bytesOf(exchange) });
  const share = admission?.anybody(exchange);
  if (share !== undefined) await share;
  const text = bodyText(body);
  const large = body.length > LARGE_BODY_BYTES;
  if (large) await nextTurn(exchange, options);
  const decoded = decodeMessage(service.schema, text);
  exchange.asked = {
    kind: service.kind,
    ...exchange.asked,
    body: () => decoded.present,
    fields: () => fieldNames(service.schema, decoded.present),
  };
  if (large) await nextTurn(exchange, options);
  return decoded;
};

/** Lets others have the thread in the middle of what takes long. */
const nextTurn = async (exchange: Exchange, { admission }: RestOptions): Promise<void> => {
  await setImmediate();
  await admission?.anybody(exchange);
};

/** Refusals of what would have been carried out are recorded; trying leaves no trace. */
const beginWriting = async ({ exchange, service, options }: Served): Promise<WriteMetadata> => {
  exchange.writes = true;
  const metadata = await namingFailures(exchange, options, () => writeMetadata(exchange, service.kind));
  if (metadata.dryRun === true) {
    exchange.writes = false;
    exchange.dryRun = true;
  }
  return metadata;
};

const callOf = <Message>(
  { exchange, table }: Served,
  principal: Principal,
  message: Message,
  write: WriteMetadata,
): Call<Message> => ({
  surface: table.surface,
  method: exchange.method,
  principal,
  message,
  metadata: {
    ...readMetadata(exchange, pathOf(exchange.route, message)),
    ...(exchange.asked?.fields === undefined ? {} : { fields: exchange.asked.fields }),
    ...write,
  },
  get signal() {
    return exchange.signal();
  },
});

/** The matched route with its id filled in: the same for every spelling of the path, since it scopes keys. */
const pathOf = (route: string, message: unknown): string => {
  const { id } = message as { readonly id?: string };
  return id === undefined ? route : route.replace('{id}', () => encodeURIComponent(id));
};

/** A caller may name the position that what it refers to was written at, on another instance perhaps. */
const waitForMinimum = async ({ exchange, options }: Served, view: string): Promise<void> => {
  await options.positions.waitForMinimum(exchange.request.headers['x-ledger-min-position'], view);
};

const answerRead = (exchange: Exchange, answer: Answer): void => {
  if (answer.etag !== undefined && exchange.request.headers['if-none-match'] === answer.etag) {
    send(exchange, 304, '', { etag: answer.etag });
    return;
  }
  send(exchange, 200, answer.body, headersOf(answer));
};

/** What may be too long for one turn of the thread. */
const answerLong = async ({ exchange, options }: Served, answer: Answer): Promise<void> => {
  if (answer.parts === undefined) answerRead(exchange, answer);
  else await sendParts(exchange, answer.parts, headersOf(answer), () => nextTurn(exchange, options));
};

const answerWrite = async ({ exchange, options }: Served, answer: Answer): Promise<void> => {
  const { positions } = options;
  const headers = headersOf(answer);
  if (answer.position !== undefined) {
    await positions.applied(answer.position);
    headers['x-ledger-position'] = positions.format(answer.position);
  }
  send(exchange, 200, answer.body, headers);
};

const headersOf = (answer: Answer): Record<string, string> => ({
  'content-type': answer.contentType ?? 'application/json',
  'grpc-metadata-content-type': GRPC_CONTENT,
  'cache-control': 'no-store',
  ...(answer.etag === undefined ? {} : { etag: answer.etag }),
  ...(answer.deletedAt === undefined ? {} : { 'x-ledger-deleted-at': answer.deletedAt }),
});
