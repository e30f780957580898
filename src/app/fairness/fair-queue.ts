/**
 * How much an effect matters when its lane cannot do everything at once: what frees hardware first, then what
 * builds, then what only looks.
 */
export const PRIORITIES = ['deletion', 'work', 'read'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** In which order what waits for a lane is let through. */
export type FairQueue<Item> = {
  add(item: Item, by: { readonly tenant: string; readonly priority: Priority }): void;
  /** Takes what is next; undefined when nothing waits. */
  take(): Item | undefined;
  /** Takes the item of the lowest rank, of equal ones that whose turn it is; looks at all that wait. */
  takeLowest(rank: (item: Item) => number): Item | undefined;
  some(wanted: (item: Item) => boolean): boolean;
  readonly size: number;
};

/** Items of several keys: the keys take turns, one item each; the items of one key stay in order. */
export const createRounds = <Item>() => {
  /** In the order of their turns. */
  const lanes = new Map<string, Set<Item>>();
  let size = 0;
  return {
    add: (key: string, item: Item): void => {
      const lane = lanes.get(key);
      if (lane === undefined) lanes.set(key, new Set([item]));
      else lane.add(item);
      size += 1;
    },
    /** What is next; undefined when nothing waits. */
    take: (): Item | undefined => {
      for (const [key, lane] of lanes)
        for (const item of lane) {
          lanes.delete(key);
          lane.delete(item);
          if (lane.size > 0) lanes.set(key, lane); // behind the others
          size -= 1;
          return item;
        }
      return undefined;
    },
    remove: (key: string, item: Item): void => {
      const lane = lanes.get(key);
      if (lane?.delete(item) !== true) return;
      size -= 1;
      if (lane.size === 0) lanes.delete(key);
    },
    *entries(): Generator<readonly [key: string, item: Item]> {
      for (const [key, lane] of lanes) for (const item of lane) yield [key, item];
    },
    get size(): number {
      return size;
    },
  };
};

/** Items of more urgent classes that may overtake those of a class before one of it has its turn. */
const OVERTAKEN = 8;

/**
 * Deletions go before other work and that before reads, but of every nine one is of the class that waits
 * longest, so that none starves. Within a class the tenants take turns, whatever one of them has queued.
 */
export const createFairQueue = <Item>(): FairQueue<Item> => {
  const classes = PRIORITIES.map(() => ({ items: createRounds<Item>(), overtaken: 0 }));
  return {
    add: (item, { tenant, priority }) => {
      const of = classes[PRIORITIES.indexOf(priority)];
      if (of === undefined) throw new TypeError(`no priority is called ${String(priority)}`);
      of.items.add(tenant, item);
    },
    take: () => {
      const waiting = classes.filter(({ items }) => items.size > 0);
      const chosen = waiting.findLast(({ overtaken }) => overtaken >= OVERTAKEN) ?? waiting[0];
      if (chosen === undefined) return undefined;
      for (const other of waiting) if (other !== chosen) other.overtaken += 1;
      chosen.overtaken = 0;
      return chosen.items.take();
    },
    takeLowest: (rank) => {
      let best: { readonly item: Item; readonly rank: number; readonly remove: () => void } | undefined;
      for (const { items } of classes)
        for (const [tenant, item] of items.entries()) {
          const ranked = rank(item);
          if (best === undefined || ranked < best.rank)
            best = { item, rank: ranked, remove: () => items.remove(tenant, item) };
        }
      best?.remove();
      return best?.item;
    },
    some: (wanted) => classes.some(({ items }) => items.entries().some(([, item]) => wanted(item))),
    get size() {
      return classes.reduce((sum, { items }) => sum + items.size, 0);
    },
  };
};
