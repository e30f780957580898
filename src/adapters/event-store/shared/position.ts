import type { Position } from '../../../app/log/event-store.ts';

/** Width of a position: enough for 2^53, so that positions sort as text. */
const DIGITS = 16;
const SHAPE = /^\d{16}$/;

/** The position of the n-th event of a log, n from 1. */
export const formatPosition = (n: number): Position => String(n).padStart(DIGITS, '0');

/** Inverse of `formatPosition`; undefined is the beginning of the log, 0. Throws TypeError for anything else. */
export const parsePosition = (position: Position | undefined): number => {
  if (position === undefined) return 0;
  if (!SHAPE.test(position)) throw new TypeError(`"${position}" is not a position of this store`);
  return Number(position);
};
