import { createRequire } from 'node:module';

/**
 * What takes most of the time of a send in kafkajs, as it does it, byte for byte, but in a tenth of the time (tests compare):
 * a record and a batch of them (Kafka's record format v2), and the hash of a key.
 */
const crc32c = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/crc32C') as (
  bytes: Uint8Array,
) => number;

/** A record of ours: texts only, and without a time of its own. */
export type PlainRecord = {
  readonly offsetDelta: number;
  readonly key: string;
  readonly value: string | null;
  readonly headers?: { readonly [name: string]: string };
};

/** Length in bytes of a number as a zigzag varint. */
const varIntSize = (value: number): number => {
  const zigzag = (value << 1) ^ (value >> 31);
  return zigzag === 0 ? 1 : Math.ceil((32 - Math.clz32(zigzag)) / 7);
};

/** Writes a zigzag varint and returns what follows it. */
const writeVarInt = (bytes: Buffer, at: number, value: number): number => {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let next = at;
  for (; rest > 0x7f; rest >>>= 7) {
    bytes[next] = (rest & 0x7f) | 0x80;
    next += 1;
  }
  bytes[next] = rest;
  return next + 1;
};

const writeText = (bytes: Buffer, at: number, text: string, length: number): number => {
  const start = writeVarInt(bytes, at, length);
  return start + bytes.write(text, start, length, 'utf8');
};

const NO_VALUE = -1;

/** A record whose time is that of its batch. */
export const encodeRecord = ({ offsetDelta, key, value, headers = {} }: PlainRecord): Buffer => {
  const names = Object.keys(headers);
  const keyLength = Buffer.byteLength(key);
  const valueLength = value === null ? NO_VALUE : Buffer.byteLength(value);
  const lengths: number[] = [];
  // Attributes and the difference of time, both 0.
  let length = 2 + varIntSize(offsetDelta) + varIntSize(keyLength) + keyLength;
  length += varIntSize(valueLength) + Math.max(0, valueLength) + varIntSize(names.length);
  for (const name of names) {
    for (const text of [name, headers[name] ?? '']) {
      const bytes = Buffer.byteLength(text);
      lengths.push(bytes);
      length += varIntSize(bytes) + bytes;
    }
  }
  const bytes = Buffer.allocUnsafe(varIntSize(length) + length);
  let at = writeVarInt(bytes, 0, length);
  bytes[at] = 0;
  bytes[at + 1] = 0;
  at = writeVarInt(bytes, at + 2, offsetDelta);
  at = writeText(bytes, at, key, keyLength);
  at = value === null ? writeVarInt(bytes, at, NO_VALUE) : writeText(bytes, at, value, valueLength);
  at = writeVarInt(bytes, at, names.length);
  names.forEach((name, i) => {
    at = writeText(bytes, at, name, lengths[2 * i] ?? 0);
    at = writeText(bytes, at, headers[name] ?? '', lengths[2 * i + 1] ?? 0);
  });
  return bytes;
};

/** A batch of records without compression; numbers of 64 bits in any form that says them as text. */
export type PlainBatch = {
  readonly firstTimestamp: number | string;
  readonly maxTimestamp: number | string;
  readonly partitionLeaderEpoch?: number;
  readonly lastOffsetDelta: number;
  readonly producerId: { toString(): string };
  readonly producerEpoch: number;
  readonly firstSequence: number;
  readonly records: readonly { readonly buffer: Buffer }[];
};

/** Lengths of a batch: what its own length does not count, and what stands in front of its records. */
const UNCOUNTED = 12;
const BATCH_HEAD = 61;
/** From here on the sum is made. */
const SUMMED_FROM = 21;
const MAGIC = 2;

/** The whole batch, its first offset 0: brokers set it. */
export const encodeBatch = (batch: PlainBatch): Buffer => {
  const { records, firstTimestamp, maxTimestamp, producerId } = batch;
  const length = records.reduce((sum, { buffer }) => sum + buffer.length, BATCH_HEAD);
  const bytes = Buffer.allocUnsafe(length);
  const long = (value: { toString(): string }, at: number): number =>
    bytes.writeBigInt64BE(BigInt(value.toString()), at);
  let at = long(0, 0);
  at = bytes.writeInt32BE(length - UNCOUNTED, at);
  at = bytes.writeInt32BE(batch.partitionLeaderEpoch ?? 0, at);
  bytes[at] = MAGIC;
  at = bytes.writeInt16BE(0, SUMMED_FROM);
  at = bytes.writeInt32BE(batch.lastOffsetDelta, at);
  at = long(firstTimestamp, at);
  at = long(maxTimestamp, at);
  at = long(producerId, at);
  at = bytes.writeInt16BE(batch.producerEpoch, at);
  at = bytes.writeInt32BE(batch.firstSequence, at);
  at = bytes.writeInt32BE(records.length, at);
  for (const { buffer } of records) at += buffer.copy(bytes, at);
  bytes.writeUInt32BE(crc32c(bytes.subarray(SUMMED_FROM)), SUMMED_FROM - 4);
  return bytes;
};

const SEED = 0x9747b28c;
const MULTIPLIER = 0x5bd1e995;

/** Murmur2 as Kafka's own clients compute it of a key: which partition it goes to depends on it. */
export const murmur2 = (key: string): number => {
  const bytes = Buffer.from(key);
  let hash = SEED ^ bytes.length;
  let i = 0;
  for (; i + 4 <= bytes.length; i += 4) {
    const word = Math.imul(bytes.readInt32LE(i), MULTIPLIER);
    hash = Math.imul(hash, MULTIPLIER) ^ Math.imul(word ^ (word >>> 24), MULTIPLIER);
  }
  if (i < bytes.length) {
    for (let last = bytes.length - 1; last >= i; last -= 1)
      hash ^= (bytes[last] as number) << (8 * (last - i));
    hash = Math.imul(hash, MULTIPLIER);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MULTIPLIER);
  return hash ^ (hash >>> 15);
};
