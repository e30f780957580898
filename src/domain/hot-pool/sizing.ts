/**
 * How many agents of one class to keep free, so that an order finds all of its agents at once with probability p.
 * Orders come as a Poisson process and each takes several agents: demand during the lead time is compound Poisson.
 */
export const SERVICE_LEVELS = [0.95, 0.99, 0.999] as const;
export type ServiceLevel = (typeof SERVICE_LEVELS)[number];

/** Quantiles of the standard normal distribution. */
const Z: { readonly [Level in ServiceLevel]: number } = { 0.95: 1.645, 0.99: 2.326, 0.999: 3.09 };

/**
 * Above this mean the normal quantile stands in for the exact one, whose first term vanishes soon after. At a mean of 60 it
 * is still one short at 99.9 %.
 */
const EXACT_BELOW = 500;

export type SizingInputs = {
  /** Orders per hour (λ). */
  readonly ordersPerHour: number;
  /** Hours until a host that is asked for is a free agent (L). */
  readonly leadHours: number;
  /** Agents per order (m₁). */
  readonly meanSize: number;
  /** Mean of the squared agents per order (m₂). */
  readonly meanSquare: number;
  /** p. */
  readonly serviceLevel: ServiceLevel;
};

/** Mean demand during the lead time (μ). */
export const demandInLeadTime = ({ ordersPerHour, leadHours, meanSize }: SizingInputs): number =>
  ordersPerHour * leadHours * meanSize;

/** Agents that are to be free or on their way (S). */
export const baseStock = (inputs: SizingInputs): number => {
  const { ordersPerHour, leadHours, meanSize, meanSquare, serviceLevel } = inputs;
  const mean = demandInLeadTime(inputs);
  if (mean === 0) return 0;
  if (meanSize === 1 && meanSquare === 1 && mean < EXACT_BELOW) return poissonQuantile(mean, serviceLevel);
  return Math.ceil(mean + Z[serviceLevel] * Math.sqrt(ordersPerHour * leadHours * meanSquare));
};

/** The smallest n with P(N ≤ n) ≥ p. */
export const poissonQuantile = (mean: number, p: number): number => {
  let term = Math.exp(-mean);
  let sum = term;
  let n = 0;
  while (sum < p) {
    n += 1;
    term *= mean / n;
    sum += term;
  }
  return n;
};

/** Small changes are no news: S follows only a change of at least 1 and at least a tenth. */
export const isNewTarget = (before: number, after: number): boolean =>
  Math.abs(after - before) >= Math.max(1, before / 10);

/** Agents that orders of low priority leave alone: the largest order of high priority, and never less than the mean. */
export const floorFor = (largestHigh: number, meanSize: number): number =>
  Math.max(Math.ceil(largestHigh), Math.ceil(meanSize));

/** Hosts that wait for nothing, on average, and what they cost per hour. */
export const idleCost = (target: number, inputs: SizingInputs, perHostHour: number): number =>
  Math.max(0, target - demandInLeadTime(inputs)) * perHostHour;
