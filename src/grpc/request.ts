import type { IncomingHttpHeaders } from 'node:http2';
import { LARGE_BODY_BYTES, MAX_BODY_BYTES } from '../http/body.ts';
import { ApiError, invalid } from '../http/errors.ts';
import { bytesOf } from '../http/exchange.ts';
import { assertKnown } from '../http/limits/admission.ts';
import { nextTurn, type CallServices } from '../http/osac/served.ts';
import type { StreamExchange } from './answer.ts';
import type { Call } from './call.ts';
import { decode } from './documents.ts';
import { gone, tooLarge, watchIntake, type Intake } from './intake.ts';
import type { GrpcMethod, ReadRequest } from './method.ts';

export type RequestServices = CallServices & {
  /** Milliseconds in which a message must have arrived. Default 30,000. */
  readonly arrivalMs?: number;
};

export const intakeOf = (exchange: StreamExchange, services: RequestServices): Intake =>
  watchIntake(exchange.response.stream, {
    budget: services.bodies,
    onBytes: bytesOf(exchange),
    arrivalMs: services.arrivalMs,
    assertKnown: () => assertKnown(exchange, services),
  });

export type Requested = {
  readonly exchange: StreamExchange;
  readonly method: GrpcMethod;
  readonly headers: IncomingHttpHeaders;
  readonly call: Call;
  readonly intake: Intake;
  readonly services: RequestServices;
};

const ENCODINGS = ['identity', 'deflate', 'gzip'];

export const encodingOf = (headers: IncomingHttpHeaders): string =>
  String(headers['grpc-encoding'] ?? 'identity');
export const isBidi = (method: GrpcMethod | undefined): boolean =>
  method?.desc.methodKind === 'bidi_streaming';

export const assertEncoding = (headers: IncomingHttpHeaders): void => {
  if (ENCODINGS.includes(encodingOf(headers))) return;
  throw new ApiError('UNIMPLEMENTED', `'grpc-encoding' must be one of ${ENCODINGS.join(', ')}`, {
    headers: { 'grpc-accept-encoding': ENCODINGS.join(',') },
  });
};

export const COMPRESSED = 1;

/** Reads the next message of the request, once all of it is there. */
export const readerOf =
  ({ exchange, method, headers, call, intake, services }: Requested): ReadRequest =>
  async () => {
    const before = intake.bytes;
    try {
      const sent = await intake.awaiting(call.next);
      if (sent === undefined && intake.bytes > before)
        throw invalid('the message ends before the length that it announces');
      if (sent === undefined) return undefined;
      // Of several messages the library unpacks each.
      const flags = isBidi(method) ? 0 : intake.first;
      if (flags > COMPRESSED) throw invalid('the message has flags that this service does not know');
      if (flags === COMPRESSED && encodingOf(headers) === 'identity')
        throw invalid("the message is compressed, but 'grpc-encoding' names no compression");
      const bytes = flags === COMPRESSED ? await intake.unzip(sent) : sent;
      return await inTurns(exchange, bytes, () => decode(method.desc.input, bytes), services);
    } finally {
      intake.settle();
    }
  };

/**
 * Reads messages of a caller who talks: there is no time in which the next one must come. No more is taken from the
 * line than what is read.
 */
export const talkReaderOf = ({ exchange, method, call }: Requested): ReadRequest => {
  let fail: ((error: Error) => void) | undefined;
  exchange.response.once('close', () => fail?.(gone()));
  return () =>
    new Promise((resolve, reject) => {
      if (exchange.response.destroyed) return reject(gone());
      fail = reject;
      call.next((sent) => {
        try {
          resolve(sent === undefined ? undefined : decode(method.desc.input, sent));
        } catch (error) {
          reject(error as Error);
        }
      });
    });
};

/** A large message is handled in several turns of the thread, as bodies of HTTP are. */
export const inTurns = async <Decoded>(
  exchange: StreamExchange,
  bytes: Uint8Array,
  decodeAll: () => Decoded,
  services: CallServices,
): Promise<Decoded> => {
  const share = services.admission?.anybody(exchange);
  if (share !== undefined) await share;
  if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge();
  const large = bytes.byteLength > LARGE_BODY_BYTES;
  if (large) await nextTurn(exchange, services);
  const message = decodeAll();
  if (large) await nextTurn(exchange, services);
  return message;
};
