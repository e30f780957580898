/**
 * How much an effect matters when its lane cannot do everything at once: what frees hardware first, then what builds,
 * then what only looks.
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

/** Items of more urgent classes that may overtake those of a class before one of it has its turn. */
const OVERTAKEN = 8;

/**
 * Deletions go before other work and that before reads, but of every nine one is of the class that waits longest, so that
 * none starves. Within a class the tenants take turns, one item each, whatever one of them has queued; the items of a
 * tenant stay in order. Each step takes constant time.
 */
export const createFairQueue = <Item>(): FairQueue<Item> => {
  const classes = PRIORITIES.map(() => ({
    /** Tenants in the order of their turns. */
    tenants: new Map<string, Set<Item>>(),
    size: 0,
    overtaken: 0,
  }));
  type Class = (typeof classes)[number];

  const next = (of: Class): Item | undefined => {
    for (const [tenant, items] of of.tenants) {
      of.tenants.delete(tenant);
      for (const item of items) {
        items.delete(item);
        if (items.size > 0) of.tenants.set(tenant, items); // behind the others
        of.size -= 1;
        return item;
      }
    }
    return undefined;
  };

  return {
    add: (item, { tenant, priority }) => {
      const of = classes[PRIORITIES.indexOf(priority)];
      if (of === undefined) throw new TypeError(`no priority is called ${String(priority)}`);
      const items = of.tenants.get(tenant) ?? new Set<Item>();
      items.add(item);
      of.tenants.set(tenant, items);
      of.size += 1;
    },
    take: () => {
      const waiting = classes.filter(({ size }) => size > 0);
      const chosen = waiting.findLast(({ overtaken }) => overtaken >= OVERTAKEN) ?? waiting[0];
      if (chosen === undefined) return undefined;
      for (const other of waiting) if (other !== chosen) other.overtaken += 1;
      chosen.overtaken = 0;
      return next(chosen);
    },
    takeLowest: (rank) => {
      let best: { readonly item: Item; readonly rank: number; readonly remove: () => void } | undefined;
      for (const of of classes)
        for (const [tenant, items] of of.tenants)
          for (const item of items) {
            const ranked = rank(item);
            if (best !== undefined && best.rank <= ranked) continue;
            const remove = (): void => {
              items.delete(item);
              if (items.size === 0) of.tenants.delete(tenant);
              of.size -= 1;
            };
            best = { item, rank: ranked, remove };
          }
      best?.remove();
      return best?.item;
    },
    some: (wanted) =>
      classes.some(({ tenants }) => tenants.values().some((items) => items.values().some(wanted))),
    get size() {
      return classes.reduce((sum, { size }) => sum + size, 0);
    },
  };
};
