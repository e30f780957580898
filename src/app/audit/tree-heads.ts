import type { TreeHeadData } from '../../domain/bookkeeping/events.ts';
import type { DamagedAt, EventStore, RecordedEvent } from '../log/event-store.ts';
import type { Clock, Timers } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';

/** Signed heads of the tree over the log, as they stand in the log; each larger than the one before it. */
export type TreeHead = TreeHeadData & {
  /** Revision in its stream. */
  readonly revision: number;
};

export type AuditHeads = {
  /** Undefined: none was signed yet. */
  latest(signal?: AbortSignal): Promise<TreeHead | undefined>;
  /** The first head that covers a leaf; undefined while none does. Of those that are kept: the newest `MOST_HEADS`. */
  covering(index: number, signal?: AbortSignal): Promise<TreeHead | undefined>;
  /** Heads of more than `size` leaves, smallest first. */
  all(size: number, signal?: AbortSignal): AsyncIterable<TreeHead>;
  /** The newest ones, largest first. */
  newest(count: number, signal?: AbortSignal): AsyncIterable<TreeHead>;
};

export const TREE_HEADS_STREAM = 'sys-auditTree';
/** A day of the densest signing, a thousand events a second: so long may whoever reads heads be away. */
export const MOST_HEADS = 100_000;

export const createAuditHeads = ({ readStream }: Pick<EventStore, 'readStream'>): AuditHeads => {
  const one = async (
    options: { readonly from?: number; readonly direction?: 'backward' },
    signal: AbortSignal | undefined,
  ): Promise<TreeHead | undefined> => {
    const read = { ...options, limit: 1, ...(signal && { signal }) };
    for await (const event of readStream(TREE_HEADS_STREAM, read)) return headOf(event);
    return undefined;
  };
  const latest = (signal?: AbortSignal): Promise<TreeHead | undefined> =>
    one({ direction: 'backward' }, signal);

  /** By halving: sizes grow with revisions. Old heads may go meanwhile; the next one that is there answers for them. */
  const covering = async (index: number, signal?: AbortSignal): Promise<TreeHead | undefined> => {
    let answer = await latest(signal);
    if (answer === undefined || answer.size <= index) return undefined;
    let low = (await one({}, signal))?.revision ?? answer.revision;
    while (low < answer.revision) {
      const middle = await one({ from: Math.floor((low + answer.revision) / 2) }, signal);
      if (middle === undefined || middle.revision >= answer.revision) break;
      if (middle.size > index) answer = middle;
      else low = middle.revision + 1;
    }
    return answer;
  };

  return {
    latest,
    covering,
    all: async function* (size, signal) {
      const first = await covering(size, signal);
      if (first === undefined) return;
      const read = { from: first.revision, ...(signal && { signal }) };
      for await (const event of readStream(TREE_HEADS_STREAM, read)) yield headOf(event);
    },
    newest: async function* (count, signal) {
      const read = { direction: 'backward' as const, limit: count, ...(signal && { signal }) };
      for await (const event of readStream(TREE_HEADS_STREAM, read)) yield headOf(event);
    },
  };
};

/** Nothing more is signed: the log holds something else than was recorded. `at`: the event, where it is known. */
export type AuditHalt = { readonly at: DamagedAt | undefined };

const LOOK_MS = 200;

/**
 * The newest head, as soon as it is `enough`; after `withinMs` milliseconds, or once no other one will come, the newest one
 * all the same, undefined when nothing was signed by then. Throws the signal's reason when it is aborted.
 */
export const headWhen = async (
  {
    heads,
    clock,
    timers,
  }: {
    readonly heads: Pick<AuditHeads, 'latest'>;
    readonly clock: Pick<Clock, 'monotonicMs'>;
    readonly timers: Timers;
  },
  enough: (head: TreeHead) => boolean,
  {
    withinMs,
    signal,
    halted = () => false,
  }: { readonly withinMs: number; readonly signal: AbortSignal; readonly halted?: () => boolean },
): Promise<TreeHead | undefined> => {
  const until = clock.monotonicMs() + withinMs;
  for (;;) {
    const head = await heads.latest(signal);
    if ((head !== undefined && enough(head)) || halted() || clock.monotonicMs() >= until) return head;
    await pause(timers, LOOK_MS, signal);
    signal.throwIfAborted();
  }
};

const headOf = ({ data, revision }: RecordedEvent): TreeHead => ({
  ...(data as unknown as TreeHeadData),
  revision,
});
