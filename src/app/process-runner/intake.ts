import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import {
  StoreUnavailable,
  type EventFilter,
  type EventStore,
  type Position,
  type RecordedEvent,
  type SubscriptionItem,
  type UnreadableEvent,
} from '../event-store.ts';
import type { Clock, Logger, Timers } from '../ports.ts';
import { anchorOf, resumeAfter, unproved, type Anchor } from '../resume-point.ts';
import { pause } from './pause.ts';
import { createProgress, type Progress } from './progress.ts';
import { foldRecorded, isTaken } from './run.ts';
import type { InputRef, RunIndex } from './run-index.ts';
import type { RunMemory } from './run-memory.ts';
import type { Runs } from './runs.ts';
import { createSlices } from './slices.ts';
import type { AnyWorkflow, RunCodec } from './types.ts';

/**
 * The runner's one subscription. Until the end of the log was reached once, run events are only folded and inputs only
 * noted: deciding on an input that a later run event shows as taken in would be work for nothing. From then on every
 * input goes to its run at once.
 */
export type Intake = {
  /**
   * Returns when the subscription has ended. `room` is waited for before an input is taken while live. Throws LogReplaced
   * when the index was folded from another log.
   */
  run(signal: AbortSignal, room: () => Promise<void>): Promise<void>;
  readonly progress: Progress;
  isLive(): boolean;
  /** Recorded time of the last event seen. */
  lastSeen(): string | undefined;
};

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;

/** Inputs of a run that were seen while catching up and that no run event shows as taken in. */
type Noted = { readonly ref: InputRef; readonly settled: () => void };

export const createIntake = (options: {
  readonly store: EventStore;
  readonly codec: RunCodec;
  readonly index: RunIndex;
  readonly memory: RunMemory;
  readonly runs: Runs;
  readonly workflows: readonly AnyWorkflow[];
  readonly runEventTypes: readonly string[];
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  /** A wake event came: the named timer of every run that keeps it counts as due. */
  readonly wake: (timerId: string) => void;
  readonly live: () => void;
}): Intake => {
  const { store, codec, index, memory, runs, workflows, logger } = options;
  const slice = createSlices(options.clock);
  const progress = createProgress(index.anchor());
  const inputTypes = groupByType(workflows, (workflow) => workflow.inputTypes);
  const wakeTypes = groupByType(workflows, (workflow) => workflow.wakes?.types ?? []);
  const categories = new Set(workflows.map((workflow) => workflow.name));
  const noted = new Map<string, Noted[]>();
  const behind = new Set<string>();
  const poisoned = new Set<string>();
  const woken = new Set<string>();
  let live = false;
  let lastSeen: string | undefined;

  const filter: EventFilter = {
    typePrefixes: [...new Set([...inputTypes.keys(), ...wakeTypes.keys(), ...options.runEventTypes])],
  };

  const see = (event: RecordedEvent): void => {
    lastSeen = event.recordedAt;
    if (categories.has(parseStreamName(event.stream).category)) seeRunEvent(event);
    for (const workflow of wakeTypes.get(event.type) ?? []) {
      const timerId = workflow.wakes?.timerId ?? '';
      if (live) options.wake(timerId);
      else woken.add(timerId);
    }
    for (const workflow of inputTypes.get(event.type) ?? []) seeInput(workflow, event);
    progress.passed(event.position, anchorOf(event));
  };

  /** Stops the run whose own event it is; of an input nothing says which run it was for. */
  const seeUnreadable = (event: UnreadableEvent): void => {
    const { stream, revision, position, reason } = event;
    logger.error({ stream, revision, position, reason }, 'event unreadable: no run takes it in');
    if (categories.has(parseStreamName(stream).category)) stopRun(stream, new Error(reason));
    progress.passed(position, anchorOf(event));
  };

  const stopRun = (key: string, error: unknown): void => {
    poisoned.add(key);
    runs.poison(key, error);
  };

  const seeInput = (workflow: AnyWorkflow, event: RecordedEvent): void => {
    const { tenant } = event.metadata as { tenant: string };
    const { data } = codec.decode(event);
    const { type, stream, revision, position } = event;
    const runId = workflow.runIdOf({
      type,
      data: data as RecordedEvent['data'],
      stream,
      revision,
      position,
      tenant,
    });
    if (runId === undefined) return;
    const key = streamName(workflow.name, runId);
    const ref: InputRef = { position, stream, revision };
    const settled = progress.begun(position, anchorOf(event));
    if (live) {
      runs.post(key, { kind: 'event', ref, body: event, settled });
      return;
    }
    const others = noted.get(key);
    if (others === undefined) noted.set(key, [{ ref, settled }]);
    else others.push({ ref, settled });
  };

  const seeRunEvent = (event: RecordedEvent): void => {
    const key = event.stream;
    const known = memory.revisionOf(key);
    if (event.revision <= known) return;
    if (live) {
      const { revision, position } = event;
      runs.post(key, { kind: 'refresh', revision, settled: progress.begun(position, anchorOf(event)) });
      return;
    }
    if (event.revision > known + 1) {
      behind.add(key);
      return;
    }
    const run = memory.get(key);
    if (run === 'closed' || poisoned.has(key)) return;
    try {
      foldRecorded(run, event, codec);
    } catch (error) {
      return stopRun(key, error);
    }
    memory.touch(run);
    forgetTaken(key, run);
  };

  const forgetTaken = (key: string, run: Exclude<ReturnType<RunMemory['get']>, 'closed'>): void => {
    const waiting = noted.get(key);
    if (waiting === undefined) return;
    const closed = run.workflow.isClosed(run.state);
    const left = waiting.filter(({ ref, settled }) => {
      const done = closed || isTaken(run, ref);
      if (done) settled();
      return !done;
    });
    if (left.length === 0) noted.delete(key);
    else noted.set(key, left);
  };

  const goLive = (): void => {
    live = true;
    memory.flush();
    for (const key of behind) runs.post(key, { kind: 'refresh' });
    for (const [key, inputs] of noted) {
      for (const { ref, settled } of inputs) runs.post(key, { kind: 'event', ref, settled });
    }
    behind.clear();
    noted.clear();
    for (const timerId of woken) options.wake(timerId);
    woken.clear();
    options.live();
  };

  const take = (item: SubscriptionItem): void => {
    if (item.kind === 'event') see(item.event);
    else if (item.kind === 'unreadable') seeUnreadable(item.event);
    else if (item.kind === 'checkpoint') progress.passed(item.position);
    else if (!live) goLive();
  };

  /** As the subscription does, outlives a log that cannot be read for a while; undefined also when told to stop. */
  const resume = async (anchor: Anchor | undefined, signal: AbortSignal): Promise<Position | undefined> => {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        return await resumeAfter(store, anchor, signal);
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof StoreUnavailable) || error.reason === 'closed') throw error;
        await pause(options.timers, Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** tries), signal);
      }
    }
    return undefined;
  };

  return {
    progress,
    isLive: () => live,
    lastSeen: () => lastSeen,
    run: async (signal, room) => {
      const after = await resume(index.anchor(), signal);
      if (signal.aborted) return;
      const items = store.subscribe({
        ...(after === undefined ? {} : { after }),
        filter,
        signal,
        name: 'process runner',
      });
      try {
        for await (const item of items) {
          if (signal.aborted) return;
          await slice(() => take(item));
          if (live) await room();
        }
      } catch (error) {
        throw unproved(error);
      }
    },
  };
};

const groupByType = (
  workflows: readonly AnyWorkflow[],
  typesOf: (workflow: AnyWorkflow) => readonly string[],
): Map<string, AnyWorkflow[]> => {
  const groups = new Map<string, AnyWorkflow[]>();
  for (const workflow of workflows) {
    for (const type of typesOf(workflow)) groups.set(type, [...(groups.get(type) ?? []), workflow]);
  }
  return groups;
};
