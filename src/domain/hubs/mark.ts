/**
 * The mark that stands on each hub and says which deployment drives it (docs/hubs.md "One driver per hub"). A log that was
 * copied, as a backup is, has the same deployment id; what tells the copy from the original are the epochs, of which the
 * copy's log does not know the newest. Nothing here compares clocks of two machines.
 */
export type HubMark = {
  readonly deploymentId: string;
  /** What people know the deployment by. */
  readonly name: string;
  /**
   * Ids under which this deployment's log drove before it was restored, and those in the mark that this one was taken from:
   * services that still have one stay away.
   */
  readonly formerIds: readonly string[];
  /** Begun by the driver before it wrote the mark; its log knows number and nonce of each of its epochs. */
  readonly epoch: number;
  readonly nonce: string;
  /** Data directory of the instance that drives. */
  readonly holder: string;
  /** Time of the holder's own clock at which it renewed the mark, for people. */
  readonly renewedAt: string;
  /** The holder stopped in order: the next one of this deployment need not wait. */
  readonly released: boolean;
};

/** Milliseconds after which a mark that was not renewed counts as left behind. */
export const MARK_DURATION_MS = 15_000;
/** Milliseconds between two renewals. */
export const MARK_RENEW_MS = 5_000;

/** What one instance saw of the mark of another. */
export type SeenMark = {
  readonly mark: HubMark;
  /** Whether this instance's log has the epoch of the mark, with its nonce. */
  readonly known: boolean;
  /** Milliseconds of this instance's own clock since the mark last changed. */
  readonly unchangedMs: number;
  /** Times that it was seen to change while this instance owned the processes of its own log. */
  readonly renewals: number;
};

export type Driver = Pick<HubMark, 'deploymentId' | 'formerIds' | 'holder'>;

export type MarkDecision =
  /** `over`: what the mark was taken from, where that is worth a line in the log. */
  | { readonly do: 'take'; readonly over?: 'restored' | 'expired' | 'foreign' }
  /** Not known yet whether its holder lives. */
  | { readonly do: 'wait' }
  | { readonly do: 'stay-away'; readonly because: MarkRefusal };

/**
 * - `behind`: the mark has our id and an epoch that our log does not know, so our log is a copy that was overtaken.
 * - `replaced`: a restored copy of our log took over.
 * - `copy`: somebody drives with our id and an epoch that we know while we own our log, so its log is another one.
 * - `foreign`: another deployment drives.
 */
export type MarkRefusal = 'behind' | 'replaced' | 'copy' | 'foreign';

/** A colleague on the same log that has just lost its lease may renew once more; a copy goes on. */
const RENEWALS_OF_A_COPY = 2;

/** Who may write its mark on a hub on which `seen` stands; undefined: none does. */
export const decideMark = (ours: Driver, seen: SeenMark | undefined): MarkDecision => {
  if (seen === undefined) return { do: 'take' };
  const { mark, known, renewals } = seen;
  const isExpired = seen.unchangedMs >= MARK_DURATION_MS;
  if (mark.deploymentId === ours.deploymentId) {
    if (!known) return { do: 'stay-away', because: 'behind' };
    if (mark.released || mark.holder === ours.holder) return { do: 'take' };
    // Its log may be further than ours by the time it ends, so that its end frees nothing.
    if (renewals >= RENEWALS_OF_A_COPY) return { do: 'stay-away', because: 'copy' };
    return isExpired ? { do: 'take', over: 'expired' } : { do: 'wait' };
  }
  if (ours.formerIds.includes(mark.deploymentId)) return { do: 'take', over: 'restored' };
  if (mark.formerIds.includes(ours.deploymentId)) return { do: 'stay-away', because: 'replaced' };
  if (mark.released || isExpired) return { do: 'take', over: 'foreign' };
  return renewals > 0 ? { do: 'stay-away', because: 'foreign' } : { do: 'wait' };
};

/** What people are told of a hub that is left alone, and what they can do. */
export const sayRefusal = (because: MarkRefusal, { name, deploymentId, holder }: HubMark): string => {
  const who = `deployment '${name}' (${deploymentId}, ${holder})`;
  switch (because) {
    case 'behind':
      return `${who} drove this hub after this event log was copied; if this log is a restored backup that shall take over, stop that service and run ledgerctl store restore`;
    case 'replaced':
      return `${who} was restored from a backup of this deployment and took the hub over; stop this service`;
    case 'copy':
      return `${who} drives this hub from another copy of this event log; stop one of the two services`;
    case 'foreign':
      return `${who} drives this hub; deregister it there, or here`;
  }
};
