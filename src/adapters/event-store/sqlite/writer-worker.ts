import type { DatabaseSync } from 'node:sqlite';
import { BroadcastChannel, parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { checkAtStart } from './check-at-start.ts';
import { isNoSpace, messageOf, packError } from './errors.ts';
import { readFaults } from './faults.ts';
import { openLogForWriting, pragma, readStoreId } from './schema.ts';
import { createWriter } from './writer.ts';
import {
  GATHERED_MS,
  growthChannel,
  type FromWriter,
  type Request,
  type ToWriter,
  type WriterData,
  type WriterPragmas,
} from './writer-protocol.ts';

/**
 * The writer thread: opens the log, answers batches and requests in the order they come, and tells every reader
 * after each COMMIT how far the log reaches. An error that it cannot answer ends the thread; the main thread
 * starts another.
 */
const start = (port: MessagePort, data: WriterData): void => {
  const faults = data.faults && readFaults(data.faults);
  const send = (message: FromWriter): void => port.postMessage(message);
  const db = openOrReport(data, send);
  if (db === undefined) return port.close();
  faults?.atStart();
  const writer = createWriter(db, faults && { takeCommitFault: faults.takeCommitFault });
  const storeId = readStoreId(db, data.file);
  const growth = openGrowth(storeId);
  let announced = writer.last();
  let refusedLast = false;

  const answerBatch = (batch: Extract<ToWriter, unknown[]>): void => {
    faults?.beforeBatch();
    const answer = writer.write(batch);
    refusedLast = answer.kind !== 'settled';
    const isLost = faults?.takeLostAnswer() === true;
    // Before the readers are told: somebody waits for it, and waking a thread takes longer than the commit's own work.
    if (!isLost) send({ kind: 'batch', answer });
    if (answer.kind === 'settled' && answer.last > announced) {
      announced = answer.last;
      growth.grew(announced);
    }
    if (answer.kind === 'unknown' && !isLost) throw new Error(`the event log is in doubt: ${answer.message}`);
  };

  const answerRequest = (request: Request): WriterPragmas | undefined => {
    switch (request.kind) {
      case 'ping':
        // After a refusal only a commit shows whether the log takes writes again.
        if (refusedLast) writer.probe();
        refusedLast = false;
        return undefined;
      case 'pragmas':
        return readPragmas(db);
      case 'set-max-count':
        writer.setMaxCount(request.stream, request.maxCount);
        return undefined;
      case 'close':
        // Leaves one file behind. A reader in the middle of a page makes it a partial checkpoint: no harm.
        db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
        db.close();
        growth.close();
        return undefined;
    }
  };

  port.on('message', (message: ToWriter) => {
    faults?.beforeMessage((pages) => db.exec(`PRAGMA max_page_count = ${pages}`));
    if (Array.isArray(message)) return answerBatch(message);
    const { id, request } = message;
    try {
      send({ kind: 'done', id, result: answerRequest(request) });
    } catch (error) {
      send({ kind: 'failed', id, reason: isNoSpace(error) ? 'full' : 'down', message: messageOf(error) });
    }
    if (request.kind === 'close') port.close();
  });
  send({ kind: 'ready', storeId, last: announced });
};

/** Tells the readers of all threads how far the log reaches, each at its own pace. */
const openGrowth = (storeId: string) => {
  const each = new BroadcastChannel(growthChannel(storeId, 'each'));
  const gathered = new BroadcastChannel(growthChannel(storeId, 'gathered'));
  let last = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    grew: (reached: number): void => {
      last = reached;
      each.postMessage(last);
      timer ??= setTimeout(() => {
        timer = undefined;
        gathered.postMessage(last);
      }, GATHERED_MS);
    },
    close: (): void => {
      clearTimeout(timer);
      each.close();
      gathered.close();
    },
  };
};

const openOrReport = (data: WriterData, send: (message: FromWriter) => void): DatabaseSync | undefined => {
  const { file, busyMs, checkNewest } = data;
  try {
    return openLogForWriting({ file, busyMs, check: (db) => checkAtStart(db, file, checkNewest) });
  } catch (error) {
    send({ kind: 'start-failed', error: packError(error) });
    return undefined;
  }
};

const readPragmas = (db: DatabaseSync): WriterPragmas => ({
  journalMode: String(db.prepare('PRAGMA journal_mode').get()?.['journal_mode']),
  synchronous: pragma(db, 'synchronous'),
  pageSize: pragma(db, 'page_size'),
  pageCount: pragma(db, 'page_count'),
  walAutocheckpoint: pragma(db, 'wal_autocheckpoint'),
  userVersion: pragma(db, 'user_version'),
});

if (parentPort === null) throw new Error('this module runs in a worker thread only');
start(parentPort, workerData as WriterData);
