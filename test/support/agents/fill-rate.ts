import { refill } from '../../../src/domain/hot-pool/refill.ts';
import { baseStock, SERVICE_LEVELS, type ServiceLevel } from '../../../src/domain/hot-pool/sizing.ts';

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
const randomOf = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
};

export type Arrivals = {
  readonly ordersPerHour: number;
  readonly leadHours: number;
  /** Sizes of orders, each as likely as the others. */
  readonly sizes: readonly number[];
  readonly serviceLevel: ServiceLevel;
};

const SINGLE = [
  [2, 0.25],
  [2, 1],
  [10, 0.25],
  [10, 1],
  [60, 0.25],
  [60, 1],
] as const;

/** Rows of the sizing tables: of large orders it has 99 % alone. */
export const ARRIVALS: readonly Arrivals[] = [
  ...SERVICE_LEVELS.flatMap((serviceLevel) =>
    SINGLE.map(([ordersPerHour, leadHours]) => ({ ordersPerHour, leadHours, sizes: [1], serviceLevel })),
  ),
  ...[0.25, 1].map((leadHours) => ({
    ordersPerHour: 10,
    leadHours,
    sizes: [2, 6],
    serviceLevel: 0.99 as const,
  })),
];

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Orders come as a Poisson process to a pool that is refilled after each of them. Hosts need a third of the lead time to all
 * of it: that is their deadline. An order that finds too few waits its turn, and gets hosts as they come. What a cluster
 * gets it keeps.
 */
export const simulateFillRate = (
  { ordersPerHour, leadHours, sizes, serviceLevel }: Arrivals,
  orders: number,
  seed: number,
): number => {
  const random = randomOf(seed);
  const [meanSize, meanSquare] = [mean(sizes), mean(sizes.map((size) => size ** 2))];
  const target = baseStock({ ordersPerHour, leadHours, meanSize, meanSquare, serviceLevel });
  let [now, free, found] = [0, target, 0];
  /** Times at which hosts become free, and orders that wait, in their order. */
  const coming: number[] = [];
  const waiting: number[] = [];
  const serve = (): void => {
    for (let next = waiting[0]; next !== undefined && next <= free; next = waiting[0]) {
      free -= next;
      waiting.shift();
    }
  };
  for (let order = 0; order < orders; order += 1) {
    now -= Math.log(1 - random()) / ordersPerHour;
    for (let at = coming[0]; at !== undefined && at <= now; at = coming[0]) {
      coming.shift();
      free += 1;
      serve();
    }
    const size = sizes[Math.floor(random() * sizes.length)] ?? 1;
    if (waiting.length === 0 && size <= free) {
      free -= size;
      found += 1;
    } else waiting.push(size);
    const awaited = waiting.reduce((sum, each) => sum + each, 0);
    const started = refill({ target, free, discovering: coming.length, awaited }, Infinity);
    for (let host = 0; host < started; host += 1) coming.push(now + leadHours * (1 / 3 + (random() * 2) / 3));
    coming.sort((left, right) => left - right);
  }
  return found / orders;
};
