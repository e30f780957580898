import { open } from 'node:fs/promises';

const BLOCK = 512;
const NAME = { at: 0, bytes: 100 } as const;
const SIZE = { at: 124, bytes: 12 } as const;
const CHECKSUM = { at: 148, bytes: 8 } as const;
/** Entries that are followed at most: an export holds some hundreds. */
const MOST_ENTRIES = 100_000;

/**
 * Where a tar that cannot be read is damaged, as the end of a sentence about it: the first place that holds no header, or
 * the entry in which it ends.
 */
export const damageOf = async (path: string): Promise<string> => {
  const file = await open(path);
  try {
    const { size: end } = await file.stat();
    let [at, last] = [0, ''];
    for (let entries = 0; entries < MOST_ENTRIES; entries += 1) {
      const within = last === '' ? '' : ` behind ${last}`;
      if (at >= end) return `it ends at byte ${end}${within} without the blocks that end a tar`;
      const { bytesRead, buffer: header } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, at);
      if (bytesRead < BLOCK)
        return `it is cut off at byte ${end}, in a header${within} that begins at byte ${at}`;
      // What ends a tar is read without complaint.
      if (header.every((byte) => byte === 0)) break;
      if (!isHeader(header)) return `the block at byte ${at}${within} is no header of a file`;
      last = textAt(header, NAME);
      const size = sizeIn(header);
      if (size === undefined) return `the header at byte ${at}, of ${last}, says no size`;
      const next = at + BLOCK + Math.ceil(size / BLOCK) * BLOCK;
      if (next > end) return `it is cut off at byte ${end}, in ${last}, which begins at byte ${at + BLOCK}`;
      at = next;
    }
    return 'its headers contradict each other';
  } finally {
    await file.close();
  }
};

type Field = { readonly at: number; readonly bytes: number };

const textAt = (header: Buffer, { at, bytes }: Field): string =>
  header
    .toString('utf8', at, at + bytes)
    .replace(/\0.*$/s, '')
    .trim();

const octalAt = (header: Buffer, field: Field): number | undefined => {
  const text = textAt(header, field);
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : undefined;
};

/** Sizes from 8 GiB on are written in base 256, marked by the first bit. */
const sizeIn = (header: Buffer): number | undefined => {
  const { at, bytes } = SIZE;
  if (((header[at] ?? 0) & 0x80) === 0) return octalAt(header, SIZE);
  let size = 0;
  for (let i = at + 1; i < at + bytes; i += 1) size = size * 256 + (header[i] ?? 0);
  return Number.isSafeInteger(size) ? size : undefined;
};

/** The checksum is that of the header with blanks in its own place. */
const isHeader = (header: Buffer): boolean => {
  const { at, bytes } = CHECKSUM;
  let sum = 0;
  for (const [i, byte] of header.entries()) sum += i >= at && i < at + bytes ? 0x20 : byte;
  return octalAt(header, CHECKSUM) === sum;
};
