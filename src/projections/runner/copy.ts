import type { DatabaseSync } from 'node:sqlite';
import {
  GoesOnElsewhere,
  StoreUnavailable,
  type Position,
  type RecordedEvent,
} from '../../app/log/event-store.ts';
import type { LogReader } from '../log-reader.ts';
import type { View } from '../view.ts';
import { createApplier, Undone } from './applier.ts';
import { differencesBetween } from './digest.ts';
import { follow, type FollowOptions, type Progress } from './follow.ts';
import type { Storage } from './storage.ts';
import { addIndexesForReads, readCheckpoint, readParked, type ParkedStream } from './view-file.ts';

/** One copy of a view that is kept up to date, in this thread or in another. */
export type RunningCopy = {
  /** Resolves after `stop`; rejects with what ended it: PoisonEvent, a failed store, a full disk. */
  readonly done: Promise<void>;
  /** Applies what a parked stream missed. False: still poisonous; true: applied, or it was not parked. */
  readonly retryParked: (stream: string) => Promise<boolean>;
  /** Somebody waits for this position. */
  readonly hurry: (position: Position) => void;
  /** Nothing is applied any more when it resolves. */
  readonly stop: () => Promise<void>;
};

export type CopyProgress = Progress & { readonly parked: readonly ParkedStream[] };

export type CopyContext = {
  readonly view: View;
  readonly storage: Storage;
  readonly reader: LogReader;
  readonly pace: FollowOptions['pace'];
  readonly onProgress: (progress: CopyProgress) => void;
  /** Most events that are built here: beyond them LongLog is thrown. Default: any number. */
  readonly most?: number;
};

/** There is more to build than a thread that others share may take. What was built stays: it goes on elsewhere. */
export class LongLog extends GoesOnElsewhere {
  override readonly name = 'LongLog';
}

/** Follows the log into a copy until it is stopped. */
export const followInto = (copy: string, context: CopyContext): RunningCopy => {
  const { view, storage, reader, pace, onProgress } = context;
  const db = storage.open(copy);
  const applier = createApplier(db, view);
  const controller = new AbortController();
  const report = (progress: Progress): void => onProgress({ ...progress, parked: applier.parked() });
  const follower = follow({ view, reader, applier, pace, signal: controller.signal, onProgress: report });
  const done = follower.done.finally(() => storage.close(copy, db));

  return {
    done,
    retryParked: (stream) =>
      follower.exclusive(async () => {
        const parked = applier.parked().find((entry) => entry.stream === stream);
        if (parked === undefined) return true;
        // Applied now, its events would come behind later ones of other streams.
        if (!view.rowsBelongToOneStream) return false;
        const started = performance.now();
        const events: RecordedEvent[] = [];
        try {
          for await (const event of reader.readStream(stream, { from: parked.revision })) events.push(event);
        } catch (error) {
          if (error instanceof StoreUnavailable) throw error;
          return false; // the event for which it was parked cannot be read still
        }
        const applied = applier.retry(stream, events);
        report({
          ...applier.checkpoint(),
          caughtUp: follower.caughtUp(),
          batchEvents: events.length,
          batchMs: performance.now() - started,
        });
        return applied;
      }),
    hurry: follower.hurry,
    stop: async () => {
      controller.abort();
      await done.catch(() => undefined); // whoever holds `done` was told
    },
  };
};

export type CheckReport = {
  /** Where the fresh copy was compared with the live one. */
  readonly position: Position | undefined;
  /** `differs`: at the same position the rows are not the same, or a fresh copy does not agree with the log. */
  readonly outcome: 'equal' | 'verified' | 'differs';
  readonly differences: readonly string[];
};

const MOST_DIFFERENCES = 20;

/**
 * Builds a copy and checks it: against the live one of the same version, if there is one, otherwise against the log.
 */
export const buildAndCheck = async (
  copy: string,
  live: string | undefined,
  context: CopyContext,
  signal: AbortSignal,
): Promise<CheckReport> => {
  const { view, storage, reader } = context;
  const db = storage.build(copy);
  try {
    if (live !== undefined) return await buildAndCompare(db, live, context, signal);
    await buildUntil(await reader.lastPosition(signal), db, context, signal);
    addIndexesForReads(db, view);
    return await verify(db, view, reader);
  } finally {
    storage.seal(copy, db);
  }
};

/**
 * Builds up to where the live copy is and compares the two there. The live copy is neither paused nor waited for:
 * a snapshot of it says at which position to stop. Rounds before it keep the snapshot short-lived, since it holds
 * the write-ahead log of the live copy.
 */
const buildAndCompare = async (
  db: DatabaseSync,
  live: string,
  context: CopyContext,
  signal: AbortSignal,
): Promise<CheckReport> => {
  const { view, storage, reader } = context;
  for (let round = 0; round < 2; round += 1) {
    const target = withSnapshot(storage, live, (snapshot) => readCheckpoint(snapshot).position);
    await buildUntil(target, db, context, signal);
    addIndexesForReads(db, view);
  }
  const snapshot = storage.snapshot(live);
  try {
    const { position } = readCheckpoint(snapshot);
    await buildUntil(position, db, context, signal);
    signal.throwIfAborted();
    // What the live copy could not apply is what this rebuild is to bring in: it cannot be equal.
    if (readParked(snapshot).length > 0 && readParked(db).length === 0) return await verify(db, view, reader);
    const differences = differencesBetween(snapshot, db, view, MOST_DIFFERENCES);
    return { position, outcome: differences.length === 0 ? 'equal' : 'differs', differences };
  } finally {
    snapshot.close();
  }
};

/** Checks a copy that nothing can be compared with: counts against rows, samples against the log. */
const verify = async (db: DatabaseSync, view: View, reader: LogReader): Promise<CheckReport> => {
  const differences = (await view.verify?.(db, (stream) => reader.readStream(stream))) ?? [];
  return {
    position: readCheckpoint(db).position,
    outcome: differences.length === 0 ? 'verified' : 'differs',
    differences: differences.slice(0, MOST_DIFFERENCES),
  };
};

const buildUntil = async (
  until: Position | undefined,
  db: DatabaseSync,
  { view, reader, pace, onProgress, most = Infinity }: CopyContext,
  signal: AbortSignal,
): Promise<void> => {
  signal.throwIfAborted();
  if (until === undefined) return;
  const applier = createApplier(db, view);
  const enough = new AbortController();
  const report = (progress: Progress): void => {
    onProgress({ ...progress, parked: applier.parked() });
    if (progress.events > most && progress.position !== until) enough.abort(new LongLog());
  };
  const either = AbortSignal.any([signal, enough.signal]);
  const build = (longTransactions: boolean): Promise<void> =>
    follow({ view, reader, applier, pace, signal: either, until, onProgress: report, longTransactions }).done;
  try {
    await build(true).catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error;
      return build(false);
    });
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK');
  }
  either.throwIfAborted();
};

const withSnapshot = <Result>(
  storage: Storage,
  copy: string,
  read: (snapshot: DatabaseSync) => Result,
): Result => {
  const snapshot = storage.snapshot(copy);
  try {
    return read(snapshot);
  } finally {
    snapshot.close();
  }
};
