import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createGunzip, gzip } from 'node:zlib';
import { MAX_BODY_BYTES, SMALL_BODY_BYTES, tooManyBodies, type BodyBudget } from '../http/body.ts';
import { ApiError, invalid } from '../http/errors.ts';

/**
 * Messages on the wire, as gRPC, gRPC-Web and Connect's streams frame them: one byte of flags, four of length, and the
 * bytes of the message.
 */
export const FRAME_HEAD = 5;
const COMPRESSED = 1;

/** Largest message in either direction, bytes: the default of gRPC's libraries. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

const ARRIVAL_MS = 30_000;
/** Messages that are larger are compressed for callers who accept it; smaller ones are not worth the time. */
const COMPRESS_FROM_BYTES = 16 * 1024;
const FIRST_BYTES = 4_096;

const zip = promisify(gzip);

export type MessageReader = {
  /** Hands the next message to `use`, out of its compression; undefined: none comes. Throws ApiError. */
  readonly next: <T>(use: (message: Buffer) => Promise<T>) => Promise<T | undefined>;
  /** True once that many bytes wait to be taken; false: the sender has ended before. Throws ApiError. */
  readonly has: (bytes: number) => Promise<boolean>;
  /** Takes what waits, without frames. */
  readonly rest: () => Buffer;
  /** Takes no more; what still comes is dropped. */
  readonly stop: () => void;
};

export type ReaderOptions = {
  readonly budget?: BodyBudget | undefined;
  readonly onBytes: (bytes: number) => void;
  /** `grpc-encoding` of the request. */
  readonly encoding: string | undefined;
  /** Milliseconds in which a message must have arrived. Default 30,000. */
  readonly arrivalMs?: number | undefined;
  /** True: the request has one message, and what comes behind it is dropped. */
  readonly single: boolean;
  /** Awaited before a large message is read or unpacked; throws what is answered to strangers. */
  readonly assertKnown: () => Promise<void>;
};

export const readMessages = (
  stream: Readable,
  { budget, onBytes, encoding, arrivalMs = ARRIVAL_MS, single, assertKnown }: ReaderOptions,
): MessageReader => {
  const held = createStore(budget);
  let total = 0;
  let ended = false;
  /** Why no more is read; made when it is asked for. */
  let failure: (() => ApiError) | undefined = stream.destroyed ? gone : undefined;
  let wake: (() => void) | undefined;
  const tell = (): void => {
    wake?.();
    wake = undefined;
  };
  stream.on('data', (chunk: Buffer) => {
    if (failure !== undefined) return;
    total += chunk.length;
    onBytes(total);
    if (!held.add(chunk)) failure = tooManyBodies;
    // The rest waits in the sender until this much was taken.
    if (held.size > FRAME_HEAD + MAX_MESSAGE_BYTES) stream.pause();
    tell();
  });
  stream.once('end', () => {
    ended = true;
    tell();
  });
  stream.once('close', () => {
    failure ??= gone;
    held.release();
    tell();
  });

  /** False when the sender has ended before that many bytes were there. */
  const has = async (bytes: number): Promise<boolean> => {
    if (held.size >= bytes) return true;
    const timer = setTimeout(() => {
      failure ??= late;
      tell();
    }, arrivalMs);
    try {
      while (held.size < bytes) {
        if (failure !== undefined) throw failure();
        if (ended) return false;
        if (!held.keep()) throw tooManyBodies();
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      clearTimeout(timer);
    }
    return true;
  };
  /** What was there may have been dropped before whoever waited for it has their turn. */
  const assertHeld = (bytes: number): void => {
    if (held.size < bytes) throw gone();
  };
  const announced = async (): Promise<number | undefined> => {
    if (!(await has(FRAME_HEAD))) {
      if (held.size > 0) throw cutOff();
      return undefined;
    }
    assertHeld(FRAME_HEAD);
    const length = held.peek(FRAME_HEAD).readUInt32BE(1);
    if (length > MAX_MESSAGE_BYTES) throw tooLong(length);
    return length;
  };
  const stop = (): void => {
    failure ??= gone;
    held.release();
    stream.resume();
  };
  return {
    has,
    rest: () => held.take(held.size),
    next: async (use) => {
      const length = await announced();
      if (length === undefined) return undefined;
      if (length > SMALL_BODY_BYTES) await assertKnown();
      if (!(await has(FRAME_HEAD + length))) throw cutOff();
      assertHeld(FRAME_HEAD + length);
      const flags = held.take(FRAME_HEAD)[0] ?? 0;
      const bytes = held.take(length);
      if (!single) stream.resume();
      const unpacked = createShare(budget);
      try {
        return await use(await opened(flags, bytes, { encoding, share: unpacked, assertKnown }));
      } finally {
        unpacked.release();
        if (single) stop();
      }
    },
    stop,
  };
};

/** What is taken of the budget in parts, and given back at once. */
const createShare = (budget: BodyBudget | undefined) => {
  let own = 0;
  return {
    /** False when there is no room. */
    take: (bytes: number): boolean => {
      if (budget?.take(bytes) === false) return false;
      own += bytes;
      return true;
    },
    release: (): void => {
      budget?.give(own);
      own = 0;
    },
  };
};

/**
 * Bytes that have come and were not taken. One chunk is held as it is until more is waited for; more are put together
 * as they arrive.
 */
const createStore = (budget: BodyBudget | undefined) => {
  let buffer: Buffer = Buffer.alloc(0);
  let [start, end, own] = [0, 0, 0];
  const grow = (needed: number): boolean => {
    const capacity = Math.max(needed, 2 * (end - start), FIRST_BYTES);
    if (budget?.take(capacity) === false) return false;
    const larger = Buffer.allocUnsafeSlow(capacity);
    buffer.copy(larger, 0, start, end);
    [buffer, start, end] = [larger, 0, end - start];
    budget?.give(own);
    own = capacity;
    return true;
  };
  const release = (): void => {
    budget?.give(own);
    [buffer, start, end, own] = [Buffer.alloc(0), 0, 0, 0];
  };
  return {
    get size() {
      return end - start;
    },
    /** False when there is no room in the budget. */
    add: (chunk: Buffer): boolean => {
      if (start === end) {
        release();
        [buffer, end] = [chunk, chunk.length];
        return true;
      }
      if ((own === 0 || end + chunk.length > buffer.length) && !grow(end - start + chunk.length))
        return false;
      chunk.copy(buffer, end);
      end += chunk.length;
      return true;
    },
    /** Counts a chunk that was held as it is. False when there is no room in the budget. */
    keep: (): boolean => own > 0 || start === end || grow(end - start),
    peek: (bytes: number): Buffer => buffer.subarray(start, start + bytes),
    take: (bytes: number): Buffer => {
      const taken = buffer.subarray(start, start + bytes);
      start += bytes;
      return taken;
    },
    release,
  };
};

type Opening = Pick<ReaderOptions, 'encoding' | 'assertKnown'> & {
  readonly share: ReturnType<typeof createShare>;
};

const opened = async (flags: number, bytes: Buffer, opening: Opening): Promise<Buffer> => {
  if (flags === 0) return bytes;
  if (flags !== COMPRESSED) throw invalid('the message has flags that this service does not know');
  if (opening.encoding === undefined || opening.encoding === 'identity')
    throw invalid("the message is compressed, but 'grpc-encoding' names no compression");
  try {
    return await unzip(bytes, opening);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError('INVALID_ARGUMENT', 'the compressed message cannot be read', { cause: error });
  }
};

/** Part by part: what it comes to is known only then. */
const unzip = async (bytes: Buffer, { share, assertKnown }: Opening): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  const gunzip = createGunzip();
  gunzip.end(bytes);
  for await (const part of gunzip as AsyncIterable<Buffer>) {
    const before = length;
    length += part.length;
    if (length > MAX_MESSAGE_BYTES) throw tooLong(undefined);
    if (before <= SMALL_BODY_BYTES && length > SMALL_BODY_BYTES) await assertKnown();
    if (!share.take(part.length)) throw tooManyBodies();
    parts.push(part);
  }
  return Buffer.concat(parts);
};

const gone = (): ApiError => new ApiError('CANCELLED', 'the caller went away');
const late = (): ApiError =>
  new ApiError('REQUEST_TIMEOUT', 'the request did not arrive in time; nothing was done');
const cutOff = (): ApiError => invalid('the message ends before the length that it announces');

/** A message that the wire may carry, but that no object is stored of. */
export const tooLarge = (): ApiError =>
  new ApiError('BODY_TOO_LARGE', `the request message is larger than ${MAX_BODY_BYTES} bytes`);

/** OSAC's words where the length is known. */
const tooLong = (length: number | undefined): ApiError =>
  new ApiError(
    'RESOURCE_EXHAUSTED',
    `grpc: received message ${length === undefined ? 'after decompression ' : ''}larger than max ` +
      (length === undefined ? `${MAX_MESSAGE_BYTES}` : `(${length} vs. ${MAX_MESSAGE_BYTES})`),
    { reason: 'MESSAGE_TOO_LARGE' },
  );

/** A message as it is sent. */
export const frameOf = (message: Uint8Array, flags = 0): Buffer => {
  const frame = Buffer.allocUnsafe(FRAME_HEAD + message.byteLength);
  frame[0] = flags;
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, FRAME_HEAD);
  return frame;
};

/** True for a message that is sent compressed to whoever accepts that. */
export const isWorthZipping = (message: Uint8Array): boolean => message.byteLength >= COMPRESS_FROM_BYTES;

export const zippedFrameOf = async (message: Uint8Array): Promise<Buffer> =>
  frameOf(await zip(message, { level: constants.Z_BEST_SPEED }), COMPRESSED);
