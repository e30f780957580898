import {
  BACKWARDS,
  END,
  type AllStreamResolvedEvent,
  type Position as LogPosition,
} from '@eventstore/db-client';
import { LogReplaced, type Position } from '../../../app/log/event-store.ts';
import type { LedgerClient } from './client.ts';
import { knownPosition, parsePosition } from './convert.ts';
import { isUnknown } from './errors.ts';
import { pull } from './pull.ts';

export type Beginning = {
  /** End of the log, records of the store included; undefined when it is empty. */
  readonly end: Position | undefined;
  /** Subscribing behind this misses nothing behind the position that was asked for. It may repeat that one. */
  readonly from: LogPosition;
};

/**
 * Before any event. Not START: servers from 24.2 to 24.10 then call the end of a log without a match 2^64-1, and tell no
 * checkpoint from there on.
 */
const BEFORE_ALL: LogPosition = { commit: 0n, prepare: 0n };

/** Where the log ends is below what was read of it. A node that lags shows that for a while, a restored copy for ever. */
class ShorterLog extends Error {
  override readonly name = 'ShorterLog';
  constructor(after: Position, end: Position | undefined) {
    super(`the log ends at ${end ?? 'its beginning'} and was read up to ${after} before`);
  }
}
class UnreadablePosition extends Error {
  override readonly name = 'UnreadablePosition';
  constructor(after: Position, cause: unknown) {
    super(`the log cannot be read at ${after}, up to where it was read before`, { cause });
  }
}

/** How often a position cannot be read until the log counts as another one. */
const UNREADABLE_TIMES = 3;

/**
 * Looks at the log before each subscription, on the subscription's own connection: another node may know more of the log,
 * or less.
 */
export const findBeginning = async (
  client: LedgerClient,
  after: Position | undefined,
  patienceMs: number,
  signals: readonly AbortSignal[],
): Promise<Beginning> => {
  const before = (fromPosition: LogPosition | typeof END) =>
    lastBefore(client, fromPosition, patienceMs, signals);
  const end = knownPosition(await before(END));
  if (after === undefined) return { end, from: BEFORE_ALL };
  if (end === undefined || after > end) throw new ShorterLog(after, end);
  // Servers of 23.10 skip the next event when the record at the position is gone: the one before it is there.
  const from = await before(parsePosition(after)).catch((error: unknown) => {
    throw isUnknown(error) ? new UnreadablePosition(after, error) : error;
  });
  return { end, from: from ?? BEFORE_ALL };
};

const lastBefore = async (
  client: LedgerClient,
  fromPosition: LogPosition | typeof END,
  patienceMs: number,
  signals: readonly AbortSignal[],
): Promise<LogPosition | undefined> => {
  const read = client.api.readAll({ direction: BACKWARDS, fromPosition, maxCount: 1, requiresLeader: true });
  for await (const { event } of pull<AllStreamResolvedEvent>(read as never, {
    what: 'looking at the log before subscribing',
    patienceMs: () => patienceMs,
    signals,
    cancel: () => read.cancel(),
  }))
    return event?.position;
  return undefined;
};

/** Tells a log that was replaced from a look that failed for another reason. */
export const createReplacedCheck = (shorterMs: number) => {
  let shorterSince: number | undefined;
  let unreadable = 0;
  return {
    /** A look succeeded. */
    passed: (): void => {
      shorterSince = undefined;
      unreadable = 0;
    },
    /** Throws LogReplaced when this failure, after those before it, can mean nothing else. */
    failed: (error: unknown): void => {
      if (error instanceof ShorterLog) {
        shorterSince ??= performance.now();
        if (performance.now() - shorterSince >= shorterMs) throw replaced(error);
      } else shorterSince = undefined;
      if (error instanceof UnreadablePosition) {
        unreadable += 1;
        if (unreadable >= UNREADABLE_TIMES) throw replaced(error);
      }
    },
  };
};

const replaced = (error: Error): LogReplaced =>
  new LogReplaced(`the log was replaced: ${error.message}; what was made of it is built again`, {
    cause: error,
  });
