import type { Logger } from '../../../app/ports.ts';
import { hubError } from '../error-data.ts';
import { createWorkerThread, programBeside, type WorkerThread } from '../worker-thread.ts';
import type { Answer, Ask, Note, Told } from './protocol.ts';

/** The hub is not open in the thread (any more): nothing was done. */
export class NotOpen extends Error {
  override readonly name = 'NotOpen';
}
/** The thread ended or failed: what a write did is not known. */
export class ThreadLost extends Error {
  override readonly name = 'ThreadLost';
}

/** Where the clients of hubs run. `hub` names one opened adapter. Rejects with HubError, NotOpen or ThreadLost. */
export type HubChannel = {
  nextHub(name: string): number;
  ask<A extends Ask>(hub: number, question: A): Promise<Told<A>>;
  close(): Promise<void>;
};

/** What an answer comes to; throws what it tells. */
export const valueOf = (answer: Answer): unknown => {
  if (answer.ok) return answer.value;
  if ('error' in answer) throw hubError(answer.error);
  if ('notOpen' in answer) throw new NotOpen('the hub is not open in its thread');
  throw new ThreadLost(answer.fault);
};

/** Numbers of the adapters of a channel, and their log. */
export const hubNumbers = (logger: Logger) => {
  const known: string[] = [];
  return {
    nextHub: (name: string): number => known.push(name) - 1,
    log: ({ hub, level, fields, message }: Note): void =>
      logger[level]({ hub: known[hub] ?? '', ...fields }, message),
  };
};

/** Above this the thread ends, is started again and lists anew, instead of taking the process with it. */
const MAX_HEAP_MB = 1_536;

/** One worker thread for all hubs of a process; started when first needed, again after it died. */
export const createWorkerChannel = (options: {
  readonly logger: Logger;
  /** The thread's program. Default: hub-worker beside this file. */
  readonly program?: URL;
}): HubChannel => {
  const { logger, program = programBeside(import.meta.url, 'hub-worker') } = options;
  const { nextHub, log } = hubNumbers(logger);
  const thread: WorkerThread<{ hub: number; question: Ask }, Answer> = createWorkerThread<
    { hub: number; question: Ask },
    Answer,
    { readonly note: Note }
  >({
    name: 'kubernetes-hubs',
    program,
    maxHeapMb: MAX_HEAP_MB,
    heard: ({ note }) => log(note),
    lost: (cause) => {
      const message = 'the thread of the Kubernetes hubs ended';
      if (thread.state() !== 'closed') logger.error({ err: cause }, `${message}; restarting it when needed`);
      return () => new ThreadLost(message, { cause });
    },
  });
  return {
    nextHub,
    ask: async <A extends Ask>(hub: number, question: A) => {
      if (thread.state() === 'closed') throw new NotOpen('the thread of the Kubernetes hubs is closed');
      // Only credentials start it: nothing else can be answered by a thread that knows no hub.
      if (thread.state() === 'none' && question.do !== 'open') throw new NotOpen('no thread yet');
      // A watch that waits for news does not keep a process alive.
      return valueOf(await thread.ask({ hub, question }, question.do !== 'next')) as Told<A>;
    },
    close: thread.close,
  };
};
