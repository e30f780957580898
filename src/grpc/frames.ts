import { promisify } from 'node:util';
import { gunzip, gzip, constants } from 'node:zlib';
import type { ServerHttp2Stream } from 'node:http2';
import { MAX_BODY_BYTES, tooManyBodies, type BodyBudget } from '../http/body.ts';
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

const unzip = promisify(gunzip);
const zip = promisify(gzip);

export type MessageReader = {
  /** Bytes of the next message as its head announces them; undefined: none comes. Throws ApiError. */
  readonly announced: () => Promise<number | undefined>;
  /** The next message, out of its compression; undefined: none comes. Throws ApiError. */
  readonly next: () => Promise<Buffer | undefined>;
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
};

export const readMessages = (
  stream: ServerHttp2Stream,
  { budget, onBytes, encoding, arrivalMs = ARRIVAL_MS }: ReaderOptions,
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
  const announced = async (): Promise<number | undefined> => {
    if (!(await has(FRAME_HEAD))) {
      if (held.size > 0) throw cutOff();
      return undefined;
    }
    const length = held.peek(FRAME_HEAD).readUInt32BE(1);
    if (length > MAX_MESSAGE_BYTES) throw tooLong(length);
    return length;
  };
  return {
    announced,
    has,
    rest: () => held.take(held.size),
    next: async () => {
      const length = await announced();
      if (length === undefined) return undefined;
      if (!(await has(FRAME_HEAD + length))) throw cutOff();
      const flags = held.take(FRAME_HEAD)[0] ?? 0;
      const bytes = held.take(length);
      stream.resume();
      return opened(flags, bytes, encoding);
    },
    stop: () => {
      failure ??= gone;
      held.release();
      stream.resume();
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

const opened = async (flags: number, bytes: Buffer, encoding: string | undefined): Promise<Buffer> => {
  if (flags === 0) return bytes;
  if (flags !== COMPRESSED) throw invalid('the message has flags that this service does not know');
  if (encoding === undefined || encoding === 'identity')
    throw invalid("the message is compressed, but 'grpc-encoding' names no compression");
  try {
    return await unzip(bytes, { maxOutputLength: MAX_MESSAGE_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLong(undefined);
    throw new ApiError('INVALID_ARGUMENT', 'the compressed message cannot be read', { cause: error });
  }
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
