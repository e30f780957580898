import { createBookkeeping } from '../../app/log/bookkeeping.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type EventStore,
  type ExpectedRevision,
} from '../../app/log/event-store.ts';
import { derivedCommandId } from '../../app/log/identifiers.ts';
import { leaseStream, type Lease, type Ownership } from '../../app/deployment/ownership.ts';
import type { Runtime } from '../../app/ports.ts';
import { pause } from '../../app/process-runner/pause.ts';
import type { LeaseData } from '../../domain/bookkeeping/events.ts';

/**
 * A lease in a `sys-` stream: its newest event says who holds it. Taking and renewing are appends at the expected
 * revision, so that of two candidates one wins. A holder that has not renewed for as long as its lease lasts, by the
 * watcher's own monotonic clock, is taken to be gone; clocks of two machines are never compared. Nobody waits for a
 * holder that is known to be gone: this instance itself, and the one before it on the same data directory.
 */
export type LeaseOptions = {
  readonly store: EventStore;
  /** Name of the thing owned; the stream is `sys-lease-<name>`. */
  readonly name: string;
  /** Name of this process incarnation. */
  readonly instance: string;
  /** Id of the data directory, which one process at a time locks (docs/architecture.md "Ownership"). */
  readonly directory: string;
  /**
   * True when the lock of the data directory already excludes everybody else (embedded store): the lease is taken at
   * once and never renewed; it only counts the epochs. Default: the store's `singleWriter`.
   */
  readonly exclusive?: boolean;
  /** Milliseconds after which a lease that was not renewed may be taken over. Default 15,000. */
  readonly ttlMs?: number;
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

type LeaseEvent = Omit<LeaseData, 'at'> & {
  readonly type: 'LeaseTaken' | 'LeaseRenewed' | 'LeaseReleased';
};
type Held = {
  readonly epoch: number;
  readonly revision: number;
  readonly validUntil: number;
  readonly afterSilence: boolean;
};
type Last = { readonly revision: ExpectedRevision; readonly event: LeaseEvent | undefined };

const COMMANDS = {
  LeaseTaken: 'TakeLease',
  LeaseRenewed: 'RenewLease',
  LeaseReleased: 'ReleaseLease',
} as const;

const MAX_COUNT = 20;
/** Share of the lease's time after which it is renewed. */
const RENEWALS_PER_TTL = 3;
/** Share of the lease's time between two looks of a watcher, and after a renewal that failed. */
const LOOKS_PER_TTL = 15;
/** Share of the lease's time in which a renewal is answered: a store that hangs leaves time for another one. */
const ATTEMPTS_PER_TTL = 5;
/** A watcher waits this much longer than the holder counts, for the way to the store. */
const TAKEOVER_MARGIN = 1.2;

export const createLeaseOwnership = (options: LeaseOptions): Ownership => {
  const { store, instance, directory, clock, timers, logger } = options;
  const stream = leaseStream(options.name);
  const bookkeeping = createBookkeeping(instance);
  const ttlMs = options.ttlMs ?? 15_000;
  const exclusive = options.exclusive ?? store.singleWriter;

  /** Who held the lease when this process looked first, if that was a process on this data directory: it has ended. */
  let predecessor: string | undefined;
  let looked = false;

  const readLast = async (): Promise<Last> => {
    for await (const { revision, type, data } of store.readStream(stream, {
      direction: 'backward',
      limit: 1,
    })) {
      return { revision, event: { ...(data as unknown as LeaseData), type: type as LeaseEvent['type'] } };
    }
    return { revision: 'no_stream', event: undefined };
  };

  /** Revision after the append; undefined: somebody else was faster. Throws what the store throws. */
  const append = async (
    expected: ExpectedRevision,
    type: LeaseEvent['type'],
    epoch: number,
    deadlineMs?: number,
  ): Promise<number | undefined> => {
    const commandId = derivedCommandId(instance, stream, expected, type);
    const stamped = { type, data: { at: clock.now(), holder: instance, directory, epoch, ttlMs } };
    try {
      const encoded = bookkeeping(stream, stamped, COMMANDS[type], commandId);
      const within = deadlineMs === undefined ? {} : { deadlineMs };
      return (await store.append(stream, expected, [encoded], within)).revision;
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return undefined;
      throw error;
    }
  };

  const isTransient = (error: unknown): boolean =>
    error instanceof OutcomeUnknown || (error instanceof StoreUnavailable && error.reason !== 'closed');

  /** Said when it begins and not at each try. */
  const tellOnce = (message: string): ((err: unknown) => void) => {
    let told = false;
    return (err) => {
      if (!told) logger.warn({ err, stream }, message);
      told = true;
    };
  };

  /** Later holders with the id of this data directory live: they run on a clone of this machine. */
  const notePredecessor = (event: LeaseEvent | undefined): void => {
    if (!looked && event?.directory === directory) predecessor = event.holder;
    looked = true;
  };

  /** Waits until the lease is free and takes it; undefined: the signal was aborted. */
  const acquire = async (signal: AbortSignal): Promise<Held | undefined> => {
    const tell = tellOnce('lease not taken; retrying');
    let watched: { revision: ExpectedRevision; since: number } | undefined;
    while (!signal.aborted) {
      try {
        const last = await readLast();
        const now = clock.monotonicMs();
        if (watched === undefined || watched.revision !== last.revision) {
          watched = { revision: last.revision, since: now };
        }
        const { event } = last;
        notePredecessor(event);
        const gone = event !== undefined && [instance, predecessor].includes(event.holder);
        const expired = event !== undefined && now - watched.since > event.ttlMs * TAKEOVER_MARGIN;
        const free = event === undefined || event.type === 'LeaseReleased';
        if (exclusive || free || gone || expired) {
          if (last.revision === 'no_stream') await store.setMaxCount(stream, MAX_COUNT);
          const epoch = (event?.epoch ?? 0) + 1;
          const revision = await append(last.revision, 'LeaseTaken', epoch);
          // Whoever holds the lock of the data directory knows that the one before has ended.
          const afterSilence = !(exclusive || free || event.holder === predecessor);
          if (revision !== undefined) return { epoch, revision, validUntil: now + ttlMs, afterSilence };
          continue;
        }
      } catch (error) {
        if (!isTransient(error)) throw error;
        tell(error);
      }
      await pause(timers, ttlMs / LOOKS_PER_TTL, signal);
    }
    return undefined;
  };

  /** Keeps the lease until `signal`; returns the last revision, or undefined when the lease was lost. */
  const renew = async (
    held: Held,
    signal: AbortSignal,
    renewed: (validUntil: number) => void,
  ): Promise<number | undefined> => {
    let { revision, validUntil } = held;
    let tell: ((err: unknown) => void) | undefined;
    while (!signal.aborted) {
      await pause(timers, ttlMs / (tell === undefined ? RENEWALS_PER_TTL : LOOKS_PER_TTL), signal);
      if (signal.aborted) break;
      const sent = clock.monotonicMs();
      const left = validUntil - sent;
      if (left <= 0) return undefined;
      const expired = new AbortController();
      const deadlineMs = Math.min(left, ttlMs / ATTEMPTS_PER_TTL);
      const answered = append(revision, 'LeaseRenewed', held.epoch, deadlineMs).then(
        (answer) => answer ?? ('lost' as const),
        (error: unknown) => {
          tell ??= tellOnce('lease not renewed; retrying');
          tell(error);
          return isTransient(error) ? ('again' as const) : ('lost' as const);
        },
      );
      const outcome = await Promise.race([
        answered,
        pause(timers, left, expired.signal).then(() => 'lost' as const),
      ]);
      expired.abort();
      if (outcome === 'lost') return undefined;
      if (outcome === 'again') continue;
      revision = outcome;
      validUntil = sent + ttlMs;
      tell = undefined;
      renewed(validUntil);
    }
    return revision;
  };

  const release = async (epoch: number, revision: number): Promise<void> => {
    try {
      await append(revision, 'LeaseReleased', epoch);
    } catch (error) {
      // It expires by itself.
      logger.info({ err: error, stream }, 'lease not given back');
    }
  };

  const own = async (
    held: Held,
    signal: AbortSignal,
    whileOwner: (lease: Lease) => Promise<void>,
  ): Promise<void> => {
    const lost = new AbortController();
    let { validUntil } = held;
    const done = new AbortController();
    const renewing = exclusive
      ? Promise.resolve(held.revision)
      : renew(held, done.signal, (until) => {
          validUntil = until;
        }).then((revision) => {
          if (revision === undefined) {
            logger.warn({ stream, epoch: held.epoch }, 'lease lost');
            lost.abort();
          }
          return revision;
        });
    try {
      await whileOwner({
        epoch: held.epoch,
        signal: AbortSignal.any([signal, lost.signal]),
        isHeld: () => exclusive || (!lost.signal.aborted && clock.monotonicMs() < validUntil),
        afterSilence: held.afterSilence,
      });
    } finally {
      done.abort();
      const revision = await renewing;
      if (revision !== undefined) await release(held.epoch, revision);
    }
  };

  return {
    hold: async (signal, whileOwner) => {
      while (!signal.aborted) {
        const held = await acquire(signal);
        if (held === undefined) return;
        logger.info({ stream, epoch: held.epoch }, 'lease taken');
        await own(held, signal, whileOwner);
      }
    },
  };
};
