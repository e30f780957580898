import { AutomationError } from '../../app/automation/automation.ts';

/**
 * Who may post to a listener right now: at most `perListener` at once, and one per key, in the order of asking
 * (OSAC's operator).
 */
export type ListenerSlots = {
  /** Resolves with what gives the place back. Throws AutomationError: `throttled` past `waitMs`, `unavailable` at the signal. */
  enter(listener: string, key: string, wait: Wait): Promise<() => void>;
};
export type Wait = { readonly waitMs: number; readonly signal: AbortSignal };

type Waiting = { readonly key: string; readonly go: () => void };
type Listener = { readonly busy: Set<string>; waiting: Waiting[] };

export const createListenerSlots = (perListener: number): ListenerSlots => {
  const listeners = new Map<string, Listener>();

  const next = (url: string, listener: Listener): void => {
    while (listener.busy.size < perListener) {
      const found = listener.waiting.find(({ key }) => !listener.busy.has(key));
      if (found === undefined) break;
      listener.waiting = listener.waiting.filter((each) => each !== found);
      listener.busy.add(found.key);
      found.go();
    }
    if (listener.busy.size === 0 && listener.waiting.length === 0) listeners.delete(url);
  };

  return {
    enter: (url, key, { waitMs, signal }) => {
      const listener = listeners.get(url) ?? { busy: new Set<string>(), waiting: [] };
      listeners.set(url, listener);
      const entered = Promise.withResolvers<() => void>();
      const cease = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stopped);
      };
      const waiting: Waiting = {
        key,
        go: () => {
          cease();
          entered.resolve(() => {
            listener.busy.delete(key);
            next(url, listener);
          });
        },
      };
      const giveUp = (kind: 'throttled' | 'unavailable'): void => {
        cease();
        listener.waiting = listener.waiting.filter((each) => each !== waiting);
        next(url, listener);
        entered.reject(
          new AutomationError(kind, 'the listener had no room for another request; nothing was sent'),
        );
      };
      const stopped = (): void => giveUp('unavailable');
      const timer = setTimeout(() => giveUp('throttled'), waitMs);
      signal.addEventListener('abort', stopped, { once: true });
      listener.waiting.push(waiting);
      if (signal.aborted) stopped();
      else next(url, listener);
      return entered.promise;
    },
  };
};
