import { fromBinary, type DescMethod, type Message } from '@bufbuild/protobuf';
import {
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect';
import { createWritableIterable, type UniversalHandler } from '@connectrpc/connect/protocol';
import type { IncomingHttpHeaders } from 'node:http2';
import { bodyText, MAX_BODY_BYTES, SMALL_BODY_BYTES } from '../http/body.ts';
import type { ApiError } from '../http/errors.ts';
import { asApiError, bytesOf, type Exchange } from '../http/exchange.ts';
import { assertKnown } from '../http/limits/admission.ts';
import { READ, WRITE } from '../http/osac/messages.ts';
import type { CallServices } from '../http/osac/served.ts';
import type { MessageSink } from '../http/osac/service-table.ts';
import { dropRest, type GrpcAnswer } from './answer.ts';
import { decode } from './documents.ts';
import {
  FRAME_HEAD,
  frameOf,
  MAX_MESSAGE_BYTES,
  readMessages,
  tooLarge,
  type MessageReader,
} from './frames.ts';
import type { GrpcMethod, StreamMethod, UnaryMethod } from './method.ts';
import { statusOf } from './status.ts';

/**
 * Connect's own protocol, in JSON and protobuf, for pages in a browser. The library carries it: it is not on the way of
 * the many calls. What it answers is what gRPC answers.
 */
export type Connect = {
  /** Throws what is to be answered as an error of the call. */
  readonly serve: (exchange: ConnectExchange, path: string, headers: IncomingHttpHeaders) => Promise<void>;
};

export type ConnectExchange = Exchange & { readonly response: GrpcAnswer };

export type ConnectServices = CallServices & {
  /** Milliseconds in which a message must have arrived. Default 30,000. */
  readonly arrivalMs?: number;
};

type Told = { readonly exchange: ConnectExchange; fault?: ApiError };

const JSON_TYPE = /^application\/(connect\+)?json/i;

const TOLD = createContextKey<Told | undefined>(undefined);

/** `failed` logs and records a failure as every protocol does; it gives back what is told of it. */
export const createConnect = (
  methods: readonly GrpcMethod[],
  services: ConnectServices,
  failed: (exchange: Exchange, failure: unknown) => ApiError | undefined,
): Connect => {
  const router = createConnectRouter({
    grpc: false,
    grpcWeb: false,
    readMaxBytes: MAX_BODY_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    acceptCompression: [],
    // As over REST: a misspelt field is refused.
    jsonOptions: { ...READ, ...WRITE, ignoreUnknownFields: false },
    maxTimeoutMs: 2 ** 31 - 1,
  });
  const refusal = (told: Told, failure: unknown): ConnectError => {
    const error = failed(told.exchange, failure) ?? asApiError(failure);
    told.fault = error;
    return connectError(error, told.exchange);
  };
  /** The one message of a request, read and looked at before the library gets it; what follows is dropped. */
  const received = async function* (told: Told, desc: DescMethod, type = ''): AsyncGenerator<Buffer> {
    const { exchange } = told;
    const reader = readMessages(exchange.response.stream, {
      budget: services.bodies,
      onBytes: bytesOf(exchange),
      encoding: undefined,
      arrivalMs: services.arrivalMs,
      single: true,
      assertKnown: () => assertKnown(exchange, services),
    });
    const framed = desc.methodKind !== 'unary';
    try {
      const message = framed
        ? await firstFramed(reader)
        : await wholeBody(reader, () => assertKnown(exchange, services));
      if (message === undefined) return;
      if (JSON_TYPE.test(type)) bodyText(message);
      else decode(desc.input, message);
      yield framed ? frameOf(message) : message;
    } catch (error) {
      throw refusal(told, error);
    } finally {
      reader.stop();
    }
  };
  const addUnary = ({ desc, serve }: UnaryMethod): void => {
    const handle = async (message: Message, context: HandlerContext): Promise<Message> => {
      const told = toldOf(context);
      try {
        const reply = await serve(told.exchange, () => Promise.resolve(message));
        for (const [name, value] of Object.entries(reply.headers)) context.responseHeader.set(name, value);
        return fromBinary(desc.output, reply.message);
      } catch (error) {
        throw refusal(told, error);
      }
    };
    router.rpc(desc, handle as MethodImpl<DescMethod>);
  };
  const addStream = ({ desc, open }: StreamMethod): void => {
    const handle = async function* (message: Message, context: HandlerContext): AsyncGenerator<Message> {
      const told = toldOf(context);
      const messages = createWritableIterable<Message>();
      let fault: ApiError | undefined;
      const sink = bridge(
        told.exchange,
        (bytes) => messages.write(fromBinary(desc.output, bytes)),
        (error) => {
          fault = error;
          messages.close();
        },
      );
      told.exchange.response.once('close', () => messages.close());
      try {
        await open(told.exchange, () => Promise.resolve(message), sink);
        yield* messages;
        if (fault !== undefined) throw fault;
      } catch (error) {
        throw refusal(told, error);
      }
    };
    router.rpc(desc, handle as MethodImpl<DescMethod>);
  };

  for (const method of methods)
    if ('serve' in method) addUnary(method);
    else if (method.desc.methodKind === 'server_streaming') addStream(method);
  const byPath = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return {
    serve: async (exchange, path, headers) => {
      const handler = byPath.get(path);
      if (handler === undefined) return exchange.response.plain(404);
      const told: Told = { exchange };
      await answerBy(handler, told, headers, received(told, handler.method, headers['content-type']));
    },
  };
};

/** Who sends much is asked for a token by what has come: HTTP/2 need not announce a length. */
const wholeBody = async (reader: MessageReader, known: () => Promise<void>): Promise<Buffer> => {
  if (await reader.has(SMALL_BODY_BYTES + 1)) await known();
  if (await reader.has(MAX_BODY_BYTES + 1)) throw tooLarge();
  return reader.rest();
};

const firstFramed = (reader: MessageReader): Promise<Buffer | undefined> =>
  reader.next((message) => {
    if (message.byteLength > MAX_BODY_BYTES) throw tooLarge();
    return Promise.resolve(message);
  });

const toldOf = (context: HandlerContext): Told => {
  const told = context.values.get(TOLD);
  if (told === undefined) throw new TypeError('a call without its exchange');
  return told;
};

const connectError = (error: ApiError, exchange: Exchange): ConnectError => {
  const { code, message, headers, parts } = statusOf(error, exchange);
  const { connection: _hopByHop, ...shown } = headers;
  const told = new ConnectError(message, code, shown);
  told.details = parts.map(({ typeUrl, value }) => ({ type: typeUrl.replace(/^.*\//, ''), value }));
  return told;
};

/** Frames that a stream's service gives, one message after the other. */
const bridge = (
  { response }: ConnectExchange,
  write: (message: Uint8Array) => Promise<void>,
  end: MessageSink['end'],
): MessageSink => {
  let backlog = 0;
  let drained: (() => void) | undefined;
  const taken = (bytes: number): void => {
    backlog -= bytes;
    if (backlog > 0) return;
    drained?.();
    drained = undefined;
  };
  // Messages may all be taken while their bytes still wait in the stream.
  response.stream.on('drain', () => taken(0));
  return {
    head: () => undefined,
    backlog: () => backlog + response.stream.writableLength,
    write: (frames) => {
      const bytes = Buffer.from(frames.buffer, frames.byteOffset, frames.byteLength);
      for (let at = 0; at < bytes.length; ) {
        const length = FRAME_HEAD + bytes.readUInt32BE(at + 1);
        const message = bytes.subarray(at + FRAME_HEAD, at + length);
        at += length;
        backlog += length;
        // Rejected when the caller has gone.
        write(message).then(
          () => taken(length),
          () => taken(length),
        );
      }
      return backlog === 0;
    },
    onDrain: (listener) => {
      drained = listener;
    },
    end,
  };
};

const answerBy = async (
  handler: UniversalHandler,
  told: Told,
  headers: IncomingHttpHeaders,
  body: AsyncIterable<Uint8Array>,
): Promise<void> => {
  const { response, signal } = told.exchange;
  const { stream } = response;
  const header = new Headers();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(':')) header.set(name, String(value));
  const answer = await handler({
    httpVersion: '2.0',
    method: 'POST',
    url: `http://${headers[':authority'] ?? 'localhost'}${handler.requestPath}`,
    header,
    body,
    signal: signal(),
    contextValues: createContextValues().set(TOLD, told),
  });
  if (stream.destroyed || stream.closed) return;
  response.statusCode = told.fault?.status ?? answer.status;
  stream.respond({
    ':status': answer.status,
    ...response.headers,
    ...Object.fromEntries(answer.header ?? []),
  });
  for await (const part of answer.body ?? []) {
    if (stream.destroyed || stream.closed) return;
    if (!response.write(part)) await new Promise<void>((resolve) => onceEither(response, resolve));
  }
  response.statusCode = told.fault?.status ?? answer.status;
  stream.end();
  dropRest(stream);
};

const onceEither = ({ stream }: GrpcAnswer, go: () => void): void => {
  stream.once('drain', go);
  stream.once('close', go);
};
