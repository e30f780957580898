import type { Position } from '../log/event-store.ts';

/** Characters of a position that counts bytes: commit and prepare of an EventStoreDB. Others count events. */
const BYTE_POSITION = 40;
const FAR_BYTES = 10_000_000n;
const FAR_EVENTS = 10_000n;

/** Whether so much of the log lies between the two that reading it again would take a while. */
export const isFarBehind = (from: Position | undefined, to: Position | undefined): boolean => {
  if (to === undefined) return false;
  const counts = to.length !== BYTE_POSITION;
  const number = (position: Position): bigint =>
    BigInt(counts ? position : position.slice(0, BYTE_POSITION / 2));
  return number(to) - (from === undefined ? 0n : number(from)) >= (counts ? FAR_EVENTS : FAR_BYTES);
};
