import type { Actor, Item } from './actor.ts';

/**
 * Runs that wait for their turn, in order of arrival but for one rule: when there is more to do than the thread can do,
 * runs whose next step somebody waits for go before those that are only to look at what a hub shows. The newest
 * observation takes the place of an older one (see `Item`), so that looking later is looking less often; a step that
 * comes later only makes an order slower. Of each `SHARE` turns one goes to those who wait longer, so that nobody waits
 * for ever.
 */
export type ReadyRuns = {
  /** To be called again when more comes for one that waits. */
  add(actor: Actor): void;
  next(): Actor | undefined;
  readonly size: number;
};

const SHARE = 4;

export const createReadyRuns = (): ReadyRuns => {
  const soon = new Set<Actor>();
  const later = new Set<Actor>();
  let passed = 0;

  return {
    add: (actor) => {
      if (soon.has(actor)) return;
      if (actor.mailbox.every(canWait)) {
        later.add(actor);
        return;
      }
      later.delete(actor);
      soon.add(actor);
    },
    next: () => {
      const isTheirs = later.size > 0 && (soon.size === 0 || passed >= SHARE - 1);
      passed = isTheirs || later.size === 0 ? 0 : passed + 1;
      const from = isTheirs ? later : soon;
      const [actor] = from;
      if (actor !== undefined) from.delete(actor);
      return actor;
    },
    get size() {
      return soon.size + later.size;
    },
  };
};

/** What a hub shows by itself, or showed when it was read. */
const canWait = (item: Item): boolean =>
  item.kind === 'observation' ||
  ((item.kind === 'effect-result' || item.kind === 'look') && item.read !== undefined);
