import { createWorkerThread, type FromThread } from '../management-cluster/worker-thread.ts';
import type { Attempt } from './file.ts';

/**
 * Where the engines of simulated systems run: in a worker thread, or in the caller's for virtual time. One union of
 * questions, so that both run the same code.
 */
export type CommonAsk<Options, Call extends object> =
  | { readonly do: 'open'; readonly options: Options }
  | ({ readonly do: 'call' } & Call)
  | { readonly do: 'close' };

/**
 * `system` names one opened adapter (two adapters on one file are two systems here). Rejects with EngineFailed (its
 * `errcode` is SQLite's), EngineNotOpen (nothing was done) or EngineLost (the thread died: the outcome of a write is not
 * known).
 */
export type AnyChannel<Question> = {
  /** Number of a new adapter. */
  next(): number;
  ask(system: number, question: Question): Promise<unknown>;
  close(): Promise<void>;
};

export class EngineLost extends Error {
  override readonly name = 'EngineLost';
}
export class EngineNotOpen extends Error {
  override readonly name = 'EngineNotOpen';
}
export class EngineFailed extends Error {
  override readonly name = 'EngineFailed';
  readonly errcode: number | undefined;
  constructor(message: string, errcode: number | undefined) {
    super(message);
    this.errcode = errcode;
  }
}

/** SQLite result codes after which the transaction is certainly rolled back: BUSY, FULL, READONLY, CANTOPEN. */
const ROLLED_BACK = new Set([5, 13, 8, 14]);

/** Only some failures of a simulated system's own disk or thread leave no doubt that nothing was done. */
export const certainlyNotDone = (error: unknown): boolean =>
  error instanceof EngineNotOpen ||
  (error instanceof EngineFailed && ROLLED_BACK.has((error.errcode ?? 0) & 0xff));

/** Errors lose their class and fields between threads; this is what is kept of them. */
type Failure = { readonly notOpen: boolean; readonly message: string; readonly errcode: number | undefined };
type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly failure: Failure };
export type FromWorker = FromThread<Answer>;

const failureOf = (error: unknown): Failure => ({
  notOpen: error instanceof EngineNotOpen,
  message: error instanceof Error ? error.message : String(error),
  errcode: error instanceof Error && 'errcode' in error ? Number(error.errcode) : undefined,
});
const errorOf = (failure: Failure): Error =>
  failure.notOpen ? new EngineNotOpen(failure.message) : new EngineFailed(failure.message, failure.errcode);

/** What an engine is asked in any case. Calls that wait at the same time share a transaction. */
type AnyEngine<Call> = {
  calls(waiting: readonly Call[]): readonly Attempt<unknown>[];
  close(): void;
};

/** What one kind of simulated system brings along. */
export type EngineKind<Options, Call extends object, Other, Engine extends AnyEngine<Call>> = {
  /** For people: `hub`. */
  readonly word: string;
  readonly open: (options: Options, monotonicMs: () => number) => Engine;
  readonly tell: (engine: Engine, question: Other) => unknown;
};

export type Asked<Question> = { readonly system: number; readonly question: Question };
export type EngineRoom<Question> = {
  /** Answers in the order of the questions. Calls in a row on one system share a transaction. */
  answerAll(questions: readonly Asked<Question>[]): Answer[];
};

/** Calls that share a transaction at most; bounds how long the first of them waits. */
const LONGEST_BATCH = 100;

/** Engines by system, as the worker and the inline mode hold them. */
export const createEngineRoom = <
  Options,
  Call extends object,
  Other extends { readonly do: string },
  Engine extends AnyEngine<Call>,
>(
  kind: EngineKind<Options, Call, Other, Engine>,
  monotonicMs: () => number,
): EngineRoom<CommonAsk<Options, Call> | Other> => {
  type Question = CommonAsk<Options, Call> | Other;
  type CallAsk = { readonly do: 'call' } & Call;
  const isCall = (question: Question): question is CallAsk => question.do === 'call';
  const engines = new Map<number, Engine>();
  const engineOf = (system: number): Engine => {
    const engine = engines.get(system);
    if (engine === undefined) throw new EngineNotOpen(`simulated ${kind.word} ${system} is not open`);
    return engine;
  };
  const tell = (system: number, question: Question): unknown => {
    if (question.do === 'open') {
      const { options } = question as { readonly options: Options };
      engines.set(system, kind.open(options, monotonicMs));
    } else if (question.do === 'close') {
      engines.get(system)?.close();
      engines.delete(system);
    } else return kind.tell(engineOf(system), question as Other);
    return undefined;
  };
  const guarded = (run: () => unknown): Answer => {
    try {
      return { ok: true, value: run() };
    } catch (error) {
      return { ok: false, failure: failureOf(error) };
    }
  };

  const callAll = (system: number, calls: readonly CallAsk[]): Answer[] => {
    try {
      return engineOf(system)
        .calls(calls)
        .map((done) => (done.ok ? done : { ok: false, failure: failureOf(done.error) }));
    } catch (error) {
      return calls.map(() => ({ ok: false, failure: failureOf(error) }));
    }
  };

  /** The first of them, all of one system: the calls that it begins with, or its first question. */
  const answersOf = (asked: readonly Asked<Question>[]): Answer[] => {
    const [first] = asked;
    if (first === undefined) return [];
    const { system, question } = first;
    if (!isCall(question)) return [guarded(() => tell(system, question))];
    const others = asked.findIndex((one) => !isCall(one.question));
    const calls = asked
      .slice(0, others < 0 ? undefined : others)
      .map((one) => one.question)
      .filter(isCall);
    return callAll(system, calls);
  };

  return {
    answerAll: (questions) => {
      const answers: Answer[] = [];
      for (const asked of Map.groupBy(questions.entries(), ([, { system }]) => system).values())
        for (let at = 0; at < asked.length; ) {
          const told = answersOf(asked.slice(at, at + LONGEST_BATCH).map(([, one]) => one));
          for (const answer of told) {
            const [place] = asked[at] ?? [0];
            answers[place] = answer;
            at += 1;
          }
        }
      return answers;
    },
  };
};

/** In the caller's thread: for simulations with virtual time. Answers come in a later microtask, never earlier. */
export const inlineChannel = <Question>(room: EngineRoom<Question>): AnyChannel<Question> => {
  let systems = 0;
  return {
    next: () => (systems += 1),
    ask: async (system, question) => {
      await Promise.resolve();
      const [answer] = room.answerAll([{ system, question }]);
      if (answer?.ok !== true) throw errorOf(answer?.failure ?? failureOf('no answer'));
      return answer.value;
    },
    close: () => Promise.resolve(),
  };
};

/** One worker thread for all systems of a kind in a process; started when first needed, again after it died. */
export const workerChannel = <Question>(name: string, program: URL): AnyChannel<Question> => {
  const words = name.replaceAll('-', ' ');
  const thread = createWorkerThread<Asked<Question>, Answer>({
    name,
    program,
    lost: (cause) => () => new EngineLost(`the thread of the ${words} ended`, { cause }),
  });
  let systems = 0;
  return {
    next: () => (systems += 1),
    ask: async (system, question) => {
      if (thread.state() === 'closed') throw new EngineNotOpen(`the thread of the ${words} is closed`);
      const answer = await thread.ask({ system, question });
      if (!answer.ok) throw errorOf(answer.failure);
      return answer.value;
    },
    close: thread.close,
  };
};
