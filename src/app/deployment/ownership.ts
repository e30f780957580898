import type { EventStore } from '../log/event-store.ts';

/**
 * Who may run the processes. A lease only saves work: two owners at once waste calls but break
 * nothing, since every decision is an append at an expected revision and every effect has a deterministic identity.
 */
export type Lease = {
  /** Grows with every change of owner and every start. */
  readonly epoch: number;
  /** Aborted when the lease is lost or released. */
  readonly signal: AbortSignal;
  /**
   * Whether nobody else can own it yet, by the holder's own clock. A process that was suspended wakes with a signal
   * that
   * is not aborted yet; this says no already. Absent: for as long as the signal says so.
   */
  readonly isHeld?: () => boolean;
  /** The owner before this one never gave it back, so that what it had begun may still be on its way. */
  readonly afterSilence?: boolean;
};

export type Ownership = {
  /**
   * Waits until this instance owns the processes and calls `whileOwner`; when the lease is lost, waits for
   * `whileOwner` to return and starts over. Resolves only after `signal` was aborted and `whileOwner` has returned;
   * then the lease has been given back. Rejects only when `whileOwner` does.
   */
  hold(signal: AbortSignal, whileOwner: (lease: Lease) => Promise<void>): Promise<void>;
};

/** Stream of the lease of this name. */
export const leaseStream = (name: string): string => `sys-lease-${name}`;

/** The instance that took the lease last and has not given it back; it may be gone. Undefined: nobody holds it. */
export const leaseHolder = async (
  store: Pick<EventStore, 'readStream'>,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const newest = store.readStream(leaseStream(name), { direction: 'backward', limit: 1, signal });
  for await (const { type, data } of newest) {
    const holder = data['holder'];
    return type === 'LeaseReleased' || typeof holder !== 'string' ? undefined : holder;
  }
  return undefined;
};
