import type { Timers } from '../ports.ts';

/**
 * Who refers to an object and who deletes it, within one instance: many may share a key, one may close it. Nothing is
 * stored, so that a crash leaves nothing behind. A share is taken of all keys at once or of none: whoever waits holds
 * nothing, so nobody waits in a circle. A key that somebody is about to close lets no more in, so that a stream of
 * creations keeps no deletion from its turn.
 */
export type ReferenceGuard = {
  /**
   * Waits until nobody closes any of the keys, and shares them until the returned function is called (once).
   * Throws ReferencesBusy when that takes too long, and the signal's reason.
   */
  share(keys: readonly string[], signal?: AbortSignal): Promise<() => void>;
  /** The same where nobody can wait: undefined when somebody closes one of the keys, or waits to. */
  shareNow(keys: readonly string[]): (() => void) | undefined;
  /** The same for one key alone: waits until all who share it have left. Those who come later wait. */
  close(key: string, signal?: AbortSignal): Promise<() => void>;
  /** Keys that somebody shares, closes or waits for; 0 when nothing is under way. */
  size(): number;
};

/** Nothing was stored: what refers to an object and its deletion kept each other waiting. Later it may succeed. */
export class ReferencesBusy extends Error {
  override readonly name = 'ReferencesBusy';
  constructor(
    message = 'references to an object and its deletion wait for each other',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

type Key = {
  shared: number;
  closed: boolean;
  /** How many wait to close it. */
  closing: number;
  /** Everybody who waits for a change of this key. */
  waiting: Set<() => void>;
};

/** Milliseconds that a creation waits for deletions, and a deletion for creations and other deletions. */
const SHARE_WAIT_MS = 10_000;
const CLOSE_WAIT_MS = 4_000;

export const createReferenceGuard = ({ timers }: { readonly timers: Timers }): ReferenceGuard => {
  const keys = new Map<string, Key>();
  const keyOf = (name: string): Key => {
    const known = keys.get(name);
    if (known !== undefined) return known;
    const key: Key = { shared: 0, closed: false, closing: 0, waiting: new Set() };
    keys.set(name, key);
    return key;
  };
  const changed = (name: string, key: Key): void => {
    const { waiting } = key;
    key.waiting = new Set();
    for (const wake of waiting) wake();
    if (key.shared === 0 && !key.closed && key.closing === 0 && keys.get(name) === key) keys.delete(name);
  };
  const isBarred = (name: string): boolean => {
    const key = keys.get(name);
    return key !== undefined && (key.closed || key.closing > 0);
  };
  /** Resolves at the next change of the key. */
  const change = (name: string, { signal, late }: Patience): Promise<void> => {
    const key = keyOf(name);
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => (): void => {
        key.waiting.delete(woken);
        signal.removeEventListener('abort', given);
        settle();
      };
      const woken = end(resolve);
      const given = end(() => reject(late()));
      key.waiting.add(woken);
      signal.addEventListener('abort', given, { once: true });
      if (signal.aborted) given();
    });
  };
  /** Runs with a signal that fires when the time is up or the caller's own one has fired. */
  const patiently = async <T>(
    ms: number,
    callers: AbortSignal | undefined,
    run: (patience: Patience) => Promise<T>,
  ): Promise<T> => {
    const ended = new AbortController();
    const gone = (): void => ended.abort();
    const cancel = timers.after(ms, gone);
    callers?.addEventListener('abort', gone, { once: true });
    if (callers?.aborted === true) gone();
    const late = (): unknown => (callers?.aborted === true ? callers.reason : new ReferencesBusy());
    try {
      return await run({ signal: ended.signal, late });
    } finally {
      cancel();
      callers?.removeEventListener('abort', gone);
    }
  };
  const enter = (names: readonly string[]): (() => void) | undefined => {
    if (names.some(isBarred)) return undefined;
    const entered = names.map((name) => [name, keyOf(name)] as const);
    for (const [, key] of entered) key.shared += 1;
    return () => {
      for (const [name, key] of entered) {
        key.shared -= 1;
        if (key.shared === 0) changed(name, key);
      }
    };
  };

  return {
    share: async (wanted, signal) => {
      const names = [...new Set(wanted)];
      const entered = enter(names);
      if (entered !== undefined) return entered;
      return patiently(SHARE_WAIT_MS, signal, async (patience) => {
        for (;;) {
          const leave = enter(names);
          if (leave !== undefined) return leave;
          await change(names.find(isBarred) ?? '', patience);
        }
      });
    },
    shareNow: (wanted) => enter([...new Set(wanted)]),
    close: (name, signal) =>
      patiently(CLOSE_WAIT_MS, signal, async (patience) => {
        const key = keyOf(name);
        key.closing += 1;
        try {
          while (key.closed || key.shared > 0) await change(name, patience);
          key.closed = true;
        } finally {
          key.closing -= 1;
          if (!key.closed) changed(name, key);
        }
        return () => {
          key.closed = false;
          changed(name, key);
        };
      }),
    size: () => keys.size,
  };
};

/** `late`: what is thrown once the signal has fired. */
type Patience = { readonly signal: AbortSignal; readonly late: () => unknown };
