import { fromBase64 } from '../merkle/base64.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import { compactRange, extendRange, type GrowingRange } from '../merkle/compact-range.ts';
import { verifyConsistency } from '../merkle/proofs.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import { createAlignment, LOOKAHEAD, type Difference } from './alignment.ts';
import { collectFindings, LISTED, type Finding, type Findings } from './findings.ts';
import { FILES, scopeName, type BundleLine, type BundleManifest, type BundleProofs } from './format.ts';
import { createIdCheck, type DoubleIds } from './id-check.ts';
import { checkLine, eventName, guessedName, UnreadableLine, type CheckedLine } from './lines.ts';
import { createRecordedTimes, NO_TIMES, type Period, type RecordedTimes } from './recorded-times.ts';
import { createRevisionCheck, type Lacking } from './revision-check.ts';
import { createTenantRoots } from './tenant-roots.ts';
import { leafWindow, lineBatches, type DigestedSource, type TextLine } from './reading.ts';

export type EventsResult = {
  readonly counts: BundleManifest['counts'];
  /** Redacted events of which all that is shown is proven. */
  readonly redactedProven: number;
  /** Withheld events by why. */
  readonly withheldBy: { readonly filter: number; readonly audience: number };
  /** Times of occurrence of the first and last events that are not withheld; '' when there are none. */
  readonly occurred: { readonly first: string; readonly last: string };
  /** Root of the main tree at the size of the pin, where the bundle itself shows it. */
  readonly rootAtPin: Buffer | undefined;
  /**
   * What the log says of itself, whoever signed it: events that are missing, double or turned round. None where the
   * events are not those that were signed: then their order tells nothing of the log.
   */
  readonly gaps: Findings;
  /** Recorded times that contradict each other, or what was asked for. None where the events are not those that were signed. */
  readonly times: Pick<RecordedTimes, 'findings' | 'remarks'>;
  /** Revisions of the streams of a tenant's events that are not among them, nor can be among the withheld ones. */
  readonly lacking: Lacking;
};

export type EventsAsk = {
  readonly proofs: BundleProofs;
  /** What the checkpoint vouches for; undefined when that is not known: then only the bundle's own fit is checked. */
  readonly target:
    | { readonly size: number; readonly root: Buffer; readonly path: readonly Buffer[] }
    | undefined;
  readonly checkpoint: Checkpoint | undefined;
  readonly pin: Checkpoint | undefined;
  /** Undefined: no manifest says which times were asked for. */
  readonly period?: Period | undefined;
};

/** Reads events and leaves beside each other, once, with bounded memory. */
export const checkEvents = async (
  files: DigestedSource,
  ask: EventsAsk,
  findings: Findings,
): Promise<EventsResult> => {
  const start = ask.proofs.from.size;
  const newTree = (): GrowingRange | undefined => startOf(ask.proofs);
  const [shown, listed] = [newTree(), newTree()];
  const differences: Difference[] = [];
  let differing = 0;
  const lines = createLineCheck(ask, shown, findings);
  const window = leafWindow(files.stream(FILES.leaves), start, (leaf) => listed?.append(leaf));
  const alignment = createAlignment(window, (difference) => {
    differing += 1;
    if (differences.length < LISTED) differences.push({ ...difference });
    if (difference.kind !== 'missing') lines.remember(difference.line);
  });
  try {
    for await (const batch of lineBatches(files.stream(FILES.events))) {
      await window.fill(batch.length + 2 * LOOKAHEAD);
      for (const line of batch) {
        const checked = lines.next(line);
        const place = alignment.next(lines.count(), checked?.leafHash);
        if (place !== undefined && checked !== undefined) lines.placed(checked, place);
      }
    }
    alignment.end();
    await drain(window, findings);
  } catch (error) {
    findings.add({
      code: 'unreadable',
      file: FILES.events,
      message: `reading ended before the end: ${error instanceof Error ? error.message : String(error)}`,
    });
  }
  const fits = conclude({ ask, shown, listed, differences, differing, nameOf: lines.nameOf }, findings);
  const result = lines.result();
  if (!fits) return { ...result, gaps: collectFindings(), times: NO_TIMES };
  const doubles = lines.ids.doubles();
  if (doubles !== undefined) await nameDoubles(files, doubles, start);
  return result;
};

/** Reads the events once more: all of them could be read, and are those that were signed. */
const nameDoubles = async (files: DigestedSource, doubles: DoubleIds, start: number): Promise<void> => {
  let line = 0;
  for await (const batch of lineBatches(files.stream(FILES.events)))
    for (const { text = '' } of batch) {
      line += 1;
      const { leaf } = JSON.parse(text) as Pick<BundleLine, 'leaf'>;
      if (leaf !== null) doubles.next(leaf, { file: FILES.events, line, place: start + line - 1 });
    }
};

const startOf = ({ from }: BundleProofs): GrowingRange | undefined => {
  const hashes = from.hashes.map((hash) => fromBase64(hash) ?? Buffer.alloc(0));
  const sound =
    hashes.length === compactRange(from.size).length && hashes.every(({ length }) => length === 32);
  return sound ? extendRange({ size: from.size, hashes }) : undefined;
};

/** Leaves behind those that were looked at: too many to name one by one. */
const drain = async (window: ReturnType<typeof leafWindow>, findings: Findings): Promise<void> => {
  let ahead = 0;
  while (window.ahead(ahead) !== undefined) ahead += 1;
  window.advance(ahead);
  const from = window.place();
  for (await window.fill(1); window.ahead(0) !== undefined; await window.fill(1)) window.advance(1);
  if (window.place() > from)
    findings.add({
      code: 'missing-event',
      file: FILES.events,
      place: [from, window.place()],
      message: 'these events are missing',
    });
  if (window.oddBytes() > 0)
    findings.add({
      code: 'leaves',
      file: FILES.leaves,
      place: window.place(),
      message: 'its last hash is cut off',
    });
};

const createLineCheck = (ask: EventsAsk, shown: GrowingRange | undefined, findings: Findings) => {
  const { scope, from } = ask.proofs;
  const gaps = collectFindings();
  const revisions = createRevisionCheck(gaps, { later: from.size > 0, others: scope.kind === 'tenant' });
  const ids = createIdCheck(gaps);
  const times = createRecordedTimes({
    period: ask.period,
    checkpoint: ask.checkpoint,
    others: scope.kind === 'tenant',
  });
  const counts = { events: 0, full: 0, redacted: 0, withheld: 0 };
  const withheldBy = { filter: 0, audience: 0 };
  let redactedProven = 0;
  const occurred = { first: '', last: '' };
  const recent = new Map<number, string | undefined>();
  const names = new Map<number, string | undefined>();
  const tenants = tenantTrees(ask);
  let position = '';
  let mainIndex = -1;
  let rootAtPin: Buffer | undefined;
  const atPin = (): void => {
    if (scope.kind === 'log' && shown !== undefined && shown.size() === ask.pin?.size)
      rootAtPin = shown.root();
  };
  atPin();
  const find = (code: Finding['code'], message: string, line: CheckedLine, place?: number): void => {
    const event = eventName(line.leaf);
    findings.add({
      code,
      message,
      file: FILES.events,
      line: counts.events,
      ...(place === undefined ? {} : { place }),
      ...(event === undefined ? {} : { event }),
    });
  };
  const follow = ({ leaf, event }: CheckedLine): void => {
    if (leaf === undefined || event === undefined) {
      revisions.withheld();
      times.withheld();
      return;
    }
    const where = { file: FILES.events, line: counts.events, place: placeOfLine() };
    revisions.next(leaf, where);
    ids.add(leaf.id);
    times.next(event.recordedAt, { ...where, event: `${leaf.stream}@${leaf.revision}` });
  };
  /** Where the line stands that is looked at, if none before it is missing or was added. */
  const placeOfLine = (): number => from.size + counts.events - 1;
  const name = (event: string | undefined): void => {
    recent.set(counts.events, event);
    recent.delete(counts.events - 2 * LOOKAHEAD);
  };
  return {
    next: ({ text, ended }: TextLine): CheckedLine | undefined => {
      counts.events += 1;
      try {
        if (!ended) throw new UnreadableLine('it is cut off: the file ends in the middle of a line');
        const line = checkLine(text ?? refuseLine());
        counts[line.shown] += 1;
        occurred.first ||= line.leaf?.occurredAt ?? '';
        occurred.last = line.leaf?.occurredAt || occurred.last;
        if (line.why !== undefined) withheldBy[line.why] += 1;
        if (line.shown === 'redacted' && line.provenContent) redactedProven += 1;
        name(eventName(line.leaf));
        for (const problem of line.problems) find('content', problem, line, placeOfLine());
        shown?.append(line.leafHash);
        atPin();
        follow(line);
        tenants.append(line);
        // With another root events are damaged, or the history is: of its tenants that tells nothing more.
        if (ask.pin !== undefined && rootAtPin?.equals(ask.pin.root) === true)
          tenants.atPin(shown?.size(), findings);
        return line;
      } catch (error) {
        // RangeError: nested more deeply than anything that is stored.
        if (!(error instanceof UnreadableLine || error instanceof RangeError)) throw error;
        const event = text === undefined ? undefined : guessedName(text);
        name(event);
        tenants.giveUp();
        findings.add({
          code: 'malformed',
          message: `the line cannot be read: ${error.message}`,
          file: FILES.events,
          line: counts.events,
          place: placeOfLine(),
          ...(event === undefined ? {} : { event }),
        });
        return undefined;
      }
    },
    count: () => counts.events,
    /** Called for an event that was found among the leaves. */
    placed: (line: CheckedLine, place: number): void => {
      const stated = scope.kind === 'log' ? line.index : line.tenantIndex;
      if (stated !== place) find('order', `it says that it stands at place ${stated}`, line, place);
      if (line.index <= mainIndex)
        find('order', `its index ${line.index} is not behind that of the event before`, line, place);
      mainIndex = line.index;
      const tenant =
        line.event === undefined || !line.provenContent ? undefined : stringAt(line.event.metadata, 'tenant');
      if (scope.kind === 'tenant' && tenant !== undefined && tenant !== scope.tenant)
        find('tenant', `it is an event of another tenant than ${scopeName(scope)}`, line, place);
      if (line.event === undefined) return;
      if (line.event.position <= position)
        find('order', 'its position is not behind that of the event before', line, place);
      position = line.event.position;
    },
    /** Keeps the name of the event of a line that just did not fit. */
    remember: (line: number): void => {
      if (names.size < LISTED) names.set(line, recent.get(line));
    },
    nameOf: (line: number) => names.get(line),
    ids,
    result: (): EventsResult => {
      tenants.conclude(findings);
      const lacking = revisions.lacking();
      return { counts, redactedProven, withheldBy, occurred, rootAtPin, gaps, times, lacking };
    },
  };
};

const refuseLine = (): never => {
  throw new UnreadableLine('it is too long, or no UTF-8');
};

/**
 * A bundle of the whole log from its beginning shows the trees of all tenants: they are what the checkpoint says, or
 * exports of single tenants were never complete. Needs the metadata of every event.
 */
const tenantTrees = ({ proofs, checkpoint, pin }: EventsAsk) => {
  const trees = createTenantRoots();
  const whole = proofs.scope.kind === 'log' && proofs.from.size === 0 && proofs.to.size === checkpoint?.size;
  let complete = whole;
  return {
    giveUp: (): void => {
      complete = false;
    },
    append: (line: CheckedLine): void => {
      if (line.event === undefined || !line.provenContent) complete = false;
      if (!complete || line.event === undefined) return;
      trees.append(stringAt(line.event.metadata, 'tenant'), line.leafHash);
    },
    /** The auditor's pin vouches for the trees of the tenants as they were there. */
    atPin: (size: number | undefined, findings: Findings): void => {
      if (!complete || pin === undefined || size !== pin.size || findings.count() > 0) return;
      if (trees.count() === pin.tenants.count && trees.root().equals(pin.tenants.root)) return;
      findings.add({
        code: 'pin',
        file: FILES.events,
        place: [0, size],
        message: `the trees of the tenants at your pin of size ${size} were not those of their events`,
      });
    },
    conclude: (findings: Findings): void => {
      if (!complete || checkpoint === undefined) return;
      const { count, root } = checkpoint.tenants;
      if (trees.count() === count && trees.root().equals(root)) return;
      // Events that are wrong make wrong trees: then this says nothing new.
      if (findings.count() > 0) return;
      findings.add({
        code: 'tenants',
        file: FILES.checkpoint,
        message:
          'the trees of the tenants are not those of their events: exports of single tenants would not be complete',
      });
    },
  };
};

type Compared = {
  readonly ask: EventsAsk;
  /** Tree of the events as they are shown, and of the hashes that the bundle lists. */
  readonly shown: GrowingRange | undefined;
  readonly listed: GrowingRange | undefined;
  readonly differences: readonly Difference[];
  readonly differing: number;
  readonly nameOf: (line: number) => string | undefined;
};

/** Returns whether the events are those that were signed. */
const conclude = (
  { ask, shown, listed, differences, differing, nameOf }: Compared,
  findings: Findings,
): boolean => {
  const { from, to } = ask.proofs;
  const leads = (tree: GrowingRange | undefined): boolean =>
    tree !== undefined &&
    tree.size() === to.size &&
    ask.target !== undefined &&
    signed(tree.root(), to.size, ask.target);
  const [shownFits, listedFits] = [leads(shown), leads(listed)];
  if (shownFits && differing === 0) return true;
  for (const difference of differences)
    findings.add(shownFits ? leavesFinding(difference) : eventFinding(difference, nameOf));
  if (ask.target === undefined || shownFits || listedFits) return shownFits;
  const sizes =
    shown === undefined || shown.size() === to.size ? '' : `, of which ${shown.size() - from.size} are there`;
  findings.add({
    code: 'root',
    file: FILES.proofs,
    place: [from.size, to.size],
    message:
      `the ${to.size - from.size} events of the range${sizes} do not lead to the root that was signed` +
      (differing === 0
        ? ', and the list of their hashes neither: which of them was changed cannot be told'
        : ''),
  });
  return false;
};

const signed = (root: Buffer, size: number, target: NonNullable<EventsAsk['target']>): boolean =>
  verifyConsistency({ from: size, to: target.size, fromRoot: root, toRoot: target.root, path: target.path });

const leavesFinding = ({ kind, place }: Difference): Finding => ({
  code: 'leaves',
  file: FILES.leaves,
  place,
  message:
    kind === 'added'
      ? 'a hash is missing in the list'
      : 'the list has another hash than the event, which is right',
});

const eventFinding = (difference: Difference, nameOf: (line: number) => string | undefined): Finding => {
  const { place } = difference;
  if (difference.kind === 'missing')
    return {
      code: 'missing-event',
      file: FILES.events,
      place,
      message: 'the event that was signed at this place is missing',
    };
  const event = nameOf(difference.line);
  return {
    code: difference.kind === 'added' ? 'added-event' : 'changed-event',
    file: FILES.events,
    line: difference.line,
    place,
    ...(event === undefined ? {} : { event }),
    message:
      difference.kind === 'added'
        ? 'no event was signed here: it was added, or moved from another place'
        : 'it is not the event that was signed at this place',
  };
};
