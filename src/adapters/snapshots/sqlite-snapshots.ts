import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../app/ports.ts';
import type { Snapshot, SnapshotStore } from '../../app/commands/snapshot-store.ts';
import type { SnapshotAnswer, SnapshotRequest, SnapshotWorkerData } from './snapshot-worker.ts';

/** Saves that may wait for the worker; more are dropped, since the next snapshot of the stream replaces them. */
const MAX_WAITING = 256;

/**
 * Snapshots in an SQLite file of their own, read and written by a worker thread: a fold is never slower
 * because a snapshot is being written. The worker starts with the first snapshot that is saved or may be there. When
 * it or
 * the file fails there simply are no snapshots.
 */
export const openSqliteSnapshots = ({
  file,
  storeId,
  logger,
}: {
  /** Created when missing; a broken or foreign one is replaced. */
  file: string;
  /** Snapshots of another store are ignored. */
  storeId: string;
  logger: Logger;
}): SnapshotStore & { waiting(): number } => {
  let worker: Worker | undefined;
  let usable = true;
  let nextCall = 0;
  let saving = 0;
  const calls = new Map<number, (snapshot: Snapshot | undefined) => void>();

  const giveUp = (error: unknown): void => {
    if (usable) logger.warn({ err: error }, 'snapshots off; folding long streams from their beginning');
    usable = false;
    saving = 0;
    for (const answer of calls.values()) answer(undefined);
    calls.clear();
  };
  const onMessage = (message: SnapshotAnswer): void => {
    if (message.kind === 'saved') {
      saving -= message.count;
    } else if (message.kind === 'failed') {
      logger.warn({ problem: message.problem }, 'snapshot not read or written');
    } else {
      calls.get(message.call)?.(message.snapshot);
      calls.delete(message.call);
    }
  };
  const start = (): Worker => {
    const workerData: SnapshotWorkerData = { file, storeId };
    // The file name follows this one, so that the built service starts its built worker.
    const started = new Worker(
      new URL(import.meta.url.replace(/sqlite-snapshots(\.[cm]?[jt]s)/, 'snapshot-worker$1')),
      // Texts come in and go to SQLite; by default this part of the heap may grow to 48 MB.
      { workerData, name: 'snapshots', resourceLimits: { maxYoungGenerationSizeMb: 6 } },
    );
    started.unref();
    started.on('error', giveUp);
    started.on('exit', () => giveUp(new Error('the snapshot worker ended')));
    started.on('message', onMessage);
    return started;
  };
  const send = (request: SnapshotRequest): void => {
    worker ??= start();
    worker.postMessage(request);
  };

  return {
    load: (stream) => {
      // Without a file there are none, and most services of a day's age have none.
      if (!usable || (worker === undefined && !existsSync(file))) return Promise.resolve(undefined);
      nextCall += 1;
      const call = nextCall;
      return new Promise((resolve) => {
        calls.set(call, resolve);
        send({ kind: 'load', call, stream });
      });
    },
    save: (snapshot) => {
      if (!usable || saving >= MAX_WAITING) return;
      try {
        send({ kind: 'save', snapshot });
        saving += 1;
      } catch (error) {
        // A state that cannot be cloned: a bug of its aggregate, but none that may fail a command.
        logger.warn({ err: error, stream: snapshot.stream }, 'state not kept as a snapshot');
      }
    },
    close: async () => {
      if (!usable) return;
      usable = false;
      const ending = worker;
      if (ending === undefined) return;
      await new Promise<void>((resolve) => {
        ending.once('exit', () => resolve());
        send({ kind: 'close' });
      });
    },
    waiting: () => saving,
  };
};
