import { addressText, firstNot, moved, parseRange, type Address, type Range } from '../ranges.ts';

/**
 * Prefixes as aligned blocks of addresses. A list of them is in order, disjoint, and holds no two halves of one block:
 * what is free in a /64 is a few blocks, however many addresses it has.
 */
export type Block = readonly [from: Address, to: Address, length: number];

export const blockOf = ({ from, to, text }: Range): Block => [from, to, Number(text.split('/')[1])];

/** Blocks of texts that are ranges. */
export const blocksOf = (texts: readonly string[]): readonly Block[] =>
  texts.flatMap((text) => {
    const range = parseRange(text);
    return range === undefined ? [] : [blockOf(range)];
  });

export const blockText = ([from, , length]: Block): string => `${addressText(from)}/${length}`;

export const bitsOf = ([from]: Block): number => from.length * 4;
export const sizeOfBlock = (block: Block): bigint => 1n << BigInt(bitsOf(block) - block[2]);

/** Of one family or not: addresses of one length sort as their numbers do. */
export const isWithinBlock = (inner: Block, outer: Block): boolean =>
  inner[0].length === outer[0].length && outer[0] <= inner[0] && inner[1] <= outer[1];
export const areDisjoint = (left: Block, right: Block): boolean =>
  left[0].length !== right[0].length || left[1] < right[0] || right[1] < left[0];

const halvesOf = (block: Block): readonly [Block, Block] => {
  const [from, to, length] = block;
  const middle = moved(from, sizeOfBlock(block) / 2n);
  return [
    [from, moved(middle, -1n), length + 1],
    [middle, to, length + 1],
  ];
};

/** As orders name them. */
export type Family = 'v4' | 'v6';
export const FAMILY_NAMES: readonly Family[] = ['v4', 'v6'];
export const familyOf = (block: Block): Family => (bitsOf(block) === 32 ? 'v4' : 'v6');

/** What is left of a block without another one. */
export const cutOut = (block: Block, taken: Block): readonly Block[] => {
  if (areDisjoint(block, taken)) return [block];
  if (isWithinBlock(block, taken)) return [];
  return halvesOf(block).flatMap((half) => cutOut(half, taken));
};

export const withoutBlock = (blocks: readonly Block[], taken: Block): readonly Block[] =>
  blocks.flatMap((block) => cutOut(block, taken));

/** The other half of the block that it is a half of. */
const isOtherHalf = (block: Block, other: Block, whole: Block): boolean =>
  other[2] === block[2] && isWithinBlock(other, whole) && other[0] !== block[0];

const wholeOf = (block: Block): Block => {
  const [from, , length] = block;
  const size = sizeOfBlock(block);
  const start = BigInt(`0x${from}`) & ~size;
  const whole = start.toString(16).padStart(from.length, '0');
  return [whole, moved(whole, size * 2n - 1n), length - 1];
};

/** With a block that is disjoint from them; two halves become one. */
export const withBlock = (blocks: readonly Block[], block: Block): readonly Block[] => {
  const at = firstNot(blocks, ([from]) => from < block[0]);
  if (block[2] > 0) {
    const whole = wholeOf(block);
    for (const next of [at - 1, at]) {
      const other = blocks[next];
      if (other !== undefined && isOtherHalf(block, other, whole))
        return withBlock(blocks.toSpliced(next, 1), whole);
    }
  }
  return blocks.toSpliced(at, 0, block);
};

/** Best fit: of the smallest block that is large enough (the first of several) its lowest part. */
export const bestFit = (blocks: readonly Block[], length: number): Block | undefined => {
  let best: Block | undefined;
  for (const block of blocks)
    if (block[2] <= length && (best === undefined || block[2] > best[2])) best = block;
  if (best === undefined) return undefined;
  const size = 1n << BigInt(bitsOf(best) - length);
  return [best[0], moved(best[0], size - 1n), length];
};
