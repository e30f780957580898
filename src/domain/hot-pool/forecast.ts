/**
 * What orders of one class are to be expected: means over whole hours, of which one of a day ago counts half. Folded from
 * the orders that came, by their recorded times alone.
 */
export const HALF_LIFE_HOURS = 24;
const KEPT_OF_AN_HOUR = 2 ** (-1 / HALF_LIFE_HOURS);
const HOUR_MS = 3_600_000;

type Sums = { readonly orders: number; readonly agents: number; readonly squares: number };
const NONE: Sums = { orders: 0, agents: 0, squares: 0 };

export type Demand = {
  /** Hours since 1970, of the one that is being counted. */
  readonly hour: number;
  /** Of that hour until now. */
  readonly counted: Sums;
  /** Per hour, of the hours before. Absent in the first one. */
  readonly mean?: Sums;
  /** The largest order of high priority that ever came. */
  readonly largestHigh: number;
};

export type Expected = {
  readonly ordersPerHour: number;
  readonly meanSize: number;
  readonly meanSquare: number;
};

const hourOf = (at: string): number => Math.floor(Date.parse(at) / HOUR_MS);

const blend = (mean: Sums | undefined, hour: Sums): Sums => {
  if (mean === undefined) return hour;
  const part = (before: number, now: number): number =>
    before * KEPT_OF_AN_HOUR + now * (1 - KEPT_OF_AN_HOUR);
  return {
    orders: part(mean.orders, hour.orders),
    agents: part(mean.agents, hour.agents),
    squares: part(mean.squares, hour.squares),
  };
};

/** Closes the hours that are over; those without an order count as well. A clock that went back closes none. */
const until = (demand: Demand, hour: number): Demand => {
  const over = hour - demand.hour;
  if (over <= 0) return demand;
  const mean = blend(demand.mean, demand.counted);
  const faded = KEPT_OF_AN_HOUR ** (over - 1);
  return {
    ...demand,
    hour,
    counted: NONE,
    mean: {
      orders: mean.orders * faded,
      agents: mean.agents * faded,
      squares: mean.squares * faded,
    },
  };
};

export const withOrder = (
  demand: Demand | undefined,
  order: { readonly at: string; readonly agents: number; readonly isHigh: boolean },
): Demand => {
  const hour = hourOf(order.at);
  const known = demand ?? { hour, counted: NONE, largestHigh: 0 };
  const { counted, ...now } = until(known, hour);
  return {
    ...now,
    counted: {
      orders: counted.orders + 1,
      agents: counted.agents + order.agents,
      squares: counted.squares + order.agents ** 2,
    },
    largestHigh: order.isHigh ? Math.max(now.largestHigh, order.agents) : now.largestHigh,
  };
};

/** `floor`: orders per hour that are expected at least, of one agent each where none ever came. */
export const expected = (demand: Demand | undefined, at: string, floor: number): Expected => {
  const now = demand === undefined ? undefined : until(demand, hourOf(at));
  const { orders, agents, squares } = now?.mean ?? now?.counted ?? NONE;
  if (orders === 0) return { ordersPerHour: floor, meanSize: 1, meanSquare: 1 };
  return { ordersPerHour: Math.max(floor, orders), meanSize: agents / orders, meanSquare: squares / orders };
};
