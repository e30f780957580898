import { fromBinary, type DescMethod, type Message } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect';
import {
  createWritableIterable,
  encodeEnvelope,
  transformSplitEnvelope,
  type EnvelopedMessage,
  type UniversalHandler,
} from '@connectrpc/connect/protocol';
import type { IncomingHttpHeaders } from 'node:http2';
import { bodyText, MAX_BODY_BYTES } from '../http/body.ts';
import { invalid, type ApiError } from '../http/errors.ts';
import { asApiError, type Exchange } from '../http/exchange.ts';
import { namingFailures } from '../http/limits/admission.ts';
import { decodeMessage, READ, WRITE } from '../http/osac/messages.ts';
import type { MessageSink } from '../http/osac/service-table.ts';
import { boundReader, dropRest, type StreamAnswer, type StreamExchange } from './answer.ts';
import { decode } from './documents.ts';
import { tooLarge, type Intake } from './intake.ts';
import { pathOf, type GrpcMethod, type StreamMethod, type UnaryMethod } from './method.ts';
import { MAX_MESSAGE_BYTES } from './protocol.ts';
import { inTurns, intakeOf, type RequestServices } from './request.ts';
import { statusOf } from './status.ts';

/**
 * gRPC-Web and Connect's own protocol, in JSON and protobuf, for pages in a browser. What is answered is what gRPC
 * answers.
 */
export type Connect = {
  /** Throws what is to be answered as an error of the call. */
  readonly serve: (exchange: StreamExchange, path: string, headers: IncomingHttpHeaders) => Promise<void>;
};

type Told = { readonly exchange: StreamExchange; fault?: ApiError };

const JSON_TYPE = /^application\/(connect\+|grpc-web\+)?json/i;
const WEB_TYPE = /^application\/grpc-web/i;

const TOLD = createContextKey<Told | undefined>(undefined);

/** `failed` logs and records a failure as every protocol does; it gives back what is told of it. */
export const createConnect = (
  methods: readonly GrpcMethod[],
  services: RequestServices,
  failed: (exchange: Exchange, failure: unknown) => ApiError | undefined,
): Connect => {
  const router = createConnectRouter({
    grpc: false,
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
  const received = async function* (
    told: Told,
    { input, methodKind }: DescMethod,
    type = '',
  ): AsyncGenerator<Uint8Array> {
    const { exchange } = told;
    const framed = methodKind !== 'unary' || WEB_TYPE.test(type);
    const read = async (): Promise<Uint8Array | undefined> => {
      const intake = intakeOf(exchange, services);
      try {
        const message = await (framed ? firstOf : wholeOf)(exchange.response, intake);
        if (message === undefined) return undefined;
        const isJson = JSON_TYPE.test(type);
        const check = (): unknown =>
          isJson ? decodeMessage(input, bodyText(Buffer.from(message))) : decode(input, message);
        await inTurns(exchange, message, check, services);
        return framed ? encodeEnvelope(0, message) : message;
      } finally {
        intake.settle();
      }
    };
    try {
      const message = await namingFailures(exchange, services, read);
      if (message !== undefined) yield message;
    } catch (error) {
      throw refusal(told, error);
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
      exchange.method = pathOf(handler.method);
      const told: Told = { exchange };
      await answerBy(handler, told, headers, received(told, handler.method, headers['content-type']));
    },
  };
};

type Reader = (answer: StreamAnswer, intake: Intake) => Promise<Uint8Array | undefined>;

/** Bytes without a frame. */
const wholeOf: Reader = async ({ stream }, intake) => {
  const parts: Buffer[] = [];
  const complete = await intake.awaiting<boolean>((arrived) => {
    stream.once('end', () => arrived(true));
    stream.on('data', (part: Buffer) => {
      if (intake.bytes > MAX_BODY_BYTES) arrived(false);
      else parts.push(part);
    });
  });
  if (!complete) throw tooLarge();
  return Buffer.concat(parts);
};

/** The first message in a frame; what follows is dropped. */
const firstOf: Reader = async ({ stream }, intake) => {
  const chunks = createWritableIterable<Uint8Array>();
  const envelope = await intake.awaiting<EnvelopedMessage | ConnectError | undefined>((arrived) => {
    // Rejected when nobody reads it any more.
    stream.on('data', (part: Buffer) => void chunks.write(part).catch(() => undefined));
    stream.once('end', () => chunks.close());
    firstIn(transformSplitEnvelope(MAX_BODY_BYTES)(chunks)).then(arrived, (error: unknown) =>
      arrived(ConnectError.from(error)),
    );
  });
  if (envelope instanceof ConnectError)
    throw envelope.code === Code.ResourceExhausted ? tooLarge() : invalid(envelope.rawMessage);
  if (envelope !== undefined && envelope.flags !== 0) throw invalid('the message is compressed, or is none');
  return envelope?.data;
};

const firstIn = async <T>(all: AsyncIterable<T>): Promise<T | undefined> => {
  for await (const one of all) return one;
  return undefined;
};

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

/** Messages that the library takes one after the other. Of itself it would send no headers before the first. */
const bridge = (
  { request, response }: StreamExchange,
  write: (message: Uint8Array) => Promise<void>,
  end: MessageSink['end'],
): MessageSink => {
  const { stream } = response;
  let backlog = 0;
  let drained: (() => void) | undefined;
  const taken = (bytes: number): void => {
    backlog -= bytes;
    if (backlog > 0) return;
    drained?.();
    drained = undefined;
  };
  // Messages may all be taken while their bytes still wait in the stream.
  stream.on('drain', () => taken(0));
  return {
    head: () => {
      if (!stream.headersSent && !stream.destroyed && !stream.closed)
        stream.respond({
          ...response.headers,
          ':status': 200,
          'content-type': request.headers['content-type'],
        });
    },
    backlog: () => backlog + stream.writableLength,
    write: (messages) => {
      for (const message of messages) {
        const { byteLength } = message;
        backlog += byteLength;
        // Rejected when the caller has gone.
        write(message).then(
          () => taken(byteLength),
          () => taken(byteLength),
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
  if (!stream.headersSent)
    stream.respond({
      ':status': answer.status,
      ...response.headers,
      ...Object.fromEntries(answer.header ?? []),
    });
  for await (const part of answer.body ?? []) {
    if (stream.destroyed || stream.closed) return;
    if (!stream.write(part)) await new Promise<void>((resolve) => boundReader(told.exchange, resolve));
  }
  response.statusCode = told.fault?.status ?? answer.status;
  stream.end();
  boundReader(told.exchange);
  dropRest(stream);
};
