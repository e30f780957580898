import type { Clock, Logger, Timers } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import type { SecretSweeper } from '../app/secrets/stored-secrets.ts';

/** Milliseconds between two sweeps, and the age below which a stored secret may still get its event. */
export const SWEEP_EVERY_MS = 3_600_000;
/** Milliseconds after the start until what a crash left is looked for; other work comes first. */
export const FIRST_SWEEP_MS = 60_000;

export type SweepGuards = {
  /** The runs are up to date: one that has not heard of a new secret yet still needs the old one. */
  readonly isLive: () => boolean;
  /**
   * Another service drives a hub of this log, so this log may be a copy that shares its secrets directory with the
   * original: what this log does not know may be in use there.
   */
  readonly isHeldBack: () => boolean;
};

/** Removes secrets that nothing uses any more, until the signal is aborted. */
export const sweepSecrets = async (
  { clock, timers, logger }: { readonly clock: Clock; readonly timers: Timers; readonly logger: Logger },
  sweeper: SecretSweeper,
  { isLive, isHeldBack }: SweepGuards,
  signal: AbortSignal,
): Promise<void> => {
  for (let wait = FIRST_SWEEP_MS; !signal.aborted; wait = SWEEP_EVERY_MS) {
    await pause(timers, wait, signal);
    if (signal.aborted || !isLive() || isHeldBack()) continue;
    try {
      const swept = await sweeper.sweep(clock.now(), signal);
      if (swept.removed > 0) logger.info(swept, 'unused secrets removed');
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error }, 'search for unused secrets failed; retrying later');
    }
  }
};
