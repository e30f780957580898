import { createRandom } from '../event-store/faulty-store.ts';

/** A seeded source of decisions. `fork` gives an independent one, so that one part drawing more does not shift the others. */
export type Random = {
  /** In [0, 1). */
  next(): number;
  /** Whole number from `low` to `high`, both included. */
  int(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  fork(name: string): Random;
};

export const randomOf = (seed: number): Random => {
  const next = createRandom(seed);
  return {
    next,
    int: (low, high) => low + Math.floor(next() * (high - low + 1)),
    // One number per call, also for certain outcomes: what follows does not depend on a probability being 0.
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new TypeError('nothing to pick from');
      return item;
    },
    fork: (name) => randomOf(mix(seed, name)),
  };
};

/** FNV-1a over the name, started from the seed. */
const mix = (seed: number, name: string): number => {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
};
