import type { Logger } from '../../../app/ports.ts';
import { messageOf, unpackError } from './errors.ts';
import { startThread } from './threads.ts';
import type { FromWriter, ToWriter, WriterData } from './writer-protocol.ts';

const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;

export type WriterMessage = Extract<FromWriter, { kind: 'batch' | 'done' | 'failed' }>;

export type WriterThread = {
  readonly storeId: string;
  /** Number of the last event when the thread started. */
  readonly last: number;
  readonly post: (message: ToWriter) => void;
  /** Kills the thread; its end follows, after a system call that it is stuck in. */
  readonly kill: () => void;
};

type ThreadEvents = {
  readonly onMessage: (message: WriterMessage) => void;
  /** The thread has ended, for whatever reason: nothing more comes from it, nothing more is committed by it. */
  readonly onEnd: (error: Error | undefined) => void;
};

/** Starts a writer thread. Rejects with StoreDamaged, StoreTooNew or what else kept it from opening the log. */
const startWriterThread = (data: WriterData, { onMessage, onEnd }: ThreadEvents): Promise<WriterThread> =>
  new Promise((resolve, reject) => {
    const worker = startThread('writer-worker', data);
    let ready = false;
    let failure: Error | undefined;
    worker.on('message', (message: FromWriter) => {
      if (message.kind === 'start-failed') failure = unpackError(message.error);
      else if (message.kind !== 'ready') onMessage(message);
      else {
        ready = true;
        resolve({
          storeId: message.storeId,
          last: message.last,
          post: (toWriter) => worker.postMessage(toWriter),
          kill: () => void worker.terminate(),
        });
      }
    });
    worker.on('error', (error) => {
      failure = error instanceof Error ? error : new Error(String(error));
    });
    worker.on('exit', () => {
      if (ready) onEnd(failure);
      else reject(failure ?? new Error('the writer thread ended before it was ready'));
    });
  });

export type SupervisedWriter = {
  readonly first: WriterThread;
  /** Undefined while there is none: it died and another has not started yet. */
  readonly current: () => WriterThread | undefined;
  /** Milliseconds after which another is tried next. */
  readonly retryMs: () => number;
  /** The thread works: the next restart comes quickly again. */
  readonly isWell: () => void;
  /** No other thread is started from now on. Resolves when there is none. */
  readonly noMore: () => Promise<void>;
};

export type SupervisorEvents = ThreadEvents & { readonly onStart: (thread: WriterThread) => void };

/**
 * Keeps a writer thread running: one that died is replaced, only after its end, with growing pauses while that
 * fails. Rejects when the first one does not start.
 */
export const superviseWriter = async (
  data: WriterData,
  events: SupervisorEvents,
  logger: Logger | undefined,
): Promise<SupervisedWriter> => {
  let thread: WriterThread | undefined;
  let pauseMs = FIRST_RESTART_MS;
  let pause: NodeJS.Timeout | undefined;
  let stopping = false;
  let stopped = (): void => {};
  const allEnded = new Promise<void>((resolve) => {
    stopped = resolve;
  });

  const onEnd = (error: Error | undefined): void => {
    thread = undefined;
    events.onEnd(error);
    if (stopping) return stopped();
    logger?.error({ error: messageOf(error), pauseMs }, 'event log writer ended; starting another');
    startLater();
  };
  const start = async (): Promise<WriterThread> => {
    const started = await startWriterThread(data, { onMessage: events.onMessage, onEnd });
    thread = started;
    events.onStart(started);
    return started;
  };
  const startLater = (): void => {
    pause = setTimeout(() => {
      pause = undefined;
      pauseMs = Math.min(pauseMs * 2, LONGEST_RESTART_MS);
      start().then(
        () => logger?.info({}, 'event log writer runs again'),
        (error: unknown) => {
          if (stopping) return stopped();
          logger?.error({ error: messageOf(error), pauseMs }, 'event log writer does not start');
          startLater();
        },
      );
    }, pauseMs);
  };

  const first = await start();
  return {
    first,
    current: () => thread,
    retryMs: () => pauseMs,
    isWell: () => {
      pauseMs = FIRST_RESTART_MS;
    },
    noMore: () => {
      stopping = true;
      if (pause !== undefined) {
        clearTimeout(pause);
        stopped();
      }
      return allEnded;
    },
  };
};
