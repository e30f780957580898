import { LogDamaged, type EventStore } from '../log/event-store.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import { assertUnchanged, ChangedEvent, eventsOf } from './event-source.ts';
import { whyOutOfOrder } from './stream-order.ts';
import type { AuditTree } from './tree.ts';

/**
 * Events that a read of this instance found to be others than were recorded: it raises the alarm by itself, whichever
 * instance signs, and whether this one has a tree or not.
 */
export type Suspects = {
  /** A read has found this event (`<stream>@<revision>`) to be another one. */
  suspect(event: string): void;
  /** Looks at them, at once and every ten seconds until they are right again. Returns after the signal was aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** What is wrong, for who was woken; undefined: nothing that is known. */
  status(): string | undefined;
};

/** Events that are kept; those beyond would tell nothing new. */
const MOST = 100;
const EVERY_MS = 10_000;

/** What somebody does whom the alarm has woken. */
export const WHAT_TO_DO =
  'keep a copy of the store as it is, and follow ops/runbooks/LedgerAuditTreeMismatch.md';

/** What somebody reads whom the alarm has woken: no stack, which says nothing of who wrote to the store. */
export const whatIsWrong = (error: LogDamaged): string => {
  const { at, message } = error;
  const why = whyOutOfOrder(at);
  if (why !== undefined) return why;
  return at === undefined || error instanceof ChangedEvent
    ? message
    : `the event ${at.event} that the log holds at position ${at.position} is not the one that was recorded`;
};

export const createSuspects = ({
  store,
  tree,
  timers,
  logger,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  /** Absent: only what the store itself can tell is told. */
  readonly tree?: Pick<AuditTree, 'leaf' | 'hashAt'> & {
    indexOf(stream: string, revision: number): number | undefined;
  };
} & Pick<Runtime, 'timers' | 'logger'>): Suspects => {
  /** What is wrong with each; undefined: not looked at yet. */
  const known = new Map<string, string | undefined>();
  let wake = (): void => undefined;

  const look = async (event: string, signal: AbortSignal): Promise<void> => {
    const at = event.lastIndexOf('@');
    const [stream, revision] = [event.slice(0, at), Number(event.slice(at + 1))];
    const index = tree?.indexOf(stream, revision);
    const leaf = index === undefined ? undefined : tree?.leaf(index);
    if (tree !== undefined && leaf !== undefined) {
      const [found] = await eventsOf(store, [leaf], signal);
      assertUnchanged(leaf, found, tree.hashAt(0, leaf.index));
    } else for await (const _event of store.readStream(stream, { from: revision, limit: 1, signal }));
  };

  const check = async (event: string, signal: AbortSignal): Promise<void> => {
    try {
      await look(event, signal);
      if (known.get(event) !== undefined) logger.info({ event }, 'event is again as it was recorded');
      known.delete(event);
    } catch (error) {
      if (signal.aborted) return;
      // Nothing can be said of it now: what was known stands, and it is looked at again.
      if (!(error instanceof LogDamaged))
        return logger.warn({ err: error, event }, 'log unreadable; retrying');
      if (known.get(event) === undefined)
        logger.error({ ...error.at }, `${whatIsWrong(error)}; ${WHAT_TO_DO}`);
      known.set(event, whatIsWrong(error));
    }
  };

  return {
    suspect: (event) => {
      if (known.has(event) || known.size >= MOST) return;
      known.set(event, undefined);
      wake();
    },
    run: async (signal) => {
      while (!signal.aborted) {
        const woken = new AbortController();
        wake = () => woken.abort();
        for (const event of known.keys()) await check(event, signal);
        await pause(timers, EVERY_MS, AbortSignal.any([signal, woken.signal]));
      }
    },
    status: () => {
      const [first, ...others] = [...known.values()].filter((wrong) => wrong !== undefined);
      if (first === undefined) return undefined;
      const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
      return `${first}${more}; ${WHAT_TO_DO}`;
    },
  };
};
