/** What is still to happen in one life, in order of time. Small (tens of entries), so a plain list will do. */
export type Agenda = {
  /** Time of the entry that is running, in hub milliseconds. */
  now(): number;
  at(time: number, run: () => void): void;
  /** A write from outside: it comes after everything that its moment brought by itself, as it did when it was made. */
  write(time: number, run: () => void): void;
  /** Runs everything up to and including `until`. */
  run(until: number): void;
  nextAt(): number | undefined;
};

type Entry = { readonly time: number; readonly rank: 0 | 1; readonly turn: number; readonly run: () => void };

export const createAgenda = (): Agenda => {
  const entries: Entry[] = [];
  let now = 0;
  let turns = 0;

  const add = (time: number, rank: 0 | 1, run: () => void): void => {
    turns += 1;
    const entry: Entry = { time: Math.max(time, now), rank, turn: turns, run };
    const at = entries.findIndex((other) => isBefore(entry, other));
    if (at < 0) entries.push(entry);
    else entries.splice(at, 0, entry);
  };

  return {
    now: () => now,
    at: (time, run) => add(time, 0, run),
    write: (time, run) => add(time, 1, run),
    nextAt: () => entries[0]?.time,
    run: (until) => {
      for (let next = entries[0]; next !== undefined && next.time <= until; next = entries[0]) {
        entries.shift();
        now = next.time;
        next.run();
      }
    },
  };
};

const isBefore = (a: Entry, b: Entry): boolean =>
  a.time !== b.time ? a.time < b.time : a.rank !== b.rank ? a.rank < b.rank : a.turn < b.turn;
