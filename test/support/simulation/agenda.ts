import type { Random } from './random.ts';

/** Whose entry it is: an incarnation, the network of one, a hub, a client. They live, stall and die as one. */
export type Owner = string;

/**
 * Everything that happens in the simulation, in virtual time: answers on their way, timers, deeds of the outside world.
 * One entry runs at a time; whatever it sets free (promises) has come to rest before the next one does. Entries of the
 * same moment run in an order that the seed chose. When nothing is due, time jumps.
 */
export type Agenda = {
  /** Virtual milliseconds since the beginning. */
  now(): number;
  /** Runs `run` after `ms` milliseconds; the returned function takes it back. */
  after(owner: Owner, ms: number, run: () => void): () => void;
  sleep(owner: Owner, ms: number): Promise<void>;
  /** Runs the next entry and lets what follows from it come to rest. False: there is none up to `until`. */
  step(until: number): Promise<boolean>;
  /** Drops everything of this owner. */
  drop(owner: Owner): void;
  /** Nothing of this owner runs before `until`; it is late then, not lost. */
  stall(owner: Owner, until: number): void;
  steps(): number;
};

type Entry = {
  due: number;
  readonly tie: number;
  readonly sequence: number;
  readonly owner: Owner;
  readonly run: () => void;
  gone: boolean;
};

export const createAgenda = (random: Random): Agenda => {
  const heap: Entry[] = [];
  const byOwner = new Map<Owner, Set<Entry>>();
  const stalls = new Map<Owner, number>();
  let now = 0;
  let sequence = 0;
  let steps = 0;

  const forget = (entry: Entry): void => {
    entry.gone = true;
    byOwner.get(entry.owner)?.delete(entry);
  };

  const after: Agenda['after'] = (owner, ms, run) => {
    sequence += 1;
    const entry = { due: now + Math.max(0, ms), tie: random.next(), sequence, owner, run, gone: false };
    push(heap, entry);
    const others = byOwner.get(owner);
    if (others === undefined) byOwner.set(owner, new Set([entry]));
    else others.add(entry);
    return () => forget(entry);
  };

  const next = (until: number): Entry | undefined => {
    for (let entry = heap[0]; entry !== undefined && entry.due <= until; entry = heap[0]) {
      pop(heap);
      if (entry.gone) continue;
      const stalled = stalls.get(entry.owner) ?? 0;
      if (stalled > entry.due) {
        entry.due = stalled;
        push(heap, entry);
        continue;
      }
      return entry;
    }
    return undefined;
  };

  return {
    now: () => now,
    after,
    sleep: (owner, ms) => new Promise((resolve) => after(owner, ms, resolve)),
    step: async (until) => {
      const entry = next(until);
      if (entry === undefined) return false;
      forget(entry);
      now = Math.max(now, entry.due);
      steps += 1;
      entry.run();
      await rest();
      return true;
    },
    drop: (owner) => {
      for (const entry of byOwner.get(owner) ?? []) entry.gone = true;
      byOwner.delete(owner);
      stalls.delete(owner);
    },
    stall: (owner, until) => void stalls.set(owner, until),
    steps: () => steps,
  };
};

/**
 * One turn of the event loop: every microtask that can run has run by then. Nothing in the simulated system waits for
 * anything but microtasks, its ports, and turns of its own, which are served in the order in which they were asked for.
 */
export const rest = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const isBefore = (left: Entry, right: Entry): boolean =>
  left.due !== right.due
    ? left.due < right.due
    : left.tie !== right.tie
      ? left.tie < right.tie
      : left.sequence < right.sequence;

const push = (heap: Entry[], entry: Entry): void => {
  let at = heap.length;
  heap.push(entry);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as Entry;
    if (!isBefore(entry, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = entry;
};

const pop = (heap: Entry[]): void => {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
    if (!isBefore(heap[child] as Entry, last)) break;
    heap[at] = heap[child] as Entry;
    at = child;
  }
  heap[at] = last;
};
