import type { ServerHttp2Stream } from 'node:http2';
import { createUnzip } from 'node:zlib';
import { MAX_BODY_BYTES, SMALL_BODY_BYTES, tooManyBodies, type BodyBudget } from '../http/body.ts';
import { ApiError } from '../http/errors.ts';
import { MAX_MESSAGE_BYTES } from './protocol.ts';

const ARRIVAL_MS = 30_000;

export type IntakeOptions = {
  readonly budget?: BodyBudget | undefined;
  readonly onBytes: (bytes: number) => void;
  /** Milliseconds in which a message must have arrived. Default 30,000. */
  readonly arrivalMs?: number | undefined;
  /** Awaited before a large message is read or unpacked; throws what is answered to strangers. */
  readonly assertKnown: () => Promise<void>;
};

/** Bounds what a request may take before it is known whose it is, and how long it may take to arrive. */
export type Intake = {
  /** Bytes that have come. */
  readonly bytes: number;
  /** The first byte that came, which says of gRPC's first message whether it is compressed. */
  readonly first: number;
  /** Reads until `arrived` is called; throws ApiError for too much, too slow, a large message of a stranger. */
  readonly awaiting: <T>(begin: (arrived: (message: T) => void) => void) => Promise<T>;
  /** Takes a message out of its compression. Throws ApiError. */
  readonly unzip: (message: Buffer) => Promise<Buffer>;
  /** Gives back all that was taken. */
  readonly settle: () => void;
};

export const watchIntake = (
  stream: ServerHttp2Stream,
  { budget, onBytes, arrivalMs = ARRIVAL_MS, assertKnown }: IntakeOptions,
): Intake => {
  let [bytes, first, own] = [0, 0, 0];
  let fail: ((error: unknown) => void) | undefined;
  let asked: Promise<void> | undefined;
  const take = (more: number): void => {
    if (budget?.take(more) === false) throw tooManyBodies();
    own += more;
  };
  const settle = (): void => {
    budget?.give(own);
    own = 0;
  };
  /** The sender waits until it is known who sends so much. */
  const ask = async (): Promise<void> => {
    stream.pause();
    await assertKnown();
    if (fail !== undefined) stream.resume();
  };
  stream.on('data', (chunk: Buffer) => {
    if (fail === undefined) return;
    if (bytes === 0) first = chunk[0] ?? 0;
    bytes += chunk.length;
    onBytes(bytes);
    try {
      take(chunk.length);
    } catch (error) {
      fail(error);
    }
    if (bytes <= SMALL_BODY_BYTES || asked !== undefined) return;
    asked = ask();
    asked.catch((error: unknown) => fail?.(error));
  });
  stream.once('close', () => {
    settle();
    fail?.(gone());
  });
  return {
    get bytes() {
      return bytes;
    },
    get first() {
      return first;
    },
    awaiting: async (begin) => {
      if (stream.destroyed) throw gone();
      const timer = setTimeout(() => fail?.(late()), arrivalMs);
      try {
        return await new Promise((resolve, reject) => {
          fail = reject;
          begin(resolve);
        });
      } finally {
        fail = undefined;
        clearTimeout(timer);
        await asked;
      }
    },
    unzip: async (message) => {
      try {
        return await unzipped(message, assertKnown, take);
      } catch (error) {
        if (error instanceof ApiError) throw error;
        throw new ApiError('INVALID_ARGUMENT', 'the compressed message cannot be read', { cause: error });
      }
    },
    settle,
  };
};

/** Part by part: what it comes to is known only then. The library unpacks 4 MiB for anybody. */
const unzipped = async (
  message: Buffer,
  assertKnown: () => Promise<void>,
  take: (bytes: number) => void,
): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  const unzip = createUnzip();
  unzip.end(message);
  for await (const part of unzip as AsyncIterable<Buffer>) {
    const before = length;
    length += part.length;
    if (length > MAX_MESSAGE_BYTES) throw tooLong();
    if (before <= SMALL_BODY_BYTES && length > SMALL_BODY_BYTES) await assertKnown();
    take(part.length);
    parts.push(part);
  }
  return Buffer.concat(parts);
};

export const gone = (): ApiError => new ApiError('CANCELLED', 'the caller went away');
const late = (): ApiError =>
  new ApiError('REQUEST_TIMEOUT', 'the request did not arrive in time; nothing was done');

const tooLong = (): ApiError =>
  new ApiError(
    'RESOURCE_EXHAUSTED',
    `the message is larger than ${MAX_MESSAGE_BYTES} bytes after decompression`,
    { reason: 'MESSAGE_TOO_LARGE' },
  );

/** A message that the wire may carry, but that no object is stored of. */
export const tooLarge = (): ApiError =>
  new ApiError('BODY_TOO_LARGE', `the request message is larger than ${MAX_BODY_BYTES} bytes`);
