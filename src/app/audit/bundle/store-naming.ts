import type { Position, RecordedEvent } from '../../log/event-store.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import { extendRange } from '../merkle/compact-range.ts';
import type { HashAt } from '../merkle/hashing.ts';
import { leafHashOf, leafOf, type LeafRecord } from '../merkle/leaf.ts';
import { createAlignment, type Difference, type ExpectedLeaves } from './alignment.ts';
import { LISTED, type Findings } from './findings.ts';

/** A tree as it was kept apart from the events. Nothing is believed of it that does not lead to a signed root. */
export type KeptTree = {
  /** Throws RangeError for what the tree does not hold. */
  readonly hashAt: HashAt;
  /** What a leaf is made of: names an event that is not there any more. */
  readonly recordAt?: (index: number) => LeafRecord | undefined;
};

/** Up to here the log is what was signed: size, compact range, and store position of the last event. */
export type RightUpTo = {
  readonly size: number;
  readonly hashes: readonly Buffer[];
  readonly position: Position | undefined;
};

export type NamingAsk = {
  readonly kept: KeptTree;
  readonly start: RightUpTo;
  /** What was signed, smallest first. */
  readonly signed: readonly Checkpoint[];
  /** The events of the log that are leaves, behind a position, in log order. */
  readonly leaves: (after: Position | undefined) => AsyncIterable<RecordedEvent>;
};

/**
 * Lays the events of the log beside the leaves that were signed, so that what is missing, changed or added is named,
 * and what only moved up is not. Reads the log once more; nothing is found without a tree that leads to a signed root.
 */
export const nameChanges = async (
  { kept, start, signed, leaves }: NamingAsk,
  findings: Findings,
): Promise<void> => {
  const known = furthestKnown(kept.hashAt, start, signed);
  if (known === undefined) return;
  const names = new Map<number, string>();
  const tell = tellOf(kept, names, findings);
  const alignment = createAlignment(leavesBetween(kept.hashAt, start.size, known.size), tell);
  let line = 0;
  for await (const event of leaves(start.position)) {
    // What lies behind the last leaf that was signed is none of them.
    if (event.position > known.position) break;
    line += 1;
    names.set(line, `${event.stream}@${event.revision}`);
    if (alignment.next(line, leafHashOf(leafOf(event))) !== undefined) names.delete(line);
  }
  alignment.end();
};

/** The largest checkpoint to whose root the leaves of the kept tree lead: all of them are the ones that were signed. */
const furthestKnown = (
  hashAt: HashAt,
  { size, hashes }: RightUpTo,
  signed: readonly Checkpoint[],
): Checkpoint | undefined => {
  const range = extendRange({ size, hashes });
  let known: Checkpoint | undefined;
  try {
    for (const checkpoint of signed) {
      if (checkpoint.size <= size) continue;
      while (range.size() < checkpoint.size) range.append(hashAt(0, range.size()));
      if (range.root().equals(checkpoint.root)) known = checkpoint;
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return known;
};

const leavesBetween = (hashAt: HashAt, from: number, to: number): ExpectedLeaves => {
  let cursor = from;
  return {
    ahead: (ahead) => (cursor + ahead < to ? hashAt(0, cursor + ahead) : undefined),
    advance: (places) => {
      cursor += places;
    },
    place: () => cursor,
  };
};

const tellOf = ({ hashAt, recordAt }: KeptTree, names: Map<number, string>, findings: Findings) => {
  /** Name of the event that was signed at a place: only what hashes to the leaf is believed. */
  const signedAt = (place: number): string | undefined => {
    if (findings.count() > LISTED) return undefined;
    const record = recordAt?.(place);
    if (record === undefined || !leafHashOf(record).equals(hashAt(0, place))) return undefined;
    return `${record.stream}@${record.revision}`;
  };
  const missing = (place: number, event: string | undefined): void =>
    findings.add({
      code: 'missing-event',
      place,
      ...(event === undefined ? {} : { event }),
      message: 'the event that was signed at this place is missing',
    });
  const added = (place: number, event: string): void =>
    findings.add({
      code: 'added-event',
      place,
      event,
      message: 'the event was not signed here: it was added, changed or moved',
    });
  return (difference: Difference): void => {
    const { kind, place } = difference;
    const event = signedAt(place);
    if (kind === 'missing') return missing(place, event);
    const shown = names.get(difference.line) ?? '';
    names.delete(difference.line);
    if (kind === 'added') return added(place, shown);
    if (event !== undefined && event !== shown) {
      missing(place, event);
      return added(place, shown);
    }
    findings.add({
      code: 'changed-event',
      place,
      event: shown,
      message: 'it is not the event that was signed at this place',
    });
  };
};
