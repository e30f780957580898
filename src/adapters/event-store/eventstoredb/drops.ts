import type { Position } from '../../../app/log/event-store.ts';
import type { Logger } from '../../../app/ports.ts';
import { messageOf } from './errors.ts';

/** Milliseconds after which a subscription that has not come back is worth a warning. */
const LONG_MS = 10_000;

/** Tells the drops of one subscription: a line when it goes, and a warning when it stays away. */
export type Drops = {
  /** `error` undefined: the server ended it with OK. */
  dropped(after: Position | undefined, error: unknown): void;
  /** Something came again. */
  back(): void;
  end(): void;
};

export const createDrops = (
  logger: Logger | undefined,
  subscriber: string | (() => string) | undefined,
  longMs: number = LONG_MS,
): Drops => {
  const named = (): object =>
    subscriber === undefined
      ? {}
      : { subscriber: typeof subscriber === 'string' ? subscriber : subscriber() };
  let drops = 0;
  let reason = '';
  let isAway = false;
  let warned = false;
  let timer: NodeJS.Timeout | undefined;

  const back = (): void => {
    clearTimeout(timer);
    if (warned) logger?.info({ ...named(), drops }, 'subscription is back');
    isAway = false;
    warned = false;
  };
  return {
    dropped: (after, error) => {
      drops += 1;
      reason = error === undefined ? 'the server ended it' : messageOf(error);
      if (isAway) return;
      isAway = true;
      logger?.info({ ...named(), drops, after, reason }, 'subscription dropped; subscribing again');
      timer = setTimeout(() => {
        warned = true;
        logger?.warn(
          { ...named(), drops, after, reason, seconds: longMs / 1000 },
          'subscription is still away',
        );
      }, longMs).unref();
    },
    back: () => {
      if (isAway) back();
    },
    end: () => clearTimeout(timer),
  };
};
