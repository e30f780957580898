import type { Position } from '../../../app/log/event-store.ts';

/**
 * Tells a repeated append from a first one: the server answers both alike, with the position of the events. A position
 * that this process had seen before it sent the append, or that it was already answered with, is an old one. What
 * another process stored meanwhile and this one never saw is not recognised.
 */
export type Watermark = {
  /** Notes a position that was read or yielded. */
  saw(position: Position): void;
  /** Notes a position that an append was answered with. */
  acknowledged(position: Position): void;
  highest(): Position;
  isOld(position: Position, seenBefore: Position): boolean;
};

/** More than appends can be under way at once (batch-writer MAX_PENDING). */
const REMEMBERED = 8192;

/** A set that forgets its oldest member when it would hold more than `limit`. */
export const createRecentSet = <T>(limit: number) => {
  const members = new Set<T>();
  return {
    has: (member: T): boolean => members.has(member),
    delete: (member: T): void => void members.delete(member),
    add: (member: T): void => {
      members.add(member);
      const [oldest] = members.size > limit ? members : [];
      if (oldest !== undefined) members.delete(oldest);
    },
  };
};

export const createWatermark = (): Watermark => {
  let highest: Position = '';
  const answered = createRecentSet<Position>(REMEMBERED);
  const saw = (position: Position): void => {
    if (position > highest) highest = position;
  };
  return {
    saw,
    acknowledged: (position) => {
      saw(position);
      answered.add(position);
    },
    highest: () => highest,
    isOld: (position, seenBefore) => position <= seenBefore || answered.has(position),
  };
};
