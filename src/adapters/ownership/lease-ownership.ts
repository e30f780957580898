import { leaseStream, type Lease, type Ownership } from '../../app/deployment/ownership.ts';
import { pause } from '../../app/process-runner/pause.ts';
import type { RenewedLease } from '../../domain/bookkeeping/events.ts';
import {
  createLeaseLog,
  createPredecessor,
  DEFAULT_TTL_MS,
  isGivenBack,
  isTransient,
  LOOKS_PER_TTL,
  tellOnce,
  type LeaseEvent,
  type LeaseOptions,
} from './lease-log.ts';
import { createProcessLease, type Term } from './process-lease.ts';

/** Ownership of what has this name; the lease is in `sys-lease-<name>`. */
export type Leases = (name: string) => Ownership;

/** What a lease rests on: the lease of the process, or the lock of its data directory, which names none. */
type Ground = Pick<Term, 'lost' | 'isHeld' | 'leave'> & Partial<RenewedLease>;
type Held = {
  readonly ground: Ground;
  readonly epoch: number;
  readonly revision: number;
  readonly afterSilence: boolean;
};

const LOCKED: Ground = {
  lost: new AbortController().signal,
  isHeld: () => true,
  leave: () => Promise.resolve(),
};

/**
 * The leases of one process. The newest event of a lease says who took it, and on which lease of a process it rests: that
 * one alone is renewed, however many there are. Taking is an append at the expected revision, so that of two candidates
 * one wins. Nobody waits for a holder that is known to be gone: this process itself, and the one before it on the same
 * data directory.
 */
export const createLeases = (options: LeaseOptions): Leases => {
  const { directory, timers, logger, ttlMs = DEFAULT_TTL_MS } = options;
  const exclusive = options.exclusive ?? options.store.singleWriter;
  const log = createLeaseLog(options);
  const ownProcess = createProcessLease(log, options);
  const enter = (): Promise<Ground | undefined> => (exclusive ? Promise.resolve(LOCKED) : ownProcess.enter());

  /** Whether a holder who gave nothing back is gone. What rests on our own process is over as soon as we hold that. */
  const isGone = async ({ process }: LeaseEvent): Promise<boolean> =>
    exclusive || process === undefined || process.stream === ownProcess.stream || ownProcess.isOver(process);

  return (name) => {
    const stream = leaseStream(name);
    const predecessorIn = createPredecessor(directory);

    /** Waits until the lease is free and takes it; undefined: the signal was aborted. */
    const acquire = async (signal: AbortSignal): Promise<Held | undefined> => {
      const tell = tellOnce(options, stream, 'lease not taken; retrying');
      let ground: Ground | undefined;
      while (!signal.aborted) {
        try {
          const { revision: expected, event } = await log.last(stream);
          const predecessor = predecessorIn(event);
          const free = event === undefined || isGivenBack(event);
          if (ground?.lost.aborted === true) ground = undefined;
          if (free || (await isGone(event))) ground ??= await enter();
          else {
            await ground?.leave();
            ground = undefined;
          }
          if (ground !== undefined) {
            const epoch = (event?.epoch ?? 0) + 1;
            const { stream: renewed, epoch: term } = ground;
            const rests = renewed !== undefined && term !== undefined;
            const revision = await log.append(stream, expected, 'LeaseTaken', {
              epoch,
              ...(rests && { process: { stream: renewed, epoch: term } }),
            });
            // Whoever holds the lock of the data directory knows that the one before has ended.
            const afterSilence = !(exclusive || free || event.holder === predecessor);
            if (revision !== undefined) return { ground, epoch, revision, afterSilence };
            continue;
          }
        } catch (error) {
          if (!isTransient(error)) throw error;
          tell(error);
        }
        await pause(timers, ttlMs / LOOKS_PER_TTL, signal);
      }
      await ground?.leave();
      return undefined;
    };

    const own = async (
      { ground, epoch, revision, afterSilence }: Held,
      signal: AbortSignal,
      whileOwner: (lease: Lease) => Promise<void>,
    ): Promise<void> => {
      const { lost, isHeld, leave } = ground;
      try {
        await whileOwner({ epoch, signal: AbortSignal.any([signal, lost]), isHeld, afterSilence });
      } finally {
        if (!lost.aborted)
          await log.append(stream, revision, 'LeaseReleased', { epoch }).catch((error: unknown) =>
            // It ends with the lease of the process.
            logger.info({ err: error, stream }, 'lease not given back'),
          );
        await leave();
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
};
