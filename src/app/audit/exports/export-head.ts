import type { ExportRequest } from '../../../domain/audit/events.ts';
import { AUDIT_EXPORT_CATEGORY } from '../../../domain/audit/export.ts';
import { streamName } from '../../../domain/stream-name.ts';
import type { Clock, Timers } from '../../ports.ts';
import { headWhen, type AuditHalt, type AuditHeads, type TreeHead } from '../tree-heads.ts';
import type { AuditTree } from '../tree.ts';

/** No head covers what was asked for; the message says why, and what to do. */
export class NotSigned extends Error {
  override readonly name = 'NotSigned';
}

export type ExportHeadSource = {
  readonly tree: Pick<AuditTree, 'size' | 'leaf'> & {
    /** Number of the leaf of an event; undefined when it is none (yet). */
    indexOf(stream: string, revision: number): number | undefined;
    sizeAtTime(time: string): number;
  };
  readonly heads: Pick<AuditHeads, 'latest'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly timers: Timers;
};

export type ExportHeadWait = {
  readonly withinMs: number;
  readonly signal: AbortSignal;
  /** Why no head will come until somebody has mended the store. Default: heads come. */
  readonly halted?: (() => AuditHalt | undefined) | undefined;
};

/**
 * The newest head, as soon as it covers everything that was stored when the export was asked for. When it does not come: the newest
 * one where it covers all that the export is of, since that ends earlier. Throws NotSigned, and the signal's reason.
 */
export const headForExport = async (
  id: string,
  { to }: Pick<ExportRequest, 'to'>,
  { tree, heads, clock, timers }: ExportHeadSource,
  { withinMs, signal, halted = () => undefined }: ExportHeadWait,
): Promise<TreeHead> => {
  const stream = streamName(AUDIT_EXPORT_CATEGORY, id);
  const covers = ({ size }: TreeHead): boolean => {
    // All that was stored before it was asked for lies in front of this leaf.
    const asked = tree.indexOf(stream, 0);
    return asked !== undefined && size >= asked;
  };
  const head = await headWhen({ heads, clock, timers }, covers, {
    withinMs,
    signal,
    halted: () => halted() !== undefined,
  });
  if (head !== undefined && (covers(head) || (to !== undefined && endsBelow(to, head, tree)))) return head;
  throw new NotSigned(whyNot(head, halted(), { tree, withinMs }));
};

/**
 * Whether everything that was recorded before a time lies below a head, whatever else the log holds: a later leaf has to be there,
 * or more of that time may come to the tree.
 */
const endsBelow = (
  to: string,
  { size }: TreeHead,
  tree: Pick<ExportHeadSource['tree'], 'size' | 'sizeAtTime'>,
): boolean => {
  const before = tree.sizeAtTime(justBefore(to));
  return before <= size && before < tree.size();
};

/** Times of the store have milliseconds. */
export const justBefore = (time: string): string => new Date(Date.parse(time) - 1).toISOString();

const whyNot = (
  head: TreeHead | undefined,
  halt: AuditHalt | undefined,
  { tree, withinMs }: { readonly tree: Pick<AuditTree, 'leaf'>; readonly withinMs: number },
): string => {
  const why =
    halt === undefined
      ? `the events before the request were not signed within ${Math.round(withinMs / 1000)} seconds: ask again later`
      : 'the events before the request are not signed, and signing has stopped, since ' +
        (halt.at === undefined
          ? 'the log, or the tree over it, is not what was signed'
          : `the event at position ${halt.at.position} is not the one that was recorded`) +
        ': the operators of this service are alarmed; ask again once they have corrected it';
  if (head === undefined) return `no head of the tree has been signed yet; ${why}`;
  const last = tree.leaf(head.size - 1);
  return last === undefined
    ? why
    : `${why}, or for what was recorded before ${wholeSecond(last.recordedAt)} alone ('to', --to), which is signed`;
};

/** To the millisecond it would tell when somebody, perhaps of another tenant, did something. */
const wholeSecond = (time: string): string => `${time.slice(0, 19)}Z`;
