import { onAbort, Silence } from './waiting.ts';

/** One of those that the server works on at once. */
export type Place = {
  /** Gives the place to the next. Called once or more. */
  leave(): void;
  /** Since when its holder waits for somebody else than the server (`performance.now()`); undefined: it does not. */
  restingSince: number | undefined;
  /** Given to one who waits, because its holder rested: it must stop what the server does for it, and enter again. */
  isLent: boolean;
  /** Called when it is lent. */
  onLent: () => void;
};

export type Entry = {
  /** Names the call in errors. */
  readonly what: string;
  readonly patienceMs: number;
  /** `own`: from the call on. `shared`: from the last answer that anybody got (`progressed`), as for a long queue. */
  readonly patience: 'own' | 'shared';
  /** Goes in before those who wait already. */
  readonly urgent?: boolean;
  readonly signals: readonly (AbortSignal | undefined)[];
};

export type Gate = {
  /** Waits for a place, first come, first served. Throws Silence, or the reason of a signal. */
  enter(entry: Entry): Promise<Place>;
  /** The server has answered one of those inside. */
  progressed(): void;
  /** How many wait outside. */
  waiting(): number;
};

/** Milliseconds after which the place of one who rests is given to one who waits. */
const REST_MS = 100;

/**
 * Lets `places` in at once. A server gives its time to all whom it let in, so that beyond a certain number none of them
 * is answered in time. A reader whose consumer takes its time keeps no place from those who wait: otherwise slow
 * consumers, or one who reads within a read, would stop all others. It keeps no stream either, of which a connection
 * has a hundred, and enters again for the rest.
 */
export const createGate = (places: number): Gate => {
  const queue = new Set<() => void>();
  const urgent = new Set<() => void>();
  const inside = new Set<Place>();
  let progressAt = 0;
  let sweep: NodeJS.Timeout | undefined;

  const waiting = (): number => queue.size + urgent.size;
  const admit = (): void => {
    while (inside.size < places && waiting() > 0) {
      const [next] = urgent.size > 0 ? urgent : queue;
      next?.();
    }
    if (waiting() > 0) return;
    clearInterval(sweep);
    sweep = undefined;
  };
  const take = (): Place => {
    const place: Place = {
      restingSince: undefined,
      isLent: false,
      onLent: () => {},
      leave: () => {
        if (inside.delete(place)) admit();
      },
    };
    inside.add(place);
    return place;
  };
  const lend = (): void => {
    const since = performance.now() - REST_MS;
    for (const place of inside) {
      if (waiting() === 0) return;
      if (place.restingSince === undefined || place.restingSince > since) continue;
      place.isLent = true;
      place.onLent();
      place.leave();
    }
  };

  const enter = async (entry: Entry): Promise<Place> => {
    for (const signal of entry.signals) signal?.throwIfAborted();
    if (inside.size < places && waiting() === 0) return take();
    const line = entry.urgent === true ? urgent : queue;
    sweep ??= setInterval(lend, REST_MS).unref();
    return new Promise((resolve, reject) => {
      const cameAt = performance.now();
      let stops: (() => void)[] = [];
      let timer: NodeJS.Timeout | undefined;
      const end = (): void => {
        line.delete(go);
        clearTimeout(timer);
        for (const stop of stops) stop();
      };
      const go = (): void => {
        end();
        resolve(take());
      };
      const refuse = (reason: unknown): void => {
        end();
        reject(reason as Error);
        admit();
      };
      const look = (): void => {
        const since = entry.patience === 'shared' ? Math.max(cameAt, progressAt) : cameAt;
        const left = since + entry.patienceMs - performance.now();
        if (left > 0) timer = setTimeout(look, left);
        else refuse(new Silence(`${entry.what}: ${waiting()} wait for the event store`, entry.patienceMs));
      };
      line.add(go);
      stops = entry.signals.map((signal) => onAbort(signal, () => refuse(signal?.reason)));
      look();
    });
  };

  return {
    enter,
    waiting,
    progressed: () => {
      progressAt = performance.now();
    },
  };
};
