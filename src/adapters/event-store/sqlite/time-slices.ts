/**
 * Milliseconds of one turn of the loop in which answers are handed out. Whoever waits for one goes on in the same turn,
 * for up to a millisecond each: all of a large batch at once would hold the thread.
 */
const PART_MS = 3;
/** So many at least: on a crowded machine the time may be up before the thread has had any of it. */
const PART_STEPS = 4;

export type PartsOptions = {
  readonly nowMs?: () => number;
  /** Calls back in the next turn of the loop. */
  readonly nextTurn?: (go: () => void) => void;
};

/** Calls `step` for 0 to `count` - 1. */
export type InParts = (count: number, step: (i: number) => void) => void;

type Round = { readonly count: number; readonly step: (i: number) => void; next: number };

/**
 * Steps one after the other, in the order in which they were given, also those of several calls: each when all that the
 * one before it set off has been done, and some in each turn of the loop.
 */
export const createParts = ({
  nowMs = () => performance.now(),
  nextTurn = (go) => void setImmediate(go),
}: PartsOptions = {}): InParts => {
  const rounds: Round[] = [];
  let until = 0;
  let told = 0;
  let isTelling = false;

  const go = (): void => {
    const [round] = rounds;
    if (round === undefined) return;
    const i = round.next;
    round.next += 1;
    if (round.next >= round.count) rounds.shift();
    told += 1;
    round.step(i);
    isTelling = rounds.length > 0;
    if (isTelling) afterMicrotasks(() => (told < PART_STEPS || nowMs() < until ? go() : nextTurn(part)));
  };
  const part = (): void => {
    isTelling = true;
    until = nowMs() + PART_MS;
    told = 0;
    go();
  };

  return (count, step) => {
    if (count === 0) return;
    rounds.push({ count, step, next: 0 });
    if (!isTelling) part();
  };
};

/** A tick that is asked for by a microtask comes after all other microtasks, those that they cause included. */
const afterMicrotasks = (go: () => void): void => queueMicrotask(() => process.nextTick(go));
