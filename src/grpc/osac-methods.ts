import { createRegistry, type DescMethod, type Message } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { files } from '../gen/osac/files.ts';
import { ApiError, invalid } from '../http/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { namingFailures } from '../http/limits/admission.ts';
import type { Answer, UpdateMessage } from '../http/osac/call.ts';
import type { Surface } from '../http/osac/messages.ts';
import { listMessage, maskOf } from '../http/osac/query.ts';
import {
  admit,
  admitSingle,
  answerHeaders,
  begin,
  beginWriting,
  callOf,
  costOfList,
  isStandard,
  nextTurn,
  noteSent,
  waitForMinimum,
  writtenHeaders,
  type CallServices,
  type Served,
  type ServedMethod,
} from '../http/osac/served.ts';
import type {
  ActionService,
  KindService,
  SingleService,
  StreamService,
  SurfaceTable,
} from '../http/osac/service-table.ts';
import { RESOURCES_VIEW } from '../http/positions.ts';
import { documentOf, encodeStored, encodeText, numberOf, withZerosOfEntries, wrapped } from './documents.ts';
import {
  NOTHING,
  pathOf,
  type GrpcMethod,
  type ReadRequest,
  type Reply,
  type UnaryMethod,
} from './method.ts';
import { MAX_MESSAGE_BYTES } from './protocol.ts';

/** Every request of OSAC's services has some of these fields. */
type Sent = Partial<{
  readonly id: string;
  readonly object: Message & { readonly id?: string };
  readonly offset: number;
  readonly limit: number;
  readonly filter: string;
  readonly order: string;
  readonly updateMask: FieldMask;
  readonly lock: boolean;
}>;

type Asked = { readonly desc: DescMethod; readonly read: () => Promise<Sent> };
type Call = Served & Asked;
/** A call of a service of which not every one is a kind. */
type AnyCall = ServedMethod & Asked;

const registry = createRegistry(...files);

/**
 * The methods of OSAC's services, by their paths: each one that its descriptor declares and a surface's table or a
 * stream serves. It knows a kind by its table alone.
 */
export const osacMethods = (
  surfaces: readonly SurfaceTable[],
  streams: readonly StreamService[],
  options: CallServices,
): readonly GrpcMethod[] => [
  ...surfaces.flatMap((table) => [
    ...[...table.kinds.values()].flatMap((service) => kindMethods(table, service, options)),
    ...[...table.singles.values()].flatMap((single) => singleMethods(table, single, options)),
    ...[...(table.actions?.values() ?? [])].flatMap((action) => actionMethods(table, action, options)),
  ]),
  ...streams.flatMap((stream) => streamMethods(stream)),
];

const methodsOf = (surface: Surface, service: string): readonly DescMethod[] =>
  registry.getService(`osac.${surface}.v1.${service}`)?.methods ?? [];

/** The method of this name, `Events.Watch`, where the surface declares it. */
const described = (surface: Surface, method: string): readonly DescMethod[] => {
  const [service = '', name = ''] = method.split('.');
  return methodsOf(surface, service).filter((desc) => desc.name === name);
};

/** The verbs of REST, which scope idempotency keys in every protocol. */
const VERBS: Readonly<Record<string, string>> = { Create: 'POST', Update: 'PATCH', Delete: 'DELETE' };

const kindMethods = (
  table: SurfaceTable,
  service: KindService,
  options: CallServices,
): readonly UnaryMethod[] =>
  methodsOf(table.surface, service.governed.service).flatMap((desc) => {
    const serve = servedBy(service, desc);
    if (serve === undefined) return [];
    return [
      {
        desc,
        verb: VERBS[desc.name] ?? 'GET',
        serve: (exchange: Exchange, readRequest: ReadRequest) => {
          exchange.asked = { kind: service.kind };
          return serve({ exchange, table, service, options, desc, read: () => only(readRequest) });
        },
      },
    ];
  });

type Serve = (call: Call) => Promise<Reply>;

/** What is checked before anybody asks who calls (OSAC). */
const checked = <Checked>(call: AnyCall, read: (sent: Sent) => Checked): Promise<Checked> =>
  namingFailures(call.exchange, call.options, async () => read(await call.read()));

const servedBy = (service: KindService, desc: DescMethod): Serve | undefined => {
  if (isStandard(desc.name)) return STANDARD[desc.name];
  if (desc.name === 'Signal') return signal;
  const extra = [...service.extras].find(([, { method }]) => method === desc.name);
  return extra === undefined ? undefined : (call) => serveExtra(call, extra[0]);
};

const only = async (read: ReadRequest): Promise<Sent> => {
  const message = await read();
  if (message === undefined) throw invalid('the request has no message');
  return message as Message & Sent;
};

const get: Serve = async (call) => {
  await begin(call, 'Get');
  const message = await checked(call, ({ id }) => ({ id: identifier(call, id), ...asOf(call) }));
  const principal = await admit(call, 'Get');
  await waitForMinimum(call, RESOURCES_VIEW);
  return objectReply(call, await call.service.get(callOf(call, principal, message, {})));
};

const list: Serve = async (call) => {
  await begin(call, 'List');
  const message = await checked(call, (sent) => ({ ...listMessage(sent), ...asOf(call) }));
  call.exchange.cost = costOfList(message);
  const principal = await admit(call, 'List');
  await waitForMinimum(call, RESOURCES_VIEW);
  return listReply(call, await call.service.list(callOf(call, principal, message, {})));
};

const create: Serve = async (call) => {
  await begin(call, 'Create');
  const metadata = await beginWriting(call);
  const object = await checked(call, (sent) => {
    const document = sentObject(call, sent);
    call.service.checkCreate(document);
    return document;
  });
  const principal = await admit(call, 'Create');
  await waitForMinimum(call, RESOURCES_VIEW);
  return writeReply(call, await call.service.create(callOf(call, principal, { object }, metadata)));
};

const update: Serve = async (call) => {
  await begin(call, 'Update');
  const metadata = await beginWriting(call);
  const message = await checked(call, (sent): UpdateMessage => {
    const object = sentObject(call, sent);
    const id = identifier(call, sent.object?.id);
    const mask = maskOf(sent.updateMask?.paths ?? []);
    const lock = sent.lock === true;
    if (sent.object === undefined || mask.updateMask === undefined)
      return { id, object, present: object, whole: true, lock };
    const present = withZerosOfEntries(call.service.schema, sent.object, object);
    return { id, object, present, ...mask, lock };
  });
  const principal = await admit(call, 'Update');
  await waitForMinimum(call, RESOURCES_VIEW);
  return writeReply(call, await call.service.update(callOf(call, principal, message, metadata)));
};

const remove: Serve = async (call) => {
  await begin(call, 'Delete');
  const metadata = await beginWriting(call);
  const id = await checked(call, (sent) => identifier(call, sent.id));
  const principal = await admit(call, 'Delete');
  await waitForMinimum(call, RESOURCES_VIEW);
  const answer = await call.service.remove(callOf(call, principal, { id }, metadata));
  return { message: NOTHING, headers: await writtenHeaders(answer, call.options) };
};

/** `Signal`: a controller says that something about an object has changed outside. Its workflow looks at the hub at once. */
const signal: Serve = async (call) => {
  const { exchange, table, service } = call;
  exchange.method = `/osac.${table.surface}.v1.${service.governed.service}/Signal`;
  const message = await checked(call, ({ id }) => ({ id: identifier(call, id) }));
  const principal = await admit(call, 'Get');
  if (!principal.admin) throw new ApiError('PERMISSION_DENIED', 'permission denied');
  await waitForMinimum(call, RESOURCES_VIEW);
  await service.get(callOf(call, principal, message, {}));
  table.signalled(service.kind, message.id);
  return { message: NOTHING, headers: {} };
};

const STANDARD = { Get: get, List: list, Create: create, Update: update, Delete: remove };

/** A part of one object: the one text of its answer. */
const serveExtra = async (call: Call, sub: string): Promise<Reply> => {
  const extra = call.service.extras.get(sub);
  if (extra === undefined) throw new TypeError(`nothing answers ${sub}`);
  await begin(call, extra.method);
  const message = await checked(call, ({ id }) => ({ id: identifier(call, id), limit: 0, ...asOf(call) }));
  const principal = await admit(call, extra.method);
  await waitForMinimum(call, RESOURCES_VIEW);
  const answer = await extra.handler(callOf(call, principal, message, {}, sub));
  const field = call.desc.output.fields[0];
  if (field === undefined) throw new TypeError(`${call.desc.output.typeName} has no field`);
  return { message: wrapped(field.number, Buffer.from(answer.body)), headers: answerHeaders(answer) };
};

const identifier = ({ exchange }: Call, id: string | undefined): string => {
  if (id === undefined || id === '') throw invalid('identifier is mandatory', 'id');
  exchange.asked = { ...exchange.asked, id };
  return id;
};

const sentObject = (call: AnyCall, { object }: Sent) => {
  if (object === undefined) throw invalid('object is mandatory', 'object');
  const document = documentOf(call.service.schema, object);
  noteSent(call, { document, present: document });
  return document;
};

/** The moment of the past that a read asks about. */
const asOf = ({ exchange }: Call): { readonly asOf?: string } => {
  const text = exchange.request.headers['x-ledger-as-of'];
  return typeof text === 'string' && text !== '' ? { asOf: text } : {};
};

const objectReply = ({ service, desc }: Call, answer: Answer): Reply => ({
  message: wrapped(numberOf(desc.output, 'object'), encodeStored(service.schema, String(answer.body))),
  headers: answerHeaders(answer),
});

const writeReply = async (call: Call, answer: Answer): Promise<Reply> => {
  const { service, desc, options } = call;
  const headers = await writtenHeaders(answer, options);
  const text = String(answer.body);
  const message = service.wrapsReplies
    ? encodeText(desc.output, text)
    : wrapped(numberOf(desc.output, 'object'), encodeText(service.schema, text));
  return { message, headers };
};

/** Characters of documents that are encoded in one turn of the thread. */
const CHARACTERS_AT_ONCE = 64 * 1024;
/** Room for `size`, `total` and what frames the message. */
const LIST_HEAD_BYTES = 32;

/** A page ends at the last whole object that the message has room for: `size` says how many there are. */
const listReply = async ({ exchange, service, desc, options }: Call, answer: Answer): Promise<Reply> => {
  const { total, documents } = answer.page ?? { total: 0, documents: [] };
  const items = new BinaryWriter();
  const item = numberOf(desc.output, 'items');
  let [size, bytes, characters] = [0, LIST_HEAD_BYTES, 0];
  for (const text of documents) {
    const encoded = encodeStored(service.schema, text);
    bytes += encoded.byteLength + LIST_HEAD_BYTES;
    if (bytes > MAX_MESSAGE_BYTES) break;
    items.tag(item, WireType.LengthDelimited).bytes(encoded);
    size += 1;
    characters += text.length;
    if (characters < CHARACTERS_AT_ONCE) continue;
    characters = 0;
    await nextTurn(exchange, options);
  }
  const head = new BinaryWriter();
  if (size > 0) head.tag(numberOf(desc.output, 'size'), WireType.Varint).int32(size);
  if (total > 0) head.tag(numberOf(desc.output, 'total'), WireType.Varint).int32(total);
  return { message: Buffer.concat([head.finish(), items.finish()]), headers: answerHeaders(answer) };
};

const singleMethods = (
  { surface }: SurfaceTable,
  single: SingleService,
  options: CallServices,
): readonly UnaryMethod[] => {
  return described(surface, single.method).map((desc) => ({
    desc,
    verb: 'GET',
    serve: async (exchange: Exchange, read: ReadRequest) => {
      exchange.method = pathOf(desc);
      await namingFailures(exchange, options, () => only(read));
      await admitSingle(exchange, single, options);
      const answer = single.handler({ surface });
      return { message: encodeText(desc.output, String(answer.body)), headers: answerHeaders(answer) };
    },
  }));
};

/** What an action answers may be used once, and is not remembered. */
const actionMethods = (
  table: SurfaceTable,
  service: ActionService,
  options: CallServices,
): readonly UnaryMethod[] =>
  described(table.surface, `${service.governed.service}.Create`).map((desc) => ({
    desc,
    verb: 'POST',
    serve: async (exchange: Exchange, read: ReadRequest) => {
      const called = { exchange, table, service, options, desc, read: () => only(read) };
      exchange.asked = { kind: service.kind };
      exchange.method = pathOf(desc);
      const metadata = await beginWriting(called);
      const object = await checked(called, (sent) => sentObject(called, sent));
      const principal = await admit(called, 'Create');
      await waitForMinimum(called, RESOURCES_VIEW);
      const answer = await service.handler(callOf(called, principal, { object }, metadata));
      const completed = encodeText(service.schema, String(answer.body));
      return {
        message: wrapped(numberOf(desc.output, 'object'), completed),
        headers: answerHeaders(answer),
      };
    },
  }));

const streamMethods = ({ surface, method, open }: StreamService): readonly GrpcMethod[] => {
  return described(surface, method).map((desc) => ({
    desc,
    verb: 'GET',
    open: async (exchange, read, sink) => {
      exchange.method = pathOf(desc);
      const { filter } = await only(read);
      await open(exchange, filter === undefined ? {} : { filter }, sink);
    },
  }));
};
