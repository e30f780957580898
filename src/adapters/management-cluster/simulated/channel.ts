import type { StoredMark } from '../../../app/hubs/management-cluster.ts';
import type { HubMark } from '../../../domain/hubs/mark.ts';
import { createWorkerThread, programBeside, type FromThread } from '../worker-thread.ts';
import { createHubEngine, type HubEngine, type HubEngineOptions } from './engine.ts';
import type { CallMeta, CallRequest, EngineAnswer, Tampering, WatchPoll } from './protocol.ts';

/** What can be asked of an engine. One union, so that worker and inline mode run the same code. */
export type Ask =
  | { readonly do: 'open'; readonly options: HubEngineOptions }
  | { readonly do: 'call'; readonly request: CallRequest; readonly meta: CallMeta }
  | { readonly do: 'tamper'; readonly deed: Tampering; readonly meta: CallMeta }
  | { readonly do: 'watch'; readonly kind: string; readonly namespace: string }
  | { readonly do: 'poll'; readonly watch: number; readonly now: number }
  | { readonly do: 'unwatch'; readonly watch: number }
  | { readonly do: 'read-mark' }
  | { readonly do: 'write-mark'; readonly mark: HubMark; readonly over: string | undefined }
  | { readonly do: 'synchronous' }
  | { readonly do: 'close' };

type CallAsk = Extract<Ask, { readonly do: 'call' }>;

/** Answer to each kind of question. */
export type Told<A extends Ask> = A extends { do: 'call' }
  ? EngineAnswer
  : A extends { do: 'tamper' }
    ? { readonly now: number }
    : A extends { do: 'read-mark' }
      ? StoredMark | undefined
      : A extends { do: 'write-mark' }
        ? string | undefined
        : A extends { do: 'watch' | 'synchronous' }
          ? number
          : A extends { do: 'poll' }
            ? WatchPoll
            : undefined;

/**
 * Where engines run. `hub` names one opened adapter (two adapters on one file are two hubs here). Rejects with
 * EngineFailed (its `errcode` is SQLite's), EngineNotOpen (nothing was done) or EngineLost (the thread died: the
 * outcome of a write is not known).
 */
export type EngineChannel = {
  /** Number of a new adapter. */
  nextHub(): number;
  ask<A extends Ask>(hub: number, question: A): Promise<Told<A>>;
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

/** Engines by hub, as the worker and the inline mode hold them. */
export const createEngineRoom = (monotonicMs: () => number) => {
  const engines = new Map<number, HubEngine>();
  const engineOf = (hub: number): HubEngine => {
    const engine = engines.get(hub);
    if (engine === undefined) throw new EngineNotOpen(`simulated hub ${hub} is not open`);
    return engine;
  };
  const tell = (hub: number, question: Exclude<Ask, CallAsk>): unknown => {
    switch (question.do) {
      case 'open':
        engines.set(hub, createHubEngine(question.options, monotonicMs));
        return undefined;
      case 'tamper':
        return engineOf(hub).tamper(question.deed, question.meta);
      case 'watch':
        return engineOf(hub).watches.open(question.kind, question.namespace);
      case 'poll':
        return engineOf(hub).watches.poll(question.watch, question.now);
      case 'unwatch':
        return engines.get(hub)?.watches.close(question.watch);
      case 'read-mark':
        return engineOf(hub).readMark();
      case 'write-mark':
        return engineOf(hub).writeMark(question.mark, question.over);
      case 'synchronous':
        return engineOf(hub).synchronous();
      case 'close':
        engines.get(hub)?.close();
        engines.delete(hub);
        return undefined;
    }
  };
  const guarded = (run: () => unknown): Answer => {
    try {
      return { ok: true, value: run() };
    } catch (error) {
      return { ok: false, failure: failureOf(error) };
    }
  };

  const callAll = (hub: number, calls: readonly CallAsk[]): Answer[] => {
    try {
      return engineOf(hub)
        .calls(calls)
        .map((done) => (done.ok ? done : { ok: false, failure: failureOf(done.error) }));
    } catch (error) {
      return calls.map(() => ({ ok: false, failure: failureOf(error) }));
    }
  };

  /** The first of them, all of one hub: the calls that it begins with, or its first question. */
  const answersOf = (asked: readonly { readonly hub: number; readonly question: Ask }[]): Answer[] => {
    const [first] = asked;
    if (first === undefined) return [];
    const { hub, question } = first;
    if (question.do !== 'call') return [guarded(() => tell(hub, question))];
    const others = asked.findIndex((one) => one.question.do !== 'call');
    const calls = asked.slice(0, others < 0 ? undefined : others).map((one) => one.question as CallAsk);
    return callAll(hub, calls);
  };

  return {
    /** Answers in the order of the questions. Calls in a row on one hub share a transaction. */
    answerAll: (questions: readonly { readonly hub: number; readonly question: Ask }[]): Answer[] => {
      const answers: Answer[] = [];
      for (const asked of Map.groupBy(questions.entries(), ([, { hub }]) => hub).values())
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

/** Calls that share a transaction at most; bounds how long the first of them waits. */
const LONGEST_BATCH = 100;

/** In the caller's thread: for simulations with virtual time. Answers come in a later microtask, never earlier. */
export const createInlineChannel = (monotonicMs: () => number): EngineChannel => {
  const room = createEngineRoom(monotonicMs);
  let hubs = 0;
  return {
    nextHub: () => (hubs += 1),
    ask: async <A extends Ask>(hub: number, question: A) => {
      await Promise.resolve();
      const [answer] = room.answerAll([{ hub, question }]);
      if (answer?.ok !== true) throw errorOf(answer?.failure ?? failureOf('no answer'));
      return answer.value as Told<A>;
    },
    close: () => Promise.resolve(),
  };
};

/** One worker thread for all simulated hubs of a process; started when first needed, again after it died. */
export const createWorkerChannel = (): EngineChannel => {
  const thread = createWorkerThread<{ hub: number; question: Ask }, Answer>({
    name: 'simulated-hubs',
    program: programBeside(import.meta.url, 'hub-worker'),
    lost: (cause) => () => new EngineLost('the thread of the simulated hubs ended', { cause }),
  });
  let hubs = 0;
  return {
    nextHub: () => (hubs += 1),
    ask: async <A extends Ask>(hub: number, question: A) => {
      if (thread.state() === 'closed') throw new EngineNotOpen('the thread of the simulated hubs is closed');
      const answer = await thread.ask({ hub, question });
      if (!answer.ok) throw errorOf(answer.failure);
      return answer.value as Told<A>;
    },
    close: thread.close,
  };
};
