import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { Ids } from '../app/ports.ts';
import { ApiError, invalid, unauthenticated } from '../http/errors.ts';
import {
  failed,
  finish,
  openExchange,
  requestIds,
  SLOW_READER_MS,
  type ExchangeServices,
  type RequestSide,
} from '../http/exchange.ts';
import type { Cors } from '../http/limits/cors.ts';
import type { CallServices } from '../http/osac/served.ts';
import { openAnswer, type StreamExchange } from './answer.ts';
import { openCall } from './call.ts';
import type { Connect } from './connect.ts';
import { deadlineOf } from './deadline.ts';
import { pathOf, type GrpcMethod, type Reply } from './method.ts';
import { MAX_MESSAGE_BYTES, type Protocol } from './protocol.ts';
import {
  assertEncoding,
  COMPRESSED,
  encodingOf,
  intakeOf,
  isBidi,
  readerOf,
  talkReaderOf,
  type Requested,
} from './request.ts';
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
export type Peer = Pick<Protocol, 'accept'> & {
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

/** What becomes of a call, whichever protocol brings it. */
type Arrived = {
  readonly exchange: StreamExchange;
  readonly headers: IncomingHttpHeaders;
  readonly path: string;
  readonly peer: Peer;
  readonly assertOneToken: () => void;
  /** Aborts the signal of the call. */
  readonly abort: () => void;
};

const GRPC = /^application\/grpc(\+proto)?\s*(;|$)/i;
const WEB = /^application\/(grpc-web(\+proto|\+json)?|(connect\+)?(proto|json))\s*(;|$)/i;

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

  const servePage = async ({ exchange, headers, path, assertOneToken }: Arrived): Promise<void> => {
    try {
      assertOneToken();
      await (await (connect ??= loadConnect())).serve(exchange, path, headers);
    } catch (error) {
      exchange.response.plain(failed(exchange, error, services)?.status ?? 500);
    }
  };
  const serveGrpc = async (arrived: Arrived): Promise<void> => {
    const { exchange, headers, path, peer, abort } = arrived;
    const { response } = exchange;
    const method = methods.get(path);
    const intake = intakeOf(exchange, services);
    const deadline = deadlineOf(headers['grpc-timeout']);
    const library = peer.accept(response.stream, {
      ...(typeof deadline === 'string' ? {} : deadline),
      ...(isBidi(method) ? { 'grpc-encoding': encodingOf(headers) } : {}),
    });
    const call = openCall(library, { exchange, touched: peer.touched, cancelled: abort });
    try {
      if (deadline === 'passed') {
        response.statusCode = 504;
        abort();
        return call.end(DEADLINE_PASSED);
      }
      if (deadline === 'malformed')
        throw invalid("'grpc-timeout' must be at most eight digits and a unit, for example 10S");
      arrived.assertOneToken();
      if (method === undefined) throw unknownMethod(path, known);
      await carryOut({ exchange, method, headers, call, intake, services });
    } catch (error) {
      const told = failed(exchange, error, services);
      if (told === undefined) return;
      if (!response.headersSent) response.statusCode = told.status;
      call.end(statusOf(told, exchange));
    }
  };

  return (stream, headers, rawHeaders, peer) => {
    const path = headers[':path'] ?? '';
    const method = methods.get(path);
    const answer = openAnswer(stream);
    const http = headers[':method'] ?? '';
    const request: RequestSide = {
      headers,
      method: http === 'POST' ? (method?.verb ?? http) : http,
      socket: peer,
    };
    const { signal, abort } = createSignal();
    const exchange = openExchange(request, answer, { clock, nextRequestId, slowReaderMs, signal });
    if (method !== undefined) exchange.route = path;
    answer.setHeader('x-request-id', exchange.requestId);
    stream.once('close', () => {
      // Aborting costs as much as the rest of a call; one that was answered has nothing to be ended.
      if (!stream.writableFinished) abort();
      finish(exchange, services);
      forget(stream);
    });
    if (services.cors(exchange)) return answer.plain(200);
    if (http !== 'POST') return answer.plain(405);
    const arrived = {
      exchange,
      headers,
      path,
      peer,
      abort,
      assertOneToken: () => assertOneToken(rawHeaders),
    };
    const type = headers['content-type'] ?? '';
    if (GRPC.test(type)) void serveGrpc(arrived);
    else if (WEB.test(type)) void servePage(arrived);
    else answer.plain(415);
  };
};

/** Node keeps closed streams until its next long collection, and with their listeners all that a call has held. */
const forget = (stream: ServerHttp2Stream): void => void stream.removeAllListeners().on('error', ignore);
const ignore = (): void => undefined;

/** Aborted when the deadline passes or the caller goes away; made on first use. */
const createSignal = () => {
  let controller: AbortController | undefined;
  let gone = false;
  const abort = (): void => {
    gone = true;
    controller?.abort();
  };
  return {
    abort,
    signal: (): AbortSignal => {
      controller ??= new AbortController();
      if (gone) controller.abort();
      return controller.signal;
    },
  };
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

const carryOut = async (work: Requested): Promise<void> => {
  const { exchange, method, headers, call } = work;
  assertEncoding(headers);
  if ('serve' in method) return sendReply(work, await method.serve(exchange, readerOf(work)), headers);
  const read = method.talks === true ? talkReaderOf(work) : readerOf(work);
  await method.open(exchange, read, call.sink);
};

const zip = promisify(gzip);
/** Messages that are larger are compressed for callers who accept it; smaller ones are not worth the time. */
const COMPRESS_FROM_BYTES = 16 * 1024;

const sendReply = async (
  { exchange, call }: Requested,
  { message, headers }: Reply,
  { 'grpc-accept-encoding': accepted }: IncomingHttpHeaders,
): Promise<void> => {
  const { response } = exchange;
  if (message.byteLength > MAX_MESSAGE_BYTES)
    throw invalid(`the answer is larger than ${MAX_MESSAGE_BYTES} bytes`, undefined, 'ANSWER_TOO_LARGE');
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (message.byteLength >= COMPRESS_FROM_BYTES && acceptsGzip(accepted)) {
    response.setHeader('grpc-encoding', 'gzip');
    const zipped = await zip(message, { level: constants.Z_BEST_SPEED });
    markCompressed(response.stream);
    call.end(FINE, zipped);
  } else call.end(FINE, message);
};

/** The library compresses no answers: it writes a zero where a one belongs. */
const markCompressed = (stream: ServerHttp2Stream): void => {
  const write = stream.write.bind(stream) as (...sent: readonly unknown[]) => boolean;
  stream.write = (frame: Buffer, ...more: readonly unknown[]) => {
    frame[0] = COMPRESSED;
    return write(frame, ...more);
  };
};

const acceptsGzip = (accepted: string | string[] | undefined): boolean =>
  accepted !== undefined &&
  String(accepted)
    .split(',')
    .some((name) => name.trim() === 'gzip');
