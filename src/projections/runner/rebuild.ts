import type { Position } from '../../app/log/event-store.ts';
import type { RebuildReport } from '../read-models.ts';
import type { View } from '../view.ts';
import type { CopyProgress, RunningCopy } from './copy.ts';
import type { CopyHost } from './host.ts';
import type { Storage } from './storage.ts';

export type RebuildOptions = {
  /** Cancels; nothing is left behind. Without effect once the switch has begun, which takes milliseconds. */
  readonly signal?: AbortSignal;
  /** Told how many events have been applied to the new copy. */
  readonly onProgress?: (events: number) => void;
  /** Switch although the copies differ: the log is right, so the new one is. Default false: report and keep. */
  readonly force?: boolean;
};

export type RebuildContext = Pick<RebuildOptions, 'signal' | 'force'> & {
  readonly view: View;
  readonly storage: Storage;
  readonly host: CopyHost;
  /** Undefined: there is no copy of this version yet. */
  readonly live: string | undefined;
  readonly livePosition: () => Position | undefined;
  readonly stopLive: () => Promise<void>;
  readonly resumeLive: () => void;
  readonly switchTo: (fresh: string, following: RunningCopy, progress: CopyProgress) => Promise<void>;
  readonly onCopyProgress: (copy: string, progress: CopyProgress) => void;
};

/**
 * Builds a copy beside the live one, compares the two at one position, lets it catch up, and switches. Live reads
 * and live applying go on until the switch; for it the live copy stops first, so that no reader ever goes back.
 */
export const rebuildCopy = async (context: RebuildContext): Promise<RebuildReport> => {
  const { view, storage, host, live, signal } = context;
  const started = performance.now();
  const fresh = storage.next();
  let progress: CopyProgress | undefined;
  let notice = (): void => {};

  const onProgress = (next: CopyProgress): void => {
    progress = next;
    context.onCopyProgress(fresh, next);
    notice();
  };
  const building = host.build(fresh, live, onProgress);
  let following: RunningCopy | undefined;
  const cancelled = new Promise<'cancelled'>((resolve) => {
    if (signal?.aborted === true) resolve('cancelled');
    signal?.addEventListener('abort', () => resolve('cancelled'), { once: true });
  });
  const report = (
    outcome: RebuildReport['outcome'],
    differences: readonly string[] = [],
    position = progress?.position,
  ): RebuildReport => ({
    view: view.name,
    events: progress?.events ?? 0,
    seconds: (performance.now() - started) / 1000,
    position,
    outcome,
    differences,
  });
  const discard = async (): Promise<void> => {
    await building.stop();
    await following?.stop();
    await storage.remove(fresh);
  };

  try {
    const checked = await Promise.race([building.checked, cancelled]);
    if (checked === 'cancelled') {
      await discard();
      return report('cancelled');
    }
    if (checked.outcome === 'differs' && context.force !== true) {
      await discard();
      return report('differs', checked.differences, checked.position);
    }
    const followed = host.follow(fresh, onProgress);
    following = followed;
    const ended = followed.done.then(() => {
      throw new Error(`the rebuild of ${view.name} ended early`);
    });
    ended.catch(() => undefined);
    const until = async (reached: () => boolean): Promise<void> => {
      while (!reached()) await Promise.race([new Promise<void>((resolve) => (notice = resolve)), ended]);
    };
    const caughtUp = until(() => progress?.caughtUp === true).then(() => 'caught-up' as const);
    if ((await Promise.race([caughtUp, cancelled])) === 'cancelled') {
      await discard();
      return report('cancelled');
    }
    await context.stopLive();
    try {
      const target = context.livePosition();
      await until(() => target === undefined || (progress?.position ?? '') >= target);
    } catch (error) {
      context.resumeLive();
      throw error;
    }
    await context.switchTo(fresh, followed, progress as CopyProgress);
    return report('switched', checked.differences);
  } catch (error) {
    await discard();
    throw error;
  }
};
