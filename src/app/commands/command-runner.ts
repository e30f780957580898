import { isRefused, isRejection, type DomainEvent, type Rejection } from '../../domain/decider.ts';
import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import { createAppendLines, type Attempt, type Unsettled } from './append-lines.ts';
import {
  IdempotencyMismatch,
  type Before,
  type Fold,
  type CommandOutcome,
  type CommandRunner,
  type ExecuteOptions,
  type SentAppend,
  type Withheld,
} from './command.ts';
import {
  findPastAppend,
  type CommandIndex,
  errorName,
  resultName,
  type CommandResultName,
  createFoldedCache,
  emptyStream,
  endOf,
  foldEvent,
  loadedOf,
  noteEnd,
  type FoldedStream,
  type PastAppend,
  type LongFolds,
  createStreamLoader,
} from './loaded-streams.ts';
import type { EventCodec } from '../log/event-codec.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type EventStore,
  type EventToAppend,
  type ExpectedRevision,
  type RecordedEvent,
} from '../log/event-store.ts';
import { commandMetadata, type CommandContext } from '../log/metadata.ts';
import type { Clock, RecordRejection } from '../ports.ts';
import { refusalOf, refusedCommand, TOO_MANY_CONFLICTS } from './refusals.ts';
import type { SnapshotStore } from './snapshot-store.ts';
import { createLogTail } from './log-tail.ts';
import { revisionOfVersion } from './past-version.ts';
import { createStreamQueue } from './stream-queue.ts';

export type CommandHooks = {
  onCommand?(type: string, result: CommandResultName, ms: number): void;
  onAppend?(ms: number, events: number): void;
  onConflict?(stream: string): void;
  /** After each append of a command: what was stored, and the state that it leads to. */
  onStored?(
    stream: string,
    events: readonly DomainEvent[],
    context: Pick<CommandContext, 'correlationId'>,
    state: unknown,
  ): void;
};

export type CommandRunnerOptions = {
  readonly store: EventStore;
  readonly codec: EventCodec;
  readonly clock: Clock;
  /** Name of this process incarnation, written into the metadata of every event. */
  readonly instance: string;
  readonly recordRejection: RecordRejection;
  /** Folded streams kept in memory; default 10,000 (some KB each). The least recently used leaves first. */
  readonly cacheSize?: number;
  readonly snapshots?: SnapshotStore;
  /** Folds what is long on another thread; without it, here in slices. */
  readonly longFolds?: LongFolds;
  /** Events between two snapshots of one stream; default 500. */
  readonly snapshotEvery?: number;
  /** Where commands older than a stream's remembered appends are found; without it the stream itself is read. */
  readonly commandIndex?: CommandIndex;
  readonly hooks?: CommandHooks;
};

/** Decisions taken for one command before it gives up because others keep changing the stream. */
const MAX_CONFLICTS = 5;

/** Load, decide, append. `idle` resolves when nothing is being carried out. */
export const createCommandRunner = (
  options: CommandRunnerOptions,
): CommandRunner & { idle(): Promise<void> } => {
  const { store, codec, clock, hooks = {}, recordRejection } = options;
  const cache = createFoldedCache(options.cacheSize ?? 10_000);
  const queue = createStreamQueue();
  const tail = createLogTail(store);
  /**
   * Streams whose last append may still be stored late, with the revision it expected. Until the stream has moved on
   * from there, not even the only writer knows that what it has read is current.
   */
  const unsettled = new Map<string, ExpectedRevision>();
  const isCurrent = (stream: string): boolean => store.singleWriter && !unsettled.has(stream);
  const settleWith = (stream: string, revision: ExpectedRevision): void => {
    const expected = unsettled.get(stream);
    if (expected !== undefined && orderOf(revision) > orderOf(expected)) unsettled.delete(stream);
  };
  const loader = createStreamLoader({
    store,
    codec,
    snapshots: options.snapshots,
    longFolds: options.longFolds,
    snapshotEvery: options.snapshotEvery ?? 500,
  });

  const keep = <S>(
    { aggregate, stream }: Pick<Attempt<S>, 'aggregate' | 'stream'>,
    folded: FoldedStream<S>,
    isChecked = true,
  ): void => {
    cache.set(stream, aggregate.stateVersion, folded, isChecked);
    settleWith(stream, folded.revision);
    loader.snapshot(aggregate, stream, folded);
  };

  /**
   * Reads on after a conflict; a stream that did not move contradicts the cache, so it is folded anew. `end`: where the
   * stream was found to end, with nothing but records of the store behind its last event.
   */
  const reload = async <S>(
    attempt: Attempt<S>,
    folded: FoldedStream<S>,
    end?: number,
  ): Promise<FoldedStream<S>> => {
    const { aggregate, stream, context } = attempt;
    const before = folded.revision;
    const moved = await loader.catchUp(aggregate, stream, folded, context.signal);
    const current = moved > 0 ? folded : await loader.load(aggregate, stream, context.signal);
    // A read that shows less than was known says nothing of what is behind.
    if (current.revision === before) noteEnd(current, end);
    keep(attempt, current);
    return current;
  };

  /**
   * The answer to a command that the stream already holds: the state as of then and the events of then. `decided` are
   * the events of this call, if it got as far: when it was they that were stored, this is no replay.
   */
  const replay = async <S>(
    { aggregate, stream, context }: Attempt<S>,
    folded: FoldedStream<S>,
    past: PastAppend,
    decided: readonly EventToAppend[],
  ): Promise<CommandOutcome<S>> => {
    if (past.requestHash !== context.requestHash) throw new IdempotencyMismatch(context.commandId);
    const { signal } = context;
    const recorded: RecordedEvent[] = [];
    let then = folded;
    if (past.last === folded.revision) {
      const range = { from: past.first, limit: past.last - past.first + 1, ...(signal && { signal }) };
      for await (const event of store.readStream(stream, range)) recorded.push(event);
    } else {
      const seen = (event: RecordedEvent): void => void recorded.push(event);
      then = await loader.loadAt(aggregate, stream, past.last, { signal, seen, seenFrom: past.first });
    }
    const ours =
      recorded.length === decided.length &&
      recorded.every((event, i) => JSON.stringify(event.data) === decided[i]?.data);
    const events = recorded.map((event) => codec.decode(event));
    return { outcome: 'accepted', loaded: loadedOf(then), events, replayed: !ours };
  };

  /**
   * Appends, and repeats the same append once when its outcome is not known. Undefined when the stream is not where
   * the decision was taken. `settled.unknown` is true while events of this command may be stored that the
   * caller has not been told of.
   */
  const append = async (
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventToAppend[],
    settled: Unsettled,
    { patienceMs = 0, onSent }: Pick<ExecuteOptions<unknown, DomainEvent>, 'patienceMs' | 'onSent'>,
    after?: SentAppend,
  ): Promise<Appended | undefined> => {
    const started = clock.monotonicMs();
    settled.expected = expected;
    try {
      const first = store.append(stream, expected, events, {
        patienceMs,
        ...(after !== undefined && { after: after.first }),
      });
      const repeated = first.catch((error: unknown) => {
        if (!(error instanceof OutcomeUnknown)) throw error;
        settled.unknown ||= error.stream === stream;
        return store.append(stream, expected, events, after === undefined ? {} : { after: after.settled });
      });
      onSent?.({ first, settled: repeated });
      const appended = await repeated;
      settled.unknown = appended.duplicate;
      return appended;
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error;
      // Else it is of the append that this one was to come after.
      const isOurs = error.stream === stream;
      settled.end = isOurs && error.onlyStoreRecords ? Number(error.actual) : undefined;
      hooks.onConflict?.(stream);
      return undefined;
    } finally {
      hooks.onAppend?.(clock.monotonicMs() - started, events.length);
    }
  };

  /** Write-through: the cached state moves on by the events that are now stored. */
  const advance = <S>(
    attempt: Attempt<S>,
    folded: FoldedStream<S>,
    events: readonly DomainEvent[],
    encoded: readonly EventToAppend[],
    appended: Appended,
  ): void => {
    const { aggregate, context } = attempt;
    const first = appended.revision - events.length + 1;
    events.forEach((event, index) => {
      foldEvent(folded, aggregate.decider.evolve, event, {
        revision: first + index,
        position: appended.position,
        id: encoded[index]?.id ?? '',
        commandId: context.commandId,
        requestHash: context.requestHash,
        type: codec.typeOf(event.type),
      });
    });
    keep(attempt, folded);
    hooks.onStored?.(attempt.stream, events, context, folded.state);
  };

  const rejected = <S>(
    { stream, context, command, options: { step } }: Attempt<S>,
    folded: FoldedStream<S>,
    rejection: Rejection,
  ): CommandOutcome<S> => {
    if (step !== true)
      recordRejection(refusedCommand(command, rejection, context, clock.now(), parseStreamName(stream)));
    return { outcome: 'rejected', rejection, loaded: loadedOf(folded) };
  };

  /** Where a command starts from. `current`: nobody else can have written since this was read. */
  const start = async <S>(attempt: Attempt<S>): Promise<{ folded: FoldedStream<S>; current: boolean }> => {
    const { aggregate, stream, context } = attempt;
    const known = cache.get<S>(stream, aggregate.stateVersion);
    if (known?.isChecked === false) {
      await loader.catchUp(aggregate, stream, known.folded, context.signal);
      keep(attempt, known.folded);
      return { folded: known.folded, current: true };
    }
    if (known !== undefined) return { folded: known.folded, current: isCurrent(stream) };
    if (attempt.options.likelyNew === true)
      return { folded: emptyStream(aggregate.decider.initialState()), current: false };
    const folded = await loader.load(aggregate, stream, context.signal);
    keep(attempt, folded);
    return { folded, current: true };
  };

  const carryOut = async <S, B extends Before>(
    attempt: Attempt<S, B>,
    settled: Unsettled,
  ): Promise<CommandOutcome<S> | Extract<B, Withheld>> => {
    const { stream, command, context } = attempt;
    context.signal?.throwIfAborted();
    let { folded, current } = await start(attempt);
    let encoded: readonly EventToAppend[] = [];
    for (let conflicts = 0; ; ) {
      const past = await findPastAppend(store, stream, folded, context.commandId, options.commandIndex);
      // When it is there but cannot be read back now, "nothing was stored" would be wrong.
      settled.unknown = past !== undefined;
      if (past !== undefined) return replay(attempt, folded, past, encoded);
      if (conflicts > MAX_CONFLICTS) return rejected(attempt, folded, TOO_MANY_CONFLICTS);

      const decision = attempt.decide(folded.state);
      const refusal = refusalOf(decision, folded, context);
      if (refusal !== undefined || isRejection(decision) || decision.length === 0) {
        if (!current && (await store.currentRevision(stream, context.signal)) !== folded.revision) {
          folded = await reload(attempt, folded);
          current = true;
          continue;
        }
        if (refusal !== undefined) return rejected(attempt, folded, refusal);
        return { outcome: 'accepted', loaded: loadedOf(folded), events: [], replayed: false };
      }
      // Made by the aggregate's own decider, whose events it knows.
      const told = loadedOf(folded);
      const before: Before = await attempt.options.beforeAppend?.(told, decision as readonly never[]);
      if (before !== undefined && 'outcome' in before && before.outcome === 'withheld')
        return before as Extract<B, Withheld>;
      if (before !== undefined && isRefused(before)) return rejected(attempt, folded, before);

      const metadata = commandMetadata(context, command, clock.now(), options.instance);
      encoded = codec.encodeAll(decision, stream, metadata);
      let appended = await append(stream, endOf(folded), encoded, settled, attempt.options, before);
      if (appended === undefined && before !== undefined) {
        const late = await before.outcome();
        if (late !== undefined) return rejected(attempt, folded, late);
        appended = await append(stream, endOf(folded), encoded, settled, attempt.options);
      }
      if (appended !== undefined && !appended.duplicate) {
        advance(attempt, folded, decision, encoded, appended);
        return { outcome: 'accepted', loaded: loadedOf(folded), events: decision, replayed: false };
      }
      // Overtaken, or an earlier attempt stored these ids already: then what is stored counts.
      if (appended === undefined) {
        conflicts += 1;
        encoded = [];
      }
      folded = await reload(attempt, folded, appended === undefined ? settled.end : undefined);
      current = true;
    }
  };

  /** What the caller is told; notes that the stream may still move on without anybody's doing. */
  const failureOf = (stream: string, error: unknown, { unknown, expected }: Unsettled): unknown => {
    // Not even the look for our own events succeeded: the first append may still have been stored.
    const isOfOther = error instanceof OutcomeUnknown && error.stream !== stream;
    const lost =
      unknown && (isOfOther || error instanceof StoreUnavailable)
        ? new OutcomeUnknown(stream, { cause: error })
        : error;
    if (lost instanceof OutcomeUnknown && expected !== undefined) unsettled.set(stream, expected);
    return lost;
  };

  /** The outcome of `carryOut` with everything that must hold when it fails. */
  const settle = async <S, B extends Before>(
    attempt: Attempt<S, B>,
    settled: Unsettled = { unknown: false, expected: undefined },
  ): Promise<CommandOutcome<S> | Extract<B, Withheld>> => {
    const started = clock.monotonicMs();
    let result: CommandResultName | undefined = 'failed';
    try {
      const outcome = await carryOut(attempt, settled);
      result = outcome.outcome === 'withheld' ? undefined : resultName(outcome);
      return outcome;
    } catch (error) {
      if (!(error instanceof IdempotencyMismatch)) cache.forget(attempt.stream);
      const lost = failureOf(attempt.stream, error, settled);
      result = errorName(lost);
      throw lost;
    } finally {
      if (result !== undefined) hooks.onCommand?.(attempt.command, result, clock.monotonicMs() - started);
    }
  };

  const lines = createAppendLines({
    start: async (attempt) => (unsettled.has(attempt.stream) ? undefined : (await start(attempt)).folded),
    decide: async ({ decide, stream, command, context, options: how }, stored, state) => {
      context.signal?.throwIfAborted();
      const plain = how.beforeAppend === undefined && context.ifRevision === undefined;
      if (!plain || context.ifVersion !== undefined) return undefined;
      if (await findPastAppend(store, stream, stored, context.commandId, options.commandIndex))
        return undefined;
      const events = decide(state);
      if (isRejection(events) || events.length === 0) return undefined;
      const metadata = commandMetadata(context, command, clock.now(), options.instance);
      return { events, encoded: codec.encodeAll(events, stream, metadata) };
    },
    append: ({ stream, options: how }, expected, events, settled) =>
      append(stream, expected, events, settled, how).catch((error: unknown) => {
        throw failureOf(stream, error, settled);
      }),
    advance,
    forget: cache.forget,
  });

  /** In the stream's turn, with nothing of it on its way. */
  const alone = <S, B extends Before>(
    attempt: Attempt<S, B>,
    settled?: Unsettled,
  ): Promise<CommandOutcome<S> | Extract<B, Withheld>> =>
    queue.run(attempt.stream, async () => {
      const drained = lines.drained(attempt.stream);
      if (drained !== undefined) await drained;
      return settle(attempt, settled);
    });

  const inLine = async <S, B extends Before>(
    attempt: Attempt<S, B>,
  ): Promise<CommandOutcome<S> | Extract<B, Withheld>> => {
    const started = clock.monotonicMs();
    const joined = await queue.run(attempt.stream, () => lines.join(attempt));
    if (joined === undefined) return alone(attempt);
    const outcome = await joined.outcome;
    if (outcome.outcome === 'alone') return alone(attempt, outcome.settled);
    hooks.onCommand?.(attempt.command, resultName(outcome), clock.monotonicMs() - started);
    return outcome;
  };

  /** The stream as it is now. */
  const newest = async <S>(
    aggregate: Fold<S>,
    stream: string,
    signal: AbortSignal | undefined,
  ): Promise<FoldedStream<S>> => {
    const known = cache.get<S>(stream, aggregate.stateVersion);
    const folded = known?.folded ?? (await loader.load(aggregate, stream, signal));
    if (known !== undefined && !(known.isChecked && isCurrent(stream)))
      await loader.catchUp(aggregate, stream, folded, signal);
    keep({ aggregate, stream }, folded);
    return folded;
  };

  return {
    execute: (aggregate, id, command, context, how = {}) => {
      type State = ReturnType<typeof aggregate.decider.initialState>;
      const stream = streamName(aggregate.category, id);
      const decide = (state: State) => aggregate.decider.decide(state, command);
      const attempt = { aggregate, stream, command: command.type, decide, context, options: how };
      return how.inLine === true && store.singleWriter ? inLine(attempt) : alone(attempt);
    },
    load: async (aggregate, id, { asOfRevision, signal, read } = {}) => {
      const stream = streamName(aggregate.category, id);
      if (asOfRevision !== undefined)
        return loadedOf(await loader.loadAt(aggregate, stream, asOfRevision, { signal, read }));
      return queue.run(stream, async () => loadedOf(await newest(aggregate, stream, signal)));
    },
    loadVersion: async (aggregate, id, version, { signal } = {}) => {
      const stream = streamName(aggregate.category, id);
      const now = await queue.run(stream, async () => loadedOf(await newest(aggregate, stream, signal)));
      if (version === now.version) return now;
      if (version < 0 || version > now.version || now.revision === 'no_stream') return undefined;
      const { revision } = now;
      const past = { store, typeOf: codec.typeOf };
      const asOfRevision = await revisionOfVersion(past, stream, { ...now, revision }, version, signal);
      if (asOfRevision === undefined) return undefined;
      return loadedOf(await loader.loadAt(aggregate, stream, asOfRevision, { signal }));
    },
    peek: async (aggregate, id, { remembered = false, asOf, signal } = {}) => {
      type State = ReturnType<typeof aggregate.decider.initialState>;
      const stream = streamName(aggregate.category, id);
      const remember = () => cache.get<State>(stream, aggregate.stateVersion);
      const known = remember();
      if (known?.isChecked === true) {
        if (remembered || isCurrent(stream)) return loadedOf(known.folded);
        const newest = asOf === undefined ? Infinity : await tail.newest(stream, asOf);
        if (orderOf(known.folded.revision) >= newest) return loadedOf(known.folded);
      }
      const found = asOf === undefined ? undefined : tail.watch(stream);
      if (known !== undefined) {
        const { folded } = known;
        if ((await store.currentRevision(stream, signal)) === folded.revision) {
          found?.(orderOf(folded.revision));
          // As long as it is the one in the cache, commands move it on.
          known.isChecked = true;
          return loadedOf(folded);
        }
      }
      const folded = await loader.load(aggregate, stream, signal);
      found?.(orderOf(folded.revision));
      // A command may have brought the stream further meanwhile: what it keeps is newer than this. And what it kept may
      // have left the cache again, so that this is not the newest.
      const before = orderOf(remember()?.folded.revision ?? 'no_stream');
      if (orderOf(folded.revision) > before) keep({ aggregate, stream }, folded, false);
      return loadedOf(folded);
    },
    find: async (aggregate, id, commandId, { signal } = {}) => {
      const stream = streamName(aggregate.category, id);
      return queue.run(stream, async () => {
        const folded = await newest(aggregate, stream, signal);
        const past = await findPastAppend(store, stream, folded, commandId, options.commandIndex);
        return past === undefined ? undefined : { revision: past.last, requestHash: past.requestHash };
      });
    },
    idle: async () => {
      await queue.idle();
      await lines.idle();
    },
  };
};

const orderOf = (revision: ExpectedRevision): number => (revision === 'no_stream' ? -1 : revision);
