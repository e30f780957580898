import { Worker } from 'node:worker_threads';
import type { Logger } from '../../../app/ports.ts';
import { hubError } from '../error-data.ts';
import type { Answer, Ask, FromWorker, Note, Told } from './protocol.ts';

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

type Waiting = {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** A watch that waits for news does not keep a process alive. */
  readonly holds: boolean;
};

/** Above this the thread ends, is started again and lists anew, instead of taking the process with it. */
const MAX_HEAP_MB = 1_536;

/** One worker thread for all hubs of a process; started when first needed, again after it died. */
export const createWorkerChannel = (options: {
  readonly logger: Logger;
  /** The thread's program. Default: hub-worker beside this file. */
  readonly program?: URL;
}): HubChannel => {
  const { logger } = options;
  const { nextHub, log } = hubNumbers(logger);
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let asked = 0;
  let held = 0;
  let closed = false;

  const finish = (number: number): Waiting | undefined => {
    const one = waiting.get(number);
    waiting.delete(number);
    if (one?.holds === true) held -= 1;
    if (held === 0) worker?.unref();
    return one;
  };

  const lose = (lost: Worker, cause?: unknown): void => {
    if (worker !== lost) return;
    worker = undefined;
    if (!closed)
      logger.error(
        { err: cause },
        'the thread of the Kubernetes hubs ended; it is started again when needed',
      );
    for (const number of waiting.keys())
      finish(number)?.reject(new ThreadLost('the thread of the Kubernetes hubs ended', { cause }));
  };

  const start = (): Worker => {
    // The file is `.ts` when run from source and `.js` in a build.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const program = options.program ?? new URL(`./hub-worker.${extension}`, import.meta.url);
    const started = new Worker(program, {
      name: 'kubernetes-hubs',
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    started.on('message', (message: FromWorker) => {
      if ('note' in message) return log(message.note);
      const one = finish(message.number);
      try {
        one?.resolve(valueOf(message.answer));
      } catch (error) {
        one?.reject(error);
      }
    });
    started.on('error', (cause) => lose(started, cause));
    started.on('exit', () => lose(started));
    started.unref();
    worker = started;
    return started;
  };

  return {
    nextHub,
    ask: <A extends Ask>(hub: number, question: A) =>
      new Promise<Told<A>>((resolve, reject) => {
        if (closed) return reject(new NotOpen('the thread of the Kubernetes hubs is closed'));
        // Only credentials start it: nothing else can be answered by a thread that knows no hub.
        if (worker === undefined && question.do !== 'open') return reject(new NotOpen('no thread yet'));
        const running = worker ?? start();
        asked += 1;
        const holds = question.do !== 'next';
        if (holds) held += 1;
        waiting.set(asked, { resolve: (value) => resolve(value as Told<A>), reject, holds });
        if (holds) running.ref();
        running.postMessage({ number: asked, hub, question });
      }),
    close: async () => {
      closed = true;
      const running = worker;
      running?.ref();
      await running?.terminate();
    },
  };
};
