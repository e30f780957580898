import { hash } from 'node:crypto';

/** Hashes of a Merkle tree as RFC 6962 §2.1 defines them, over SHA-256. */
export const HASH_BYTES = 32;

const LEAF_PREFIX = Buffer.of(0x00);
/** A node is hashed over this byte and its two hashes. */
const NODE_MARK = 0x01;
const NODE_BYTES = 1 + 2 * HASH_BYTES;

/** By way of a text, which takes half as long as letting each hash have memory of its own. */
export const sha256 = (bytes: Uint8Array | string): Buffer =>
  Buffer.from(hash('sha256', bytes, 'binary'), 'latin1');

/** Hash of a leaf: its prefix differs from that of nodes, so that no leaf can pass for a node. */
export const leafHash = (bytes: Uint8Array): Buffer => sha256(Buffer.concat([LEAF_PREFIX, bytes]));

/** `leafHash` of the UTF-8 of a text, whose mark is the character 0: no bytes are made of it before they are hashed. */
export const leafHashOfText = (text: string): Buffer => sha256(`\0${text}`);

/** Hash of an inner node. Throws TypeError unless both are hashes: other lengths would let two trees look alike. */
export const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => {
  if (!isHash(left) || !isHash(right))
    throw new TypeError(`a node is made of two hashes of ${HASH_BYTES} bytes`);
  const bytes = Buffer.allocUnsafe(NODE_BYTES);
  bytes[0] = NODE_MARK;
  bytes.set(left, 1);
  bytes.set(right, 1 + HASH_BYTES);
  return sha256(bytes);
};

/** Root of the tree without leaves. */
export const emptyRoot = (): Buffer => sha256('');

export const isHash = (bytes: Uint8Array): boolean => bytes.length === HASH_BYTES;

/** Hash of the complete subtree of 2^level leaves that is number `index` of its level, from the left. */
export type HashAt = (level: number, index: number) => Buffer;

/** Throws RangeError for what is no size, index or level: a bug of the caller, or a number that was not checked. */
export const assertSize = (value: number, what: string): void => {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`${what} ${value} is not a whole number from 0`);
};
