import { objectAt, stringAt } from '../../domain/json-tools.ts';
import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import { createSlices } from '../fairness/slicer.ts';
import {
  type Position,
  StoreUnavailable,
  type EventFilter,
  type RecordedEvent,
  type SubscriptionItem,
  type UnreadableEvent,
} from '../log/event-store.ts';
import { type Anchor, anchorOf, resumeAfter, unproved } from '../log/resume-point.ts';
import { pause } from './pause.ts';
import type { RunIndex } from './run-index.ts';
import type { RunMemory } from './run-memory.ts';
import { foldRecorded, inputsOf } from './run.ts';
import type { Runs } from './runs.ts';
import type { PartOptions } from './types.ts';

/**
 * Up to where the log was taken in. Inputs of different runs are handled at the same time and end in any order; the
 * checkpoint is the last position before the oldest one that is not settled.
 */
export type Progress = {
  /** Seen and needing nothing more. `anchor`: of the event at that position. */
  passed(position: Position, anchor?: Anchor): void;
  /** Seen and to be handled; the returned function settles it. One event may have several readers. */
  begun(position: Position, anchor?: Anchor): () => void;
  /** Everything up to here is taken in; undefined: nothing yet. */
  checkpoint(): Position | undefined;
  /** The last event up to there: what to resume after; undefined: the beginning. */
  anchor(): Anchor | undefined;
  /** Inputs that are not settled. */
  open(): number;
};

type Mark = { readonly position: Position | undefined; readonly anchor: Anchor | undefined };

export const createProgress = (start: Anchor | undefined): Progress => {
  let seen: Mark = { position: start?.position, anchor: start };
  let beforeSeen = seen;
  const see = (position: Position, anchor = seen.anchor): void => {
    if (position === seen.position) return;
    beforeSeen = seen;
    seen = { position, anchor };
  };
  /** Unsettled position → what was seen before it; in log order, since they are begun in log order. */
  const open = new Map<Position, { readonly before: Mark; readers: number }>();
  const checkpoint = (): Mark => {
    for (const { before } of open.values()) return before;
    return seen;
  };
  return {
    passed: see,
    begun: (position, anchor) => {
      see(position, anchor);
      // A first reader may have settled it already; it still counts from before this input.
      const entry = open.get(position) ?? { before: beforeSeen, readers: 0 };
      entry.readers += 1;
      open.set(position, entry);
      let settled = false;
      return () => {
        if (settled) return;
        settled = true;
        entry.readers -= 1;
        if (entry.readers === 0) open.delete(position);
      };
    },
    checkpoint: () => checkpoint().position,
    anchor: () => checkpoint().anchor,
    open: () => open.size,
  };
};

/**
 * The runner's one subscription. Until the end of the log was reached once, events are only folded, as they come:
 * deciding on one whose consequences lie further on would be work for nothing. From then on every event goes to its
 * run at once.
 */
type Intake = {
  /**
   * Returns when the subscription has ended. `room` is waited for before an event is taken while live. Throws
   * LogReplaced when the index was folded from another log.
   */
  run(signal: AbortSignal, room: () => Promise<void>): Promise<void>;
  readonly progress: Progress;
  isLive(): boolean;
  /** Recorded time of the last event seen. */
  lastSeen(): string | undefined;
};

/**
 * What a run's own commands left is folded before the log shows it. What others write, most of all new orders, waits this
 * long for company: one look at the log then serves many.
 */
const GATHER_MS = 10;

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;

export const createIntake = (
  options: {
    readonly index: RunIndex;
    readonly memory: RunMemory;
    readonly runs: Runs;
    /** A wake event came: the named timer of every run that keeps it counts as due, of `most` of them at most. */
    readonly wake: (timerId: string, most?: number) => void;
    readonly live: () => void;
  } & PartOptions,
): Intake => {
  const { store, codec, index, memory, runs, workflows, logger } = options;
  const slice = createSlices(options.clock);
  const progress = createProgress(index.anchor());
  const bySubject = Map.groupBy(workflows, ({ subject }) => subject);
  const wakeTypes = Map.groupBy(
    workflows
      .flatMap(({ wakes = [] }) => wakes)
      .flatMap((wake) => wake.types.map((type) => ({ ...wake, type }))),
    ({ type }) => type,
  );
  const categories = new Set(workflows.map((workflow) => workflow.name));
  /** Runs whose events came out of order while catching up, and what lets the checkpoint pass the first of them. */
  const behind = new Map<string, () => void>();
  /** Timers, and how many runs are to be woken at most. */
  const woken = new Map<string, number | undefined>();
  let live = false;
  let lastSeen: string | undefined;

  const filter: EventFilter = {
    typePrefixes: [
      ...new Set([
        ...workflows.flatMap((workflow) => workflow.subjectTypes),
        ...wakeTypes.keys(),
        ...options.runEventTypes,
      ]),
    ],
  };

  const see = (event: RecordedEvent): void => {
    lastSeen = event.recordedAt;
    for (const key of runsOf(event)) {
      if (runs.parkedFor(key) !== undefined) continue;
      if (live) post(key, event);
      else foldSeen(key, event);
    }
    for (const { timerId, perStream, perHolder } of wakeTypes.get(event.type) ?? []) {
      const of = perHolder === true ? stringAt(objectAt(event.data, 'holder'), 'id') : undefined;
      const id = of ?? (perStream === undefined ? undefined : parseStreamName(event.stream).id);
      const timer = id === undefined ? timerId : `${timerId}:${id}`;
      if (live) options.wake(timer, perStream);
      else woken.set(timer, perStream === undefined ? undefined : (woken.get(timer) ?? 0) + perStream);
    }
    progress.passed(event.position, anchorOf(event));
  };

  /** The runs that fold this event: the one that recorded it, or those whose subject it is about. */
  const runsOf = ({ stream, type }: Pick<RecordedEvent, 'stream' | 'type'>): string[] => {
    const { category, id } = parseStreamName(stream);
    if (categories.has(category)) return [stream];
    const about = bySubject.get(category) ?? [];
    return about
      .filter(({ subjectTypes }) => subjectTypes.includes(type))
      .map(({ name }) => streamName(name, id));
  };

  /** Stops the runs that would have folded it. */
  const seeUnreadable = (event: UnreadableEvent): void => {
    const { stream, revision, position, reason } = event;
    logger.error({ stream, revision, position, reason }, 'event unreadable; its run stops');
    for (const key of runsOf(event)) runs.poison(key, new Error(reason));
    progress.passed(position, anchorOf(event));
  };

  const post = (key: string, event: RecordedEvent): void => {
    const { revision, position } = event;
    const known = memory.revisionsOf(key);
    const isOwn = event.stream === key;
    if (revision <= ((isOwn ? known?.revision : known?.subjectRevision) ?? -1)) return;
    const settled = progress.begun(position, anchorOf(event));
    runs.post(key, isOwn ? { kind: 'refold', revision, settled } : { kind: 'subject', event, settled });
  };

  const foldSeen = (key: string, event: RecordedEvent): void => {
    if (behind.has(key)) return;
    const run = memory.get(key);
    const isOwn = event.stream === key;
    const revisions = run === 'closed' ? memory.revisionsOf(key) : run;
    const known = (isOwn ? revisions?.revision : revisions?.subjectRevision) ?? -1;
    if (event.revision <= known) return;
    // What its subject had to say closed it, before the start of an effect that was on its way into the log.
    if (run === 'closed' && !isOwn) return;
    if (
      run === 'closed' ||
      event.revision > known + 1 ||
      (isOwn && (inputsOf(event, run.subject) ?? -1) !== run.subjectRevision)
    ) {
      memory.forget(key);
      behind.set(key, progress.begun(event.position, anchorOf(event)));
      return;
    }
    try {
      foldRecorded(run, event, codec);
    } catch (error) {
      return runs.poison(key, error);
    }
    memory.touch(run);
  };

  const goLive = (): void => {
    live = true;
    memory.flush();
    for (const [key, settled] of behind) runs.post(key, { kind: 'refold', settled });
    behind.clear();
    for (const [timer, most] of woken) options.wake(timer, most);
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
        patienceMs: GATHER_MS,
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
