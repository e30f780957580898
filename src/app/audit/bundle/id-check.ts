import { hash, randomBytes } from 'node:crypto';
import type { Finding, Findings } from './findings.ts';

/** Ids of one block, each as 8 bytes of a keyed hash. */
const BLOCK = 65_536;
/** Ids that are looked for again to be named. */
const MOST_NAMED = 100;

type Met = { readonly stream: string; readonly revision: number; readonly id: string };

/** Finds ids that come twice among millions with 16 bytes each: which they are shows when the events are read again. */
export type IdCheck = {
  readonly add: (id: string) => void;
  /** Undefined where no id comes twice. Called once: the ids are let go. */
  readonly doubles: () => DoubleIds | undefined;
};

export type DoubleIds = {
  /** The events once more, in the same order: each whose id another one had is told. */
  readonly next: (event: Met, where: Pick<Finding, 'file' | 'line'> & { readonly place: number }) => void;
};

export const createIdCheck = (findings: Findings): IdCheck => {
  const hashOf = createTextHash();
  let blocks: Uint32Array<ArrayBuffer>[] = [];
  let count = 0;

  const sorted = (): BigUint64Array => {
    const all = new BigUint64Array(count);
    for (const [at, block] of blocks.entries())
      all.set(new BigUint64Array(block.buffer, 0, Math.min(BLOCK, count - at * BLOCK)), at * BLOCK);
    blocks = [];
    return all.sort();
  };

  return {
    add: (id) => {
      const at = count % BLOCK;
      if (at === 0) blocks.push(new Uint32Array(2 * BLOCK));
      blocks.at(-1)?.set(hashOf(id), 2 * at);
      count += 1;
    },
    doubles: () => {
      const all = sorted();
      const twice = new Set<bigint>();
      for (let at = 1; at < all.length && twice.size < MOST_NAMED; at += 1)
        if (all[at] === all[at - 1]) twice.add(all[at] as bigint);
      if (twice.size === 0) return undefined;
      const places = new Map<string, number>();
      return {
        next: ({ stream, revision, id }, where) => {
          const [number] = new BigUint64Array(Uint32Array.from(hashOf(id)).buffer);
          if (!twice.has(number as bigint)) return;
          const before = places.get(id);
          if (before === undefined) {
            places.set(id, where.place);
            return;
          }
          findings.add({
            code: 'added-event',
            ...where,
            event: `${stream}@${revision}`,
            message: `its id is that of the event at place ${before}: no two events have one`,
          });
        },
      };
    },
  };
};

/**
 * 64 bits of a hash of a text, as two numbers of 32, of which the second is never 0. Keyed by chance, so that nobody can look
 * for two texts of one hash beforehand.
 */
const createTextHash = (): ((text: string) => readonly [number, number]) => {
  const salt = randomBytes(16).toString('hex');
  return (text) => {
    // A text of 32 units: half the time of a buffer.
    const digest = hash('sha256', salt + text, 'binary');
    return [numberAt(digest, 0), numberAt(digest, 4) || 1];
  };
};

const numberAt = (bytes: string, at: number): number =>
  (bytes.charCodeAt(at) |
    (bytes.charCodeAt(at + 1) << 8) |
    (bytes.charCodeAt(at + 2) << 16) |
    (bytes.charCodeAt(at + 3) << 24)) >>>
  0;
