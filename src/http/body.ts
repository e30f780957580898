import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { JsonValue } from '../domain/json.ts';
import { ApiError, invalid } from './errors.ts';

/**
 * Largest request body, bytes: annotations at their limit, and as much as an eighth of that for the rest. Each 100 kB
 * hold the thread for some 3 ms until they are parsed, checked, hashed and stored.
 */
export const MAX_BODY_BYTES = 288 * 1024;
/** A body above it is handled in several turns of the thread, so that others are served in between. */
export const LARGE_BODY_BYTES = 32 * 1024;
/** What is read and dropped of a larger one, so that the sender gets to see the answer. */
const MAX_DROPPED_BYTES = 32 * 1024 * 1024;
/** Levels of nested objects and lists; counted before anything is parsed. */
export const MAX_JSON_DEPTH = 64;
/** Members of objects and items of lists, all levels together; more would hold the thread for too long. */
export const MAX_JSON_VALUES = 5_000;

/** Bytes of a body that is read from anybody; who sends more, or does not say how much, is asked for a token first. */
export const SMALL_BODY_BYTES = 64 * 1024;

/** Throws ApiError 413 for what is announced beyond all reason. */
export const isSmallBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean => {
  if (headers['transfer-encoding'] !== undefined) return false;
  const announced = announcedBytes(headers);
  if (announced > MAX_DROPPED_BYTES) throw tooLarge(MAX_BODY_BYTES, true);
  return announced <= SMALL_BODY_BYTES;
};

const announcedBytes = (headers: IncomingMessage['headers']): number =>
  Number(headers['content-length'] ?? 0) || 0;

/** Memory that the bodies of all running requests may take together. */
export type BodyBudget = {
  /** False when that much is not left. */
  take(bytes: number): boolean;
  give(bytes: number): void;
};

export const createBodyBudget = (bytes: number): BodyBudget => {
  let left = bytes;
  return {
    take: (wanted) => {
      if (wanted > left) return false;
      left -= wanted;
      return true;
    },
    give: (returned) => {
      left += returned;
    },
  };
};

export type ReadBodyOptions = {
  /** Largest body, bytes. Default `MAX_BODY_BYTES`. */
  readonly limit?: number;
  readonly budget?: BodyBudget | undefined;
  /** Told of the bytes that have come, also of a body that is refused. */
  readonly onBytes?: (bytes: number) => void;
};

/** Reads the whole body. Throws ApiError: 413 past the limit, 415 when it is compressed, 503 past the budget. */
export const readBody = async (
  request: IncomingMessage,
  { limit = MAX_BODY_BYTES, budget, onBytes }: ReadBodyOptions = {},
): Promise<Buffer> => {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new ApiError(
      'UNSUPPORTED_MEDIA_TYPE',
      `content encoding '${encoding}' is not supported; send plain JSON`,
    );
  }
  if (announcedBytes(request.headers) > MAX_DROPPED_BYTES) throw tooLarge(limit, true);
  const kept = collect(budget);
  try {
    return await receive(request, limit, kept, onBytes);
  } finally {
    kept.release();
  }
};

const receive = (
  request: IncomingMessage,
  limit: number,
  kept: ReturnType<typeof collect>,
  onBytes: ReadBodyOptions['onBytes'],
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    let bytes = 0;
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      onBytes?.(bytes);
      if (bytes > MAX_DROPPED_BYTES) reject(tooLarge(limit, true));
      else if (bytes > limit) kept.release();
      else if (!kept.add(part)) reject(tooManyBodies());
    });
    request.on('end', () => {
      if (bytes > limit) reject(tooLarge(limit, false));
      else resolve(kept.taken());
    });
    // Hanging up in the middle of a body comes as an error of the request.
    request.on('error', (error) => {
      reject(new ApiError('CANCELLED', 'the caller went away', { cause: error }));
    });
  });

const FIRST_BYTES = 4_096;

/**
 * One buffer that grows with what arrives, not with what is announced. Parts of a byte each would otherwise take a hundred times
 * what they hold.
 */
const collect = (budget: BodyBudget | undefined) => {
  let buffer = Buffer.alloc(0);
  let length = 0;
  let released = false;
  const grow = (needed: number): boolean => {
    const capacity = Math.max(needed, 2 * buffer.length, FIRST_BYTES);
    if (budget?.take(capacity - buffer.length) === false) return false;
    const larger = Buffer.allocUnsafeSlow(capacity);
    buffer.copy(larger, 0, 0, length);
    buffer = larger;
    return true;
  };
  return {
    /** False when there is no room in the budget. */
    add: (part: Buffer): boolean => {
      if (released) return true;
      if (length + part.length > buffer.length && !grow(length + part.length)) return false;
      part.copy(buffer, length);
      length += part.length;
      return true;
    },
    taken: (): Buffer => buffer.subarray(0, length),
    /** Gives back what was taken of the budget, and keeps nothing of what still comes. */
    release: (): void => {
      released = true;
      budget?.give(buffer.length);
      buffer = Buffer.alloc(0);
      length = 0;
    },
  };
};

export const tooManyBodies = (): ApiError =>
  new ApiError(
    'UNAVAILABLE',
    'too much is being sent to this service at once; nothing was stored, try again',
    { reason: 'TOO_MANY_BODIES', retryAfterSeconds: 1, headers: { connection: 'close' } },
  );

const tooLarge = (limit: number, hangUp: boolean): ApiError =>
  new ApiError(
    'BODY_TOO_LARGE',
    `the request body is larger than ${limit} bytes`,
    hangUp ? { headers: { connection: 'close' } } : {},
  );

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export const tooManyValues = (): ApiError =>
  invalid(`the request body holds more than ${MAX_JSON_VALUES} values`);

/** The body as text: UTF-8, not nested deeper and with no more values than the limits. Throws ApiError 400. */
export const bodyText = (body: Buffer): string => {
  if (!isUtf8(body)) throw invalid('the request body is not valid UTF-8');
  let depth = 0;
  let values = 1;
  let inText = false;
  for (let i = 0; i < body.length; i += 1) {
    const byte = body[i];
    if (inText) {
      if (byte === BACKSLASH) i += 1;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === COMMA) {
      values += 1;
      if (values > MAX_JSON_VALUES) throw tooManyValues();
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH)
        throw invalid(`the request body is nested deeper than ${MAX_JSON_DEPTH} levels`);
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return body.toString('utf8');
};

/** Parses JSON; the answer names line and column but repeats nothing of the body, which may hold secrets. */
export const parseJson = (text: string): JsonValue => {
  if (text.trim() === '') throw invalid('the request body is empty; a JSON object is expected');
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new ApiError('INVALID_ARGUMENT', `the request body is not valid JSON${whereIn(text, error)}`, {
      reason: 'MALFORMED_JSON',
      cause: error,
    });
  }
};

const linesBefore = (text: string, at: number): number => {
  let lines = 0;
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', end + 1)) lines += 1;
  return lines;
};

/** Only these four are white space in JSON; a byte order mark is none. */
const TOKEN =
  /[ \t\n\r]+|"(?:[^"\\\p{Cc}]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/uy;

/** V8 tells the position of some faults only; the others are the first place that fits no JSON value, or the end. */
const whereIn = (text: string, error: unknown): string => {
  const told = /at position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
  const at = told === undefined ? firstFault(text) : Number(told);
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  const place = `line ${1 + linesBefore(text, at)}, column ${at - (at === 0 ? 0 : lineStart) + 1}`;
  return at >= text.length ? `: unexpected end at ${place}` : ` at ${place}`;
};

/** Where the text ceases to be the beginning of a JSON value; its length when only the rest is missing. */
const firstFault = (text: string): number => {
  const token = new RegExp(TOKEN);
  const open: string[] = [];
  let wanted: keyof typeof FITS = 'value';
  let at = 0;
  while (at < text.length) {
    token.lastIndex = at;
    const [found = ''] = token.exec(text) ?? [];
    if (found === '') return at;
    if (!/^[ \t\n\r]/.test(found)) {
      if (!FITS[wanted].test(found)) return at;
      wanted = after(found, wanted, open);
      if (wanted === 'nothing') return at;
    }
    at += found.length;
  }
  return at;
};

/** What may come next, by how a token begins. */
const FITS = {
  value: /^[{["\-\dtfn]/,
  firstItem: /^[{["\-\dtfn\]]/,
  firstKey: /^["}]/,
  key: /^"/,
  colon: /^:/,
  rest: /^[,}\]]/,
  end: /^(?!)/,
  nothing: /^(?!)/,
} as const;

/** What is wanted after a token that fits; `open` holds the brackets that are not closed yet. */
const after = (token: string, wanted: keyof typeof FITS, open: string[]): keyof typeof FITS => {
  if (token === '{' || token === '[') {
    open.push(token);
    return token === '{' ? 'firstKey' : 'firstItem';
  }
  if (token === ':') return 'value';
  if (token === ',') return open.at(-1) === '{' ? 'key' : 'value';
  const closes = token === '}' || token === ']';
  if (closes && open.pop() !== (token === '}' ? '{' : '[')) return 'nothing';
  if (!closes && (wanted === 'key' || wanted === 'firstKey')) return 'colon';
  return open.length === 0 ? 'end' : 'rest';
};
