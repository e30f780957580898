import { hash, randomBytes } from 'node:crypto';

/**
 * Whole numbers by text, for as many texts as a log has streams: 8 bytes of a keyed hash stand for the text. In a million
 * texts two are taken for one another once in some ten million runs.
 */
export type TextTable = {
  /** The row of a text, which is made of zeros when it is a new one; good until the next call. */
  readonly rowOf: (text: string) => { readonly row: number; readonly isNew: boolean };
  readonly get: (row: number, column: number) => number;
  /** `value`: 0 to 2^32 - 1. */
  readonly set: (row: number, column: number, value: number) => void;
};

const FIRST_ROWS = 1024;
/** Parts of the rows that may be taken: beyond, looking for a free one takes long. */
const MOST_TAKEN = 0.75;
const KEY_NUMBERS = 2;

export const createTextTable = (columns: number): TextTable => {
  const hashOf = createTextHash();
  const width = KEY_NUMBERS + columns;
  let rows = FIRST_ROWS;
  let cells = new Uint32Array(rows * width);
  let taken = 0;

  /** A free row has a key of zeros. */
  const rowWith = (high: number, low: number): number => {
    let row = low & (rows - 1);
    for (;;) {
      const at = row * width;
      const [there, below] = [cells[at], cells[at + 1]];
      if ((there === high && below === low) || (there === 0 && below === 0)) return row;
      row = (row + 1) & (rows - 1);
    }
  };
  const grow = (): void => {
    const old = cells;
    rows *= 2;
    cells = new Uint32Array(rows * width);
    for (let at = 0; at < old.length; at += width) {
      const [high = 0, low = 0] = [old[at], old[at + 1]];
      if (high !== 0 || low !== 0) cells.set(old.subarray(at, at + width), rowWith(high, low) * width);
    }
  };
  const isFree = (row: number): boolean => cells[row * width] === 0 && cells[row * width + 1] === 0;

  return {
    rowOf: (text) => {
      if (taken >= rows * MOST_TAKEN) grow();
      const [high, low] = hashOf(text);
      const row = rowWith(high, low);
      const isNew = isFree(row);
      if (isNew) {
        cells.set([high, low], row * width);
        taken += 1;
      }
      return { row, isNew };
    },
    get: (row, column) => cells[row * width + KEY_NUMBERS + column] ?? 0,
    set: (row, column, value) => {
      cells[row * width + KEY_NUMBERS + column] = value;
    },
  };
};

/**
 * 64 bits of a hash of a text, as two numbers of 32, of which the second is never 0. Keyed by chance, so that nobody can look
 * for two texts of one hash beforehand.
 */
export const createTextHash = (): ((text: string) => readonly [number, number]) => {
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
