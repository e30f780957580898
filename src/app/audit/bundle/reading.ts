import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { HASH_BYTES } from '../merkle/hashing.ts';
import type { BundleSource } from './format.ts';
import type { ExpectedLeaves } from './alignment.ts';

/** Bounds of what is held in memory of a bundle that may have been made to exhaust it. */
const MOST_SMALL_BYTES = 64 * 1024 * 1024;
const MOST_LINE_BYTES = 16 * 1024 * 1024;

/** What was given is something else. The message says what: it ends a sentence that says that it is no bundle. */
export class NotABundle extends Error {
  override readonly name = 'NotABundle';
}

export type Digest = { readonly bytes: number; readonly sha256: string };

/** A bundle whose files are read once each, and digested on the way. */
export type DigestedSource = {
  readonly digests: ReadonlyMap<string, Digest>;
  readonly stream: (name: string) => AsyncIterable<Uint8Array>;
  /** A whole file that is small by nature. Throws RangeError for one that is not. */
  readonly whole: (name: string) => Promise<Buffer>;
};

export const digesting = (source: BundleSource): DigestedSource => {
  const digests = new Map<string, Digest>();
  async function* stream(name: string): AsyncGenerator<Uint8Array> {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of source.read(name)) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
    digests.set(name, { bytes, sha256: hash.digest('hex') });
  }
  return {
    digests,
    stream,
    whole: async (name) => {
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of stream(name)) {
        bytes += chunk.length;
        if (bytes > MOST_SMALL_BYTES) throw new RangeError(`it is larger than ${MOST_SMALL_BYTES} bytes`);
        chunks.push(chunk);
      }
      return Buffer.concat(chunks);
    },
  };
};

export type TextLine = {
  /** Undefined for a line that is too long or no UTF-8. */
  readonly text: string | undefined;
  /** False for a last line without newline: the file was cut off. */
  readonly ended: boolean;
};

/** Texts of a whole chunk would outlive the young generation while they wait their turn. */
const MOST_LINES_AT_ONCE = 32;

/** Lines of a file, some at a time. */
export async function* lineBatches(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TextLine[]> {
  let rest: Uint8Array[] = [];
  let held = 0;
  const take = (tail: Uint8Array, ended: boolean): TextLine => {
    const bytes = rest.length === 0 ? tail : Buffer.concat([...rest, tail]);
    const fits = held + tail.length <= MOST_LINE_BYTES && isUtf8(bytes);
    rest = [];
    held = 0;
    return {
      text: fits ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8') : undefined,
      ended,
    };
  };
  for await (const chunk of chunks) {
    let lines: TextLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      lines.push(take(chunk.subarray(start, end), true));
      start = end + 1;
      if (lines.length < MOST_LINES_AT_ONCE) continue;
      yield lines;
      lines = [];
    }
    held += chunk.length - start;
    // Of a line that is too long already nothing more is kept.
    if (start < chunk.length && held <= MOST_LINE_BYTES) rest.push(chunk.subarray(start));
    if (lines.length > 0) yield lines;
  }
  if (held > 0) yield [take(new Uint8Array(), false)];
}

export type LeafWindow = ExpectedLeaves & {
  /** Reads on until so many leaves are ahead, or there are no more. */
  readonly fill: (leaves: number) => Promise<void>;
  /** Bytes behind the last whole hash: 0 in a sound file. Known at the end. */
  readonly oddBytes: () => number;
};

/** Hashes of a leaves file, read as needed. `onLeaf` sees each once, in order. */
export const leafWindow = (
  chunks: AsyncIterable<Uint8Array>,
  from: number,
  onLeaf: (leaf: Buffer) => void,
): LeafWindow => {
  const iterator = chunks[Symbol.asyncIterator]();
  // As they came: a buffer of each leaf would outlive the young generation, and the verifier be half as large again.
  let bytes: Buffer = Buffer.alloc(0);
  let start = 0;
  let place = from;
  let done = false;
  const leafAt = (at: number): Buffer => bytes.subarray(at, at + HASH_BYTES);
  const ahead = (): number => Math.floor((bytes.length - start) / HASH_BYTES);
  const readMore = async (): Promise<void> => {
    const next = await iterator.next();
    if (next.done === true) {
      done = true;
      return;
    }
    const seen = ahead() * HASH_BYTES;
    bytes = Buffer.concat([bytes.subarray(start), next.value]);
    start = 0;
    for (let at = seen; at + HASH_BYTES <= bytes.length; at += HASH_BYTES) onLeaf(leafAt(at));
  };
  return {
    ahead: (leaves) => (leaves < ahead() ? leafAt(start + leaves * HASH_BYTES) : undefined),
    advance: (places) => {
      start += places * HASH_BYTES;
      place += places;
    },
    place: () => place,
    fill: async (leaves) => {
      while (!done && ahead() < leaves) await readMore();
    },
    oddBytes: () => (bytes.length - start) % HASH_BYTES,
  };
};
