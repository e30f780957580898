import { createBookkeeping } from '../../app/log/bookkeeping.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type EventStore,
  type ExpectedRevision,
} from '../../app/log/event-store.ts';
import { derivedCommandId } from '../../app/log/identifiers.ts';
import type { Runtime } from '../../app/ports.ts';
import type { LeaseData } from '../../domain/bookkeeping/events.ts';

export type LeaseOptions = {
  readonly store: EventStore;
  /** Name of this process incarnation. */
  readonly instance: string;
  /** Id of the data directory, which one process at a time locks (docs/architecture.md "Ownership"). */
  readonly directory: string;
  /**
   * True when the lock of the data directory already excludes everybody else (embedded store): a lease is taken at
   * once and never renewed; it only counts the epochs. Default: the store's `singleWriter`.
   */
  readonly exclusive?: boolean;
  /** Milliseconds after which a lease that was not renewed may be taken over. Default 15,000. */
  readonly ttlMs?: number;
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

const COMMANDS = {
  LeaseTaken: 'TakeLease',
  LeaseRenewed: 'RenewLease',
  LeaseReleased: 'ReleaseLease',
  LeaseExpired: 'EndLease',
} as const;

export type LeaseEventType = keyof typeof COMMANDS;
export type LeaseEvent = LeaseData & { readonly type: LeaseEventType };

/** The newest event of a lease says who holds it, if anybody does. */
export type Last = { readonly revision: ExpectedRevision; readonly event: LeaseEvent | undefined };

/** What an event says, where it is not of this process or says more than its epoch. */
type Said = Pick<LeaseData, 'epoch'> & Partial<LeaseData>;

export type LeaseLog = {
  readonly last: (stream: string) => Promise<Last>;
  /** Revision after the append; undefined: somebody else was faster. Throws what the store throws. */
  readonly append: (
    stream: string,
    expected: ExpectedRevision,
    type: LeaseEventType,
    said: Said,
    deadlineMs?: number,
  ) => Promise<number | undefined>;
};

export const DEFAULT_TTL_MS = 15_000;
/** Share of the lease's time between two looks of one who waits, and after a renewal that failed. */
export const LOOKS_PER_TTL = 15;
const MAX_COUNT = 20;

export const createLeaseLog = (options: LeaseOptions): LeaseLog => {
  const { store, instance, directory, clock, ttlMs = DEFAULT_TTL_MS } = options;
  const bookkeeping = createBookkeeping(instance);
  /** When each event that is under way was tried first: repeated, it is the same event. */
  const firstTries = new Map<string, string>();

  return {
    last: async (stream) => {
      for await (const { revision, type, data } of store.readStream(stream, {
        direction: 'backward',
        limit: 1,
      }))
        return {
          revision,
          event: { ...(data as unknown as LeaseData), type: type as LeaseEventType },
        };
      return { revision: 'no_stream', event: undefined };
    },
    append: async (stream, expected, type, said, deadlineMs) => {
      if (expected === 'no_stream') await store.setMaxCount(stream, MAX_COUNT);
      const tried = `${expected} ${type} ${stream}`;
      const at = firstTries.get(tried) ?? clock.now();
      firstTries.set(tried, at);
      // Two processes of one name and directory, as of a machine that was cloned, are told apart by their times.
      const commandId = derivedCommandId(instance, directory, stream, expected, type, at);
      const data = { holder: instance, directory, ttlMs, ...said, at };
      const encoded = bookkeeping(stream, { type, data }, COMMANDS[type], commandId);
      try {
        const within = deadlineMs === undefined ? {} : { deadlineMs };
        const { revision } = await store.append(stream, expected, [encoded], within);
        firstTries.delete(tried);
        return revision;
      } catch (error) {
        if (!isTransient(error)) firstTries.delete(tried);
        if (error instanceof WrongExpectedRevision) return undefined;
        throw error;
      }
    },
  };
};

export const isGivenBack = ({ type }: LeaseEvent): boolean =>
  type === 'LeaseReleased' || type === 'LeaseExpired';

export const isTransient = (error: unknown): boolean =>
  error instanceof OutcomeUnknown || (error instanceof StoreUnavailable && error.reason !== 'closed');

/** Said when it begins and not at each try. */
export const tellOnce = (
  { logger }: Pick<LeaseOptions, 'logger'>,
  stream: string,
  message: string,
): ((err: unknown) => void) => {
  let told = false;
  return (err) => {
    if (!told) logger.warn({ err, stream }, message);
    told = true;
  };
};

/**
 * Who held a lease when this process looked first, if that was a process on this data directory: it has ended. Later
 * holders with the id of this directory live: they run on a clone of this machine.
 */
export const createPredecessor = (
  directory: string,
): ((event: LeaseEvent | undefined) => string | undefined) => {
  let looked = false;
  let holder: string | undefined;
  return (event) => {
    if (!looked && event?.directory === directory) ({ holder } = event);
    looked = true;
    return holder;
  };
};
