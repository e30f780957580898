/** Whose effect it is, and what it does: another instance of the same is another attempt of it. */
export type Caller = { readonly order: string; readonly effect: string };

/** An effect that failed in its last attempts. */
export type FailingOrder = {
  readonly order: string;
  readonly failures: number;
  readonly reason: string;
  /** In the words of the far side, without secrets. */
  readonly message: string;
  /** Others passed since it began to fail: it is tried at its own pauses, and does not count against its lane. */
  readonly setAside: boolean;
};

export type LaneFailures = {
  /** The far side did, or answered, what was asked. */
  passed(by: Caller): void;
  /** Returns true when the lane is to be closed: the fault is not that of single orders. */
  failed(by: Caller, reason: string, message: string): boolean;
  /** Of this order only these effects are still wanted. */
  keep(order: string, effects: readonly string[]): void;
  /** How often in a row this effect failed. */
  failuresOf(by: Caller): number;
  /** Consecutive failures that count against the lane. */
  counted(): number;
  /** Those are failures of so many orders that it is not single ones that fail. */
  ofSeveral(): boolean;
  /** This order is one of those, whatever it wants now. */
  isAmong(order: string): boolean;
  /** Monotonic time of this order's last failure; undefined: nothing of it fails. */
  lastFailureOf(order: string): number | undefined;
  failingOrders(): number;
  /** The one that failed last is the first. */
  failing(): readonly FailingOrder[];
  /** When something passed last; undefined: never. */
  passedAt(): number | undefined;
};

/** What the far side denies to one order says nothing of the others, until it denies it to several. */
export const OF_ONE_ORDER: ReadonlySet<string> = new Set(['Forbidden', 'AutomationForbidden']);
/** So many orders that fail, with no success between, are not single ones. */
const SEVERAL = 3;
/** What passed within so long shows that the far side works. */
export const PASSING_MS = 120_000;
/** Effects that are remembered as failing; the ones that failed longest ago are forgotten. */
const MAX_FAILING = 500;
const MAX_MESSAGE = 300;
/** Longer than any rest: what was not tried again since is not wanted any more. */
const FORGET_MS = 45 * 60_000;

type Entry = Caller & { failures: number; reason: string; message: string; at: number; passesBefore: number };

/**
 * Tells a far side that fails from orders that fail. A lane is closed when `limit` failures in a row are those of several
 * orders, or when nothing at all passes.
 */
export const createLaneFailures = (limit: number, nowMs: () => number): LaneFailures => {
  /** In the order of their last failures. */
  const entries = new Map<string, Entry>();
  /** When something of an order failed last. */
  const failedAt = new Map<string, number>();
  const streak = new Set<string>();
  /** The last few effects that passed. */
  const recent = new Map<string, number>();
  let counted = 0;
  let passes = 0;
  let passedAt: number | undefined;

  const keyOf = ({ order, effect }: Caller): string => `${order}\n${effect}`;
  const ofSeveral = (): boolean => streak.size >= SEVERAL;
  const isAside = ({ passesBefore }: Entry): boolean => passesBefore < passes;
  /** Something that does not fail now has passed a moment ago. */
  const othersPass = (): boolean =>
    [...recent].some(([key, at]) => !entries.has(key) && nowMs() - at <= PASSING_MS);

  const noted = (by: Caller, reason: string, message: string): Entry => {
    prune();
    const key = keyOf(by);
    const known = entries.get(key);
    const { failures = 0, passesBefore = passes } = known ?? {};
    const { order, effect } = by;
    const said = message.slice(0, MAX_MESSAGE);
    const entry = { order, effect, failures: failures + 1, reason, message: said, at: nowMs(), passesBefore };
    entries.delete(key);
    entries.set(key, entry);
    failedAt.set(order, entry.at);
    const [oldest] = entries.keys();
    if (entries.size > MAX_FAILING && oldest !== undefined) forget(oldest);
    return entry;
  };

  const forget = (key: string): void => {
    const known = entries.get(key);
    if (known === undefined) return;
    entries.delete(key);
    if (!entries.values().some(({ order }) => order === known.order)) failedAt.delete(known.order);
  };

  const prune = (): void => {
    for (const [key, { at }] of entries) {
      if (nowMs() - at <= FORGET_MS) return;
      forget(key);
    }
  };

  return {
    passed: (by) => {
      const key = keyOf(by);
      forget(key);
      recent.delete(key);
      recent.set(key, nowMs());
      const [oldest] = recent.keys();
      if (recent.size > SEVERAL && oldest !== undefined) recent.delete(oldest);
      streak.clear();
      counted = 0;
      passes += 1;
      passedAt = nowMs();
    },
    failed: (by, reason, message) => {
      const entry = noted(by, reason, message);
      const ofOne = OF_ONE_ORDER.has(reason);
      const works = othersPass();
      if (isAside(entry) && (ofOne || works)) return false;
      streak.add(by.order);
      counted += 1;
      return counted >= limit && (ofSeveral() || (!ofOne && !works));
    },
    keep: (order, effects) => {
      for (const [key, entry] of entries) {
        if (entry.order === order && !effects.includes(entry.effect)) forget(key);
      }
    },
    failuresOf: (by) => entries.get(keyOf(by))?.failures ?? 0,
    counted: () => counted,
    ofSeveral,
    isAmong: (order) => streak.has(order),
    lastFailureOf: (order) => failedAt.get(order),
    failingOrders: () => {
      prune();
      return failedAt.size;
    },
    failing: () =>
      [...entries.values()].toReversed().map((entry) => {
        const { order, failures, reason, message } = entry;
        return { order, failures, reason, message, setAside: isAside(entry) };
      }),
    passedAt: () => passedAt,
  };
};
