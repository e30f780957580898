import { hash } from 'node:crypto';
import { pause } from '../../app/process-runner/pause.ts';
import type { ExpectedRevision } from '../../app/log/event-store.ts';
import type { RenewedLease } from '../../domain/bookkeeping/events.ts';
import {
  createPredecessor,
  DEFAULT_TTL_MS,
  isGivenBack,
  isTransient,
  LOOKS_PER_TTL,
  tellOnce,
  type Last,
  type LeaseEventType,
  type LeaseLog,
  type LeaseOptions,
} from './lease-log.ts';

/** One time of holding the lease of a process. */
export type Term = RenewedLease & {
  /** Aborted when it is lost. */
  readonly lost: AbortSignal;
  /** Whether nobody else can have ended it yet, by the holder's own clock. */
  readonly isHeld: () => boolean;
  /** Called once by everybody who has entered: when all have left, the lease is given back. */
  readonly leave: () => Promise<void>;
};

export type ProcessLease = {
  readonly stream: string;
  /**
   * Takes the lease, or joins those who hold it. Undefined: not now, since another process holds it or was faster. Throws
   * what the store throws.
   */
  readonly enter: () => Promise<Term | undefined>;
  /**
   * Whether another process has ended, or has been silent for so long that it counts as ended: then it cannot renew
   * any more, because its lease was ended in its stream.
   */
  readonly isOver: (other: RenewedLease) => Promise<boolean>;
};

/** Share of the lease's time after which it is renewed. */
const RENEWALS_PER_TTL = 3;
/** Share of the lease's time in which a renewal is answered: a store that hangs leaves time for another one. */
const ATTEMPTS_PER_TTL = 5;
/** A watcher waits this much longer than the holder counts, for the way to the store. */
const TAKEOVER_MARGIN = 1.2;

/** One stream for each data directory: the next start goes on with it. */
const streamOf = (directory: string): string =>
  `sys-process-${hash('sha256', directory, 'hex').slice(0, 16)}`;

type SharedTerm = Term & { readonly join: () => Term };
type Look = { last: Promise<Last>; at: number; revision: ExpectedRevision | undefined; since: number };

/**
 * The one lease that a process renews; all that it owns rests on it (lease-ownership.ts). A holder that has not renewed
 * for as long as the lease lasts, by the watcher's own monotonic clock, is taken to be gone; clocks of two machines are
 * never compared. The watcher then ends the lease at the revision that it watched: of that and a late renewal the store
 * takes one.
 */
export const createProcessLease = (log: LeaseLog, options: LeaseOptions): ProcessLease => {
  const { clock, timers, logger, instance, ttlMs = DEFAULT_TTL_MS } = options;
  const stream = streamOf(options.directory);
  const predecessorIn = createPredecessor(options.directory);
  /** Highest revision of the stream that this process may have written. */
  let mine = -1;
  let held: SharedTerm | undefined;
  let entering: Promise<SharedTerm | undefined> | undefined;
  let leaving: Promise<void> | undefined;

  const append = async (
    expected: ExpectedRevision,
    type: LeaseEventType,
    epoch: number,
    deadlineMs?: number,
  ): Promise<number | undefined> => {
    const before = expected === 'no_stream' ? -1 : expected;
    mine = before + 1;
    const revision = await log.append(stream, expected, type, { epoch }, deadlineMs);
    mine = revision ?? before;
    return revision;
  };

  const looks = new Map<string, Look>();
  /** What a stream shows, and for how long it has shown that. Those who wait for one process share a look. */
  const look = async (of: string): Promise<Last & { readonly silentMs: number }> => {
    const now = clock.monotonicMs();
    const known = looks.get(of);
    const isOld = known === undefined || now - known.at >= ttlMs / LOOKS_PER_TTL / 2;
    const { revision, since } = known ?? { revision: undefined, since: now };
    const mark = isOld ? { last: log.last(of), at: now, revision, since } : known;
    looks.set(of, mark);
    const last = await mark.last;
    const seenAt = clock.monotonicMs();
    if (mark.revision !== last.revision) Object.assign(mark, { revision: last.revision, since: seenAt });
    return { ...last, silentMs: seenAt - mark.since };
  };
  const isSilent = ({ event, silentMs }: Last & { readonly silentMs: number }): boolean =>
    event !== undefined && silentMs > event.ttlMs * TAKEOVER_MARGIN;

  /** Keeps the lease until `signal`; false: it was lost. */
  const renew = async (
    taken: { revision: number; readonly epoch: number; validUntil: number },
    signal: AbortSignal,
  ): Promise<boolean> => {
    let tell: ((err: unknown) => void) | undefined;
    while (!signal.aborted) {
      await pause(timers, ttlMs / (tell === undefined ? RENEWALS_PER_TTL : LOOKS_PER_TTL), signal);
      if (signal.aborted) break;
      const sent = clock.monotonicMs();
      const left = taken.validUntil - sent;
      if (left <= 0) return false;
      const expired = new AbortController();
      const deadlineMs = Math.min(left, ttlMs / ATTEMPTS_PER_TTL);
      const answered = append(taken.revision, 'LeaseRenewed', taken.epoch, deadlineMs).then(
        (answer) => answer ?? ('lost' as const),
        (error: unknown) => {
          tell ??= tellOnce(options, stream, 'lease not renewed; retrying');
          tell(error);
          return isTransient(error) ? ('again' as const) : ('lost' as const);
        },
      );
      const outcome = await Promise.race([
        answered,
        pause(timers, left, expired.signal).then(() => 'lost' as const),
      ]);
      expired.abort();
      if (outcome === 'lost') return false;
      if (outcome === 'again') continue;
      Object.assign(taken, { revision: outcome, validUntil: sent + ttlMs });
      tell = undefined;
    }
    return true;
  };

  const begin = (taken: { revision: number; readonly epoch: number; validUntil: number }) => {
    const { epoch } = taken;
    const lost = new AbortController();
    const done = new AbortController();
    const renewing = renew(taken, done.signal).then((isKept) => {
      if (isKept) return;
      logger.warn({ stream, epoch }, 'lease lost');
      if (held === term) held = undefined;
      lost.abort();
    });
    const giveBack = async (): Promise<void> => {
      done.abort();
      await renewing;
      if (lost.signal.aborted) return;
      try {
        await append(taken.revision, 'LeaseReleased', epoch);
      } catch (error) {
        // It expires by itself.
        logger.info({ err: error, stream }, 'lease not given back');
      }
    };
    let users = 0;
    const term: SharedTerm = {
      stream,
      epoch,
      lost: lost.signal,
      isHeld: () => !lost.signal.aborted && clock.monotonicMs() < taken.validUntil,
      join: () => {
        users += 1;
        return term;
      },
      leave: async () => {
        users -= 1;
        if (users > 0 || held !== term) return;
        held = undefined;
        leaving = giveBack();
        await leaving;
      },
    };
    return term;
  };

  const take = async () => {
    const last = await look(stream);
    const { revision, event } = last;
    const isMine = event?.holder === instance && revision !== 'no_stream' && revision <= mine;
    const isGone = predecessorIn(event) === event?.holder || isMine || isSilent(last);
    if (!isGone && event !== undefined && !isGivenBack(event)) return undefined;
    const epoch = (event?.epoch ?? 0) + 1;
    const validUntil = clock.monotonicMs() + ttlMs;
    looks.delete(stream);
    const taken = await append(revision, 'LeaseTaken', epoch);
    return taken === undefined ? undefined : begin({ epoch, revision: taken, validUntil });
  };

  return {
    stream,
    enter: async () => {
      await leaving;
      if (held !== undefined) return held.join();
      entering ??= take().finally(() => {
        entering = undefined;
      });
      held = await entering;
      return held?.join();
    },
    isOver: async (other) => {
      const last = await look(other.stream);
      const { revision, event } = last;
      if (event?.epoch !== other.epoch || isGivenBack(event)) return true;
      if (!isSilent(last)) return false;
      const { holder, directory, epoch, ttlMs: itsTtlMs } = event;
      const ended = { holder, directory, epoch, ttlMs: itsTtlMs };
      return (await log.append(other.stream, revision, 'LeaseExpired', ended)) !== undefined;
    },
  };
};
