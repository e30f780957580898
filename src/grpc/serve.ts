import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Ids } from '../app/ports.ts';
import { LARGE_BODY_BYTES, MAX_BODY_BYTES } from '../http/body.ts';
import { ApiError, invalid, unauthenticated } from '../http/errors.ts';
import {
  bytesOf,
  failed,
  finish,
  openExchange,
  requestIds,
  SLOW_READER_MS,
  type Exchange,
  type ExchangeServices,
  type RequestSide,
} from '../http/exchange.ts';
import { assertKnown } from '../http/limits/admission.ts';
import type { Cors } from '../http/limits/cors.ts';
import { nextTurn, type CallServices } from '../http/osac/served.ts';
import { isConnect, openAnswer, protocolOf, type GrpcAnswer } from './answer.ts';
import type { Connect } from './connect.ts';
import { createDeadline } from './deadline.ts';
import { decode } from './documents.ts';
import {
  frameOf,
  isWorthZipping,
  MAX_MESSAGE_BYTES,
  readMessages,
  tooLarge,
  zippedFrameOf,
  type MessageReader,
} from './frames.ts';
import { pathOf, type GrpcMethod, type ReadRequest, type Reply } from './method.ts';
import { sinkOf } from './sink.ts';
import { DEADLINE_PASSED, FINE, statusOf } from './status.ts';

export type GrpcServices = ExchangeServices &
  CallServices & {
    readonly ids: Ids;
    readonly methods: readonly GrpcMethod[];
    readonly cors: Cors;
    /** Milliseconds without progress after which a caller who does not read its answer is cut off. Default 30,000. */
    readonly slowReaderMs?: number;
    /** Milliseconds in which a message must have arrived. Default 30,000. */
    readonly arrivalMs?: number;
  };

/** What is known of the connection that a call comes by. */
export type Peer = {
  readonly remoteAddress: string | undefined;
  /** Told that something is sent: clients measure the line with pings while data flows. */
  readonly touched: (stream: ServerHttp2Stream) => void;
};

export type ServeStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  peer: Peer,
) => void;

type GrpcExchange = Exchange & { readonly response: GrpcAnswer };

type Call = {
  readonly exchange: GrpcExchange;
  readonly method: GrpcMethod;
  readonly headers: IncomingHttpHeaders;
  readonly services: GrpcServices;
};

/** Every call of the listener, in whichever protocol. It knows methods by their descriptors alone. */
export const createServeStream = (services: GrpcServices): ServeStream => {
  const methods = new Map(services.methods.map((method) => [pathOf(method.desc), method]));
  const known = new Set(services.methods.map(({ desc }) => desc.parent.typeName));
  let connect: Promise<Connect> | undefined;
  /** Loaded for the first call: most services never see one. */
  const loadConnect = async (): Promise<Connect> => {
    const { createConnect } = await import('./connect.ts');
    return createConnect(services.methods, services, (exchange, failure) =>
      failed(exchange, failure, services),
    );
  };
  const nextRequestId = requestIds(services.ids);
  const { clock, slowReaderMs = SLOW_READER_MS } = services;

  return (stream, headers, rawHeaders, peer) => {
    const path = headers[':path'] ?? '';
    const method = methods.get(path);
    const protocol = protocolOf(headers['content-type']);
    const answer = openAnswer(stream, protocol ?? 'grpc', peer.touched);
    const http = headers[':method'] ?? '';
    const request: RequestSide = {
      headers,
      method: http === 'POST' ? (method?.verb ?? http) : http,
      socket: peer,
    };
    const deadline = createDeadline(stream, headers['grpc-timeout']);
    const { signal } = deadline;
    const exchange = openExchange(request, answer, { clock, nextRequestId, slowReaderMs, signal });
    if (method !== undefined) exchange.route = path;
    answer.setHeader('x-request-id', exchange.requestId);
    stream.once('close', () => finish(exchange, services));
    if (services.cors(exchange)) return answer.plain(200);
    if (http !== 'POST') return refused(answer, 405);
    if (protocol === undefined) {
      if (!isConnect(headers['content-type'])) return refused(answer, 415);
      const page = async (): Promise<void> => {
        assertOneToken(rawHeaders);
        await (await (connect ??= loadConnect())).serve(exchange, path, headers);
      };
      page().catch((error: unknown) => {
        refused(answer, failed(exchange, error, services)?.status ?? 500);
      });
      return;
    }
    deadline.onPassed(() => {
      answer.statusCode = 504;
      answer.end(DEADLINE_PASSED);
    });
    const call = async (): Promise<void> => {
      deadline.begin();
      assertOneToken(rawHeaders);
      if (method === undefined) throw unknownMethod(path, known);
      await carryOut({ exchange, method, headers, services });
    };
    call().catch((error: unknown) => {
      const told = failed(exchange, error, services);
      if (told === undefined) return;
      if (!answer.headersSent) answer.statusCode = told.status;
      answer.end(statusOf(told, exchange));
    });
  };
};

/** What is no call: HTTP's own status, as the specification of gRPC has it. */
const refused = (answer: GrpcAnswer, status: number): void => {
  answer.statusCode = status;
  answer.plain(status);
};

/** OSAC's words. */
const unknownMethod = (path: string, known: ReadonlySet<string>): ApiError => {
  const [, service = '', name = ''] = path.slice(0, 256).split('/');
  return new ApiError(
    'UNIMPLEMENTED',
    known.has(service) ? `unknown method ${name} for service ${service}` : `unknown service ${service}`,
  );
};

/** A proxy that checked another one would have checked for nothing. */
const assertOneToken = (rawHeaders: readonly string[]): void => {
  const times = rawHeaders.filter((name, index) => index % 2 === 0 && name === 'authorization').length;
  if (times > 1)
    throw unauthenticated(`expected at most one 'authorization' header, but received ${times}`, true);
};

const carryOut = async ({ exchange, method, headers, services }: Call): Promise<void> => {
  const { response } = exchange;
  const encoding = headers['grpc-encoding'];
  const reader = readMessages(response.stream, {
    budget: services.bodies,
    onBytes: bytesOf(exchange),
    encoding: typeof encoding === 'string' ? encoding : undefined,
    single: method.desc.methodKind !== 'bidi_streaming',
    assertKnown: () => assertKnown(exchange, services),
    arrivalMs: services.arrivalMs,
  });
  assertEncoding(response, encoding);
  const read = readerOf(exchange, method, reader, services);
  if ('open' in method) return method.open(exchange, read, sinkOf(exchange));
  const reply = await method.serve(exchange, read);
  reader.stop();
  await sendReply(exchange, reply, headers);
};

const assertEncoding = (answer: GrpcAnswer, encoding: string | string[] | undefined): void => {
  if (encoding === undefined || encoding === 'identity' || encoding === 'gzip') return;
  answer.setHeader('grpc-accept-encoding', 'identity,gzip');
  throw new ApiError('UNIMPLEMENTED', "'grpc-encoding' must be identity or gzip");
};

/**
 * Reads a message of the request. A large one is read from known callers only, and handled in several turns of the
 * thread, as bodies of HTTP are.
 */
const readerOf =
  (exchange: Exchange, { desc }: GrpcMethod, reader: MessageReader, services: GrpcServices): ReadRequest =>
  () =>
    reader.next(async (bytes) => {
      const share = services.admission?.anybody(exchange);
      if (share !== undefined) await share;
      if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge();
      const large = bytes.byteLength > LARGE_BODY_BYTES;
      if (large) await nextTurn(exchange, services);
      const message = decode(desc.input, bytes);
      if (large) await nextTurn(exchange, services);
      return message;
    });

const sendReply = async (
  exchange: GrpcExchange,
  { message, headers }: Reply,
  { 'grpc-accept-encoding': accepted }: IncomingHttpHeaders,
): Promise<void> => {
  const { response } = exchange;
  if (message.byteLength > MAX_MESSAGE_BYTES)
    throw invalid(`the answer is larger than ${MAX_MESSAGE_BYTES} bytes`, undefined, 'ANSWER_TOO_LARGE');
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  let frame: Uint8Array;
  if (isWorthZipping(message) && acceptsGzip(accepted)) {
    response.setHeader('grpc-encoding', 'gzip');
    frame = await zippedFrameOf(message);
  } else frame = frameOf(message);
  response.end(FINE, frame);
  holdUntilRead(exchange);
};

const acceptsGzip = (accepted: string | string[] | undefined): boolean =>
  accepted !== undefined &&
  String(accepted)
    .split(',')
    .some((name) => name.trim() === 'gzip');

/** Otherwise an answer would be kept for as long as its reader likes. */
const holdUntilRead = ({ response, slowReaderMs, holdUnread }: GrpcExchange): void => {
  const { stream } = response;
  if (stream.writableLength === 0 || stream.destroyed) return;
  stream.setTimeout(slowReaderMs, () => stream.close());
  const read = holdUnread?.(stream.writableLength);
  if (read !== undefined) stream.once('close', read);
};
