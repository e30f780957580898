import { bodyText, LARGE_BODY_BYTES, readBody } from '../body.ts';
import { methodNotAllowed, urlNotFound } from '../errors.ts';
import { bytesOf, send, sendParts, type HttpExchange } from '../exchange.ts';
import { countingFailures, namingFailures } from '../limits/admission.ts';
import { RESOURCES_VIEW, TIMELINE_VIEW } from '../positions.ts';
import type { Answer, UpdateMessage } from './call.ts';
import { decodeMessage, type Decoded } from './messages.ts';
import { queryOf, readAsOf, readListQuery, readPage, readUpdateQuery } from './query.ts';
import {
  admit,
  admitSingle,
  answerHeaders,
  begin,
  beginWriting,
  callOf,
  costOfList,
  nextTurn,
  noteSent,
  waitForMinimum,
  writtenHeaders,
  type CallServices,
  type Served,
  type ServedMethod,
} from './served.ts';
import type { ActionService, SingleService, SurfaceTable } from './service-table.ts';

/**
 * The REST codec of OSAC's surfaces: paths and verbs to methods, query and body to request messages,
 * answers to responses. Knows nothing of any kind but what its service table says.
 */
export type Target = { readonly collection: string; readonly id?: string; readonly sub?: string };

const GRPC_CONTENT = 'application/grpc';

type RestCall = Served<HttpExchange>;

/** Serves one request of a surface; throws what the caller renders as an error. */
export const serveRest = async (
  exchange: HttpExchange,
  table: SurfaceTable,
  { collection, id, sub }: Target,
  options: CallServices,
): Promise<void> => {
  const single = table.singles.get(collection);
  if (single !== undefined && id === undefined) return serveSingle(exchange, table, single, options);
  const action = table.actions?.get(collection);
  if (action !== undefined && id === undefined) return serveAction(exchange, table, action, options);
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

const serveGet = async (served: RestCall, id: string): Promise<void> => {
  const { exchange, service } = served;
  await begin(served, 'Get');
  const principal = await admit(served, 'Get');
  await waitForMinimum(served, RESOURCES_VIEW);
  const message = { id, ...readAsOf(queryOf(exchange.request.url ?? '')) };
  answerRead(exchange, await service.get(callOf(served, principal, message, {})));
};

const serveDelete = async (served: RestCall, id: string): Promise<void> => {
  await begin(served, 'Delete');
  const metadata = await beginWriting(served);
  const principal = await admit(served, 'Delete');
  await waitForMinimum(served, RESOURCES_VIEW);
  return answerWrite(served, await served.service.remove(callOf(served, principal, { id }, metadata)));
};

const serveList = async (served: RestCall): Promise<void> => {
  const { exchange, service } = served;
  await begin(served, 'List');
  const message = readListQuery(exchange.request.url ?? '');
  exchange.cost = costOfList(message);
  const principal = await admit(served, 'List');
  await waitForMinimum(served, RESOURCES_VIEW);
  return answerLong(served, await service.list(callOf(served, principal, message, {})));
};

const serveCreate = async (served: RestCall): Promise<void> => {
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

const serveUpdate = async (served: RestCall, id: string): Promise<void> => {
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

const serveExtra = async (served: RestCall, id: string, sub: string, verb: string): Promise<void> => {
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
  return answerLong(served, await extra.handler(callOf(served, principal, message, {}, sub)));
};

const serveSingle = async (
  exchange: HttpExchange,
  table: SurfaceTable,
  single: SingleService,
  options: CallServices,
): Promise<void> => {
  exchange.route = `${table.prefix}/${single.method.split('.')[0]?.toLowerCase() ?? ''}`;
  exchange.method = `/osac.${table.surface}.v1.${single.method.replace('.', '/')}`;
  const verb = exchange.request.method;
  if (verb !== 'GET' && verb !== 'HEAD') throw methodNotAllowed();
  await admitSingle(exchange, single, options);
  answerRead(exchange, single.handler({ surface: table.surface }));
};

const serveAction = async (
  exchange: HttpExchange,
  table: SurfaceTable,
  service: ActionService,
  options: CallServices,
): Promise<void> => {
  const served = { exchange, table, service, options };
  exchange.route = `${table.prefix}/${service.collection}`;
  exchange.method = `/osac.${table.surface}.v1.${service.governed.service}/Create`;
  if (exchange.request.method !== 'POST') throw methodNotAllowed();
  const metadata = await beginWriting(served);
  const { document: object } = await countingFailures(exchange, options, () => decodeBody(served));
  const principal = await admit(served, 'Create');
  await waitForMinimum(served, RESOURCES_VIEW);
  answerRead(exchange, await service.handler(callOf(served, principal, { object }, metadata)));
};

const decodeBody = async (served: ServedMethod<HttpExchange>): Promise<Decoded> => {
  const { exchange, service, options } = served;
  const { bodies: budget, admission } = options;
  const body = await readBody(exchange.request, { budget, onBytes: bytesOf(exchange) });
  const share = admission?.anybody(exchange);
  if (share !== undefined) await share;
  const text = bodyText(body);
  const large = body.length > LARGE_BODY_BYTES;
  if (large) await nextTurn(exchange, options);
  const decoded = decodeMessage(service.schema, text);
  noteSent(served, decoded);
  if (large) await nextTurn(exchange, options);
  return decoded;
};

const answerRead = (exchange: HttpExchange, answer: Answer): void => {
  if (answer.etag !== undefined && exchange.request.headers['if-none-match'] === answer.etag) {
    send(exchange, 304, '', { etag: answer.etag });
    return;
  }
  send(exchange, 200, answer.body, headersOf(answer));
};

/** What may be too long for one turn of the thread. */
const answerLong = async ({ exchange, options }: RestCall, answer: Answer): Promise<void> => {
  if (answer.parts === undefined) answerRead(exchange, answer);
  else await sendParts(exchange, answer.parts, headersOf(answer), () => nextTurn(exchange, options));
};

const answerWrite = async ({ exchange, options }: RestCall, answer: Answer): Promise<void> => {
  const headers = await writtenHeaders(answer, options);
  send(exchange, 200, answer.body, { ...headersOf(answer), ...headers });
};

const headersOf = (answer: Answer): Record<string, string> => ({
  'content-type': answer.contentType ?? 'application/json',
  'grpc-metadata-content-type': GRPC_CONTENT,
  'cache-control': 'no-store',
  ...answerHeaders(answer),
});
