import { Worker } from 'node:worker_threads';

/** A thread that answers questions by their numbers, in any order. */
export type WorkerThread<Question extends object, Answer> = {
  readonly state: () => 'none' | 'running' | 'closed';
  /**
   * Starts the thread where there is none. `holds` false: this question alone does not keep the process alive. Rejects
   * with what `lost` makes when the thread ends first. Not to be called once it is closed.
   */
  ask(question: Question, holds?: boolean): Promise<Answer>;
  close(): Promise<void>;
};

export type FromThread<Answer> = { readonly number: number; readonly answer: Answer };

/** The file is `.ts` when run from source and `.js` in a build. */
export const programBeside = (module: string, name: string): URL =>
  new URL(`./${name}.${module.endsWith('.ts') ? 'ts' : 'js'}`, module);

/** Bound of the young generation, MB: without one it may grow to 128 MB. */
const YOUNG_MB = 24;

/**
 * One thread, started when first needed and again after it died. A thread that nobody asks keeps no process alive. It
 * gets the questions of one turn as one message, each with its number. Answers come one by one, or several as JSON, which
 * costs a fifth of what a copy of many nested objects does.
 */
export const createWorkerThread = <Question extends object, Answer, Note extends object = never>(options: {
  readonly name: string;
  readonly program: URL;
  /** Mebibytes above which it ends, instead of taking the process with it. Default: no bound of its own. */
  readonly maxHeapMb?: number;
  /** Called for each thread that ended while others still wait; makes their errors. */
  readonly lost: (cause: unknown) => () => Error;
  /** What the thread says by itself. */
  readonly heard?: (note: Note) => void;
}): WorkerThread<Question, Answer> => {
  type Waiting = {
    readonly resolve: (answer: Answer) => void;
    readonly reject: (error: Error) => void;
    readonly holds: boolean;
  };
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let unsent: ({ readonly number: number } & Question)[] = [];
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

  const lose = (gone: Worker, cause: unknown): void => {
    if (worker !== gone) return;
    worker = undefined;
    const error = options.lost(cause);
    for (const number of waiting.keys()) finish(number)?.reject(error());
  };

  const send = (): void => {
    const questions = unsent;
    unsent = [];
    // Those of a thread that ended since are answered.
    const open = questions.filter(({ number }) => waiting.has(number));
    if (open.length === 0) return;
    try {
      (worker ?? start()).postMessage(open);
    } catch (error) {
      // One of them cannot be sent: none was.
      for (const { number } of open) finish(number)?.reject(error as Error);
    }
  };

  const start = (): Worker => {
    const started = new Worker(options.program, {
      name: options.name,
      resourceLimits: {
        maxYoungGenerationSizeMb: YOUNG_MB,
        ...(options.maxHeapMb === undefined ? {} : { maxOldGenerationSizeMb: options.maxHeapMb }),
      },
    });
    started.on('message', (message: FromThread<Answer> | string | Note) => {
      if (typeof message === 'string')
        for (const { number, answer } of JSON.parse(message) as readonly FromThread<Answer>[])
          finish(number)?.resolve(answer);
      else if ('number' in message && 'answer' in message) finish(message.number)?.resolve(message.answer);
      else options.heard?.(message);
    });
    started.on('error', (cause) => lose(started, cause));
    started.on('exit', () => lose(started, undefined));
    started.unref();
    worker = started;
    return started;
  };

  return {
    state: () => (closed ? 'closed' : worker === undefined ? 'none' : 'running'),
    ask: (question, holds = true) =>
      new Promise((resolve, reject) => {
        const running = worker ?? start();
        asked += 1;
        waiting.set(asked, { resolve, reject, holds });
        if (holds) {
          held += 1;
          running.ref();
        }
        if (unsent.length === 0) setImmediate(send);
        unsent.push({ number: asked, ...question });
      }),
    close: async () => {
      closed = true;
      const running = worker;
      // Referenced again, or the process may end before the thread has.
      running?.ref();
      await running?.terminate();
    },
  };
};
