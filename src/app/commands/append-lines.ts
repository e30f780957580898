import type { Decision, DomainEvent } from '../../domain/decider.ts';
import type { Before, CommandContext, CommandOutcome, ExecuteOptions, Fold } from './command.ts';
import type { Appended, EventToAppend, ExpectedRevision } from '../log/event-store.ts';
import { loadedOf, type FoldedStream } from './loaded-streams.ts';

/** One call of `CommandRunner.execute`, as the steps of its loop see it. */
export type Attempt<S, B extends Before = Before> = {
  readonly aggregate: Fold<S>;
  readonly stream: string;
  /** Type of the command. */
  readonly command: string;
  readonly decide: (state: S) => Decision<DomainEvent>;
  readonly context: CommandContext;
  readonly options: ExecuteOptions<S, never, B>;
};

/** What a call may have stored without knowing: `expected` is where its last append, if it made one, was to go. */
export type Unsettled = {
  unknown: boolean;
  expected: ExpectedRevision | undefined;
  /** Where the stream was found to end instead, with nothing but records of the store behind its last event. */
  end?: number | undefined;
};

/** Those before it failed, or their order is not known: the command is to be carried out alone after all. */
export type Alone = { readonly outcome: 'alone'; readonly settled: Unsettled };

/**
 * Commands of one stream that follow each other to the store without waiting for each other's commit. Otherwise a
 * stream takes one append per commit, which for the capacity of a hub is one order after the other.
 *
 * How it stays safe: each is decided on what the stream will hold once those before it are stored, and appended at
 * exactly that revision. When one of them fails, those behind it fail too, for the stream is not where they expect it;
 * they are then carried out alone. Only what is appended goes this way: a refusal, or nothing to do, would rest on what
 * may never be stored, so such a command waits for those before it and is decided again.
 *
 * Meant for a store with one writer, which keeps the order of appends.
 */
export type AppendLines = {
  /**
   * To be called in the stream's turn, which ends when this resolves. Undefined: the command has to be carried out
   * alone. The outcome follows when it is stored. Rejects with what the store threw.
   */
  join<S>(attempt: Attempt<S>): Promise<{ readonly outcome: Promise<CommandOutcome<S> | Alone> } | undefined>;
  /** Resolves when nothing is on its way to this stream. */
  drained(stream: string): Promise<void> | undefined;
  idle(): Promise<void>;
};

export type AppendLinesOptions = {
  /** The stream as it is stored; undefined: it cannot be said for sure now. */
  readonly start: <S>(attempt: Attempt<S>) => Promise<FoldedStream<S> | undefined>;
  /** What the command appends when it is decided on this state; undefined: it appends nothing, or did so before. */
  readonly decide: <S>(
    attempt: Attempt<S>,
    stored: FoldedStream<S>,
    state: S,
  ) => Promise<
    { readonly events: readonly DomainEvent[]; readonly encoded: readonly EventToAppend[] } | undefined
  >;
  /** Undefined: the stream is not at that revision. Throws OutcomeUnknown and StoreUnavailable. */
  readonly append: <S>(
    attempt: Attempt<S>,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    settled: Unsettled,
  ) => Promise<Appended | undefined>;
  /** Moves the cached state on. */
  readonly advance: <S>(
    attempt: Attempt<S>,
    stored: FoldedStream<S>,
    events: readonly DomainEvent[],
    encoded: readonly EventToAppend[],
    appended: Appended,
  ) => void;
  /** Something failed: what is remembered of the stream need not be what is stored. */
  readonly forget: (stream: string) => void;
};

type Line = {
  readonly stored: FoldedStream<unknown>;
  /** As the stream will be when all that is on its way is stored. */
  state: unknown;
  revision: ExpectedRevision;
  /** On their way. */
  readonly commands: Set<string>;
  broken: boolean;
  ended: PromiseWithResolvers<void>;
};

/** Of one stream: what a failure would have to carry out again. */
const MOST = 64;

export const createAppendLines = (options: AppendLinesOptions): AppendLines => {
  const lines = new Map<string, Line>();

  const lineOf = async <S>(attempt: Attempt<S>): Promise<Line | undefined> => {
    const known = lines.get(attempt.stream);
    if (known !== undefined) return known.broken || known.commands.size >= MOST ? undefined : known;
    const stored = await options.start(attempt);
    if (stored === undefined) return undefined;
    const { state, revision } = stored;
    return { stored, state, revision, commands: new Set(), broken: false, ended: Promise.withResolvers() };
  };

  const leave = (stream: string, line: Line, commandId: string): void => {
    line.commands.delete(commandId);
    if (line.broken) options.forget(stream);
    if (line.commands.size > 0) return;
    lines.delete(stream);
    line.ended.resolve();
  };

  const send = async <S>(
    attempt: Attempt<S>,
    line: Line,
    expected: ExpectedRevision,
    events: readonly DomainEvent[],
    encoded: readonly EventToAppend[],
  ): Promise<CommandOutcome<S> | Alone> => {
    const { stream, context } = attempt;
    const settled: Unsettled = { unknown: false, expected };
    try {
      const appended = await options.append(attempt, expected, encoded, settled);
      // This line's stream is folded as the same aggregate by all of its commands.
      const stored = line.stored as FoldedStream<S>;
      const inOrder = !line.broken && stored.revision === expected;
      if (appended === undefined || appended.duplicate || !inOrder) {
        // Carried out alone, a command that is stored already finds itself there.
        line.broken = true;
        if (appended !== undefined) settled.unknown = true;
        return { outcome: 'alone', settled };
      }
      options.advance(attempt, stored, events, encoded, appended);
      return { outcome: 'accepted', loaded: loadedOf(stored), events, replayed: false };
    } catch (error) {
      line.broken = true;
      throw error;
    } finally {
      leave(stream, line, context.commandId);
    }
  };

  return {
    join: async <S>(attempt: Attempt<S>) => {
      const { aggregate, stream, context } = attempt;
      const line = await lineOf(attempt);
      if (line === undefined || line.commands.has(context.commandId)) return undefined;
      const planned = await options.decide(attempt, line.stored as FoldedStream<S>, line.state as S);
      // Meanwhile what was on its way may have failed, or all of it be stored.
      if (planned === undefined || line.broken) return undefined;
      const { events, encoded } = planned;
      const expected = line.revision;
      line.state = (events as readonly never[]).reduce(aggregate.decider.evolve, line.state as S);
      line.revision = (expected === 'no_stream' ? -1 : expected) + events.length;
      if (line.commands.size === 0) {
        line.ended = Promise.withResolvers();
        lines.set(stream, line);
      }
      line.commands.add(context.commandId);
      return { outcome: send(attempt, line, expected, events, encoded) };
    },
    drained: (stream) => lines.get(stream)?.ended.promise,
    idle: async () => {
      while (lines.size > 0) await Promise.all([...lines.values()].map(({ ended }) => ended.promise));
    },
  };
};
