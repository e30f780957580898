import { stringAt } from '../../../domain/json-tools.ts';
import type { EventStore, Position, RecordedEvent } from '../../log/event-store.ts';
import { AUDIT_KEYS_STREAM } from '../audit-keys.ts';
import { originOf, type Checkpoint } from '../merkle/checkpoint.ts';
import { extendRange, type GrowingRange } from '../merkle/compact-range.ts';
import type { ChainedKey, Trust } from '../merkle/key-chain.ts';
import { isLeafStream, leafHashOf, leafOf } from '../merkle/leaf.ts';
import { MOST_HEADS, TREE_HEADS_STREAM } from '../tree-heads.ts';
import { collectFindings, outcomeOf, type Finding, type Findings, type Outcome } from './findings.ts';
import { FILES } from './format.ts';
import { createIdCheck } from './id-check.ts';
import { checkServedTrees, type ServedTrees, type TreesOfLog } from './served-trees.ts';
import { nameChanges, type KeptTree, type RightUpTo } from './store-naming.ts';
import { takenBack } from './pin-check.ts';
import { createRevisionCheck, tellGaps } from './revision-check.ts';
import { checkPosition, checkTime, type PlacedEvent } from './store-times.ts';
import { createTenantRoots, type TenantRoots } from './tenant-roots.ts';
import { authorityOf, openCheckpoint, type Authority } from './trust-check.ts';

/** A log that nobody writes to: a stopped embedded store, or a backup of one. */
export type StoppedLog = Pick<EventStore, 'storeId' | 'readAll' | 'readStream'>;

export type StoreOptions = {
  /** What the auditor trusts; absent: the keys that the store names itself. */
  readonly trust?: Trust;
  /** The tree as it was kept apart from the events: with it a wrong or missing event is named. */
  readonly kept?: KeptTree;
  /** The trees that the service keeps beside the log, and serves: they are checked, too. */
  readonly served?: ServedTrees;
};

export type StoreReport = Outcome & {
  /** What is not wrong but may be a trace: an end without a signature. In words. */
  readonly remarks: readonly string[];
  readonly keys: 'pinned' | 'from the store';
  /** Events of the log, leaves among them, and signed heads that were compared. */
  readonly events: number;
  readonly leaves: number;
  readonly heads: number;
  /** Size of the largest head that is right: what lies behind it nobody signed yet. */
  readonly signed: number;
  /** Reading ended before the end: what is counted was looked at, nothing behind it was. */
  readonly ended?: true;
  /** Tiles and bundles of entries that the service keeps beside the log, and that were looked at; undefined: none were. */
  readonly tiles?: number;
};

/**
 * Recomputes the tree of a stopped store and compares it with every head that was signed over it. Never throws for
 * what is wrong with the store: that is what it reports.
 */
export const verifyStore = async (log: StoppedLog, options: StoreOptions = {}): Promise<StoreReport> => {
  const findings = collectFindings();
  const progress = { events: 0, leaves: 0, heads: 0, signed: 0 };
  const remarks: string[] = [];
  let tiles: number | undefined;
  let ended = false;
  try {
    const authority = await authorityOfStore(log, options.trust, findings);
    const heads = await headsOf(log, authority, findings);
    const pin = options.trust === undefined ? undefined : authority.pin;
    const marks = marksOf(heads, pin);
    progress.heads = heads.length;
    const { unsignedForMs, trees } = await compare(log, marks, options, findings, progress);
    if (heads.length === 0 && progress.leaves > 0)
      findings.add({
        code: 'head',
        place: [0, progress.leaves],
        message: `the store has no signed head over its ${progress.leaves} events: none was signed, or all were taken out`,
      });
    tiles = await checkServed(options.served, trees, findings, remarks);
    remarks.push(...remarksOnEnd(progress.leaves, heads.at(-1)?.checkpoint.size, unsignedForMs));
  } catch (error) {
    ended = true;
    findings.add({
      code: 'unreadable',
      message: `reading ended before the end: ${error instanceof Error ? error.message : String(error)}`,
    });
  }
  return {
    ...outcomeOf(findings),
    remarks,
    keys: options.trust === undefined ? 'from the store' : 'pinned',
    ...progress,
    ...(ended ? { ended } : {}),
    ...(tiles === undefined ? {} : { tiles }),
  };
};

/** What is kept is derived: of a log that is itself wrong it tells nothing. */
const checkServed = async (
  served: ServedTrees | undefined,
  trees: TreesOfLog | undefined,
  findings: Findings,
  remarks: string[],
): Promise<number | undefined> => {
  if (served === undefined) return undefined;
  if (findings.count() > 0) {
    remarks.push(
      'the tiles that the service keeps beside the log were not looked at: first the log has to be right',
    );
    return undefined;
  }
  if (trees !== undefined) return checkServedTrees(served, trees, findings);
  const size = sizeOf(served);
  const what = size === undefined ? 'cannot be read' : `has ${size} leaves, more than the log`;
  findings.add({
    code: 'served',
    message: `the tree that the service keeps beside the log, and serves, ${what}: have the read model built again`,
  });
  return undefined;
};

/** So much a signer leaves unsigned at most while it runs (signer.ts): 10 s, with room for a busy machine. */
const MOST_UNSIGNED = 1000;
const MOST_UNSIGNED_MS = 60_000;

/** Heads that were taken off the end leave nothing behind but this. `unsignedForMs`: by the times of the store. */
const remarksOnEnd = (leaves: number, signed: number | undefined, unsignedForMs: number): string[] => {
  const unsigned = leaves - (signed ?? leaves);
  if (unsigned <= 0 || (unsigned <= MOST_UNSIGNED && unsignedForMs <= MOST_UNSIGNED_MS)) return [];
  return [
    `${unsigned} events behind size ${signed} have no signed head, over ${Math.round(unsignedForMs / 1000)} s: ` +
      'nobody signed in that time, or the newest heads were taken out',
  ];
};

const authorityOfStore = async (
  log: StoppedLog,
  trust: Trust | undefined,
  findings: Findings,
): Promise<Authority> => {
  const keys: ChainedKey[] = [];
  for await (const { data } of log.readStream(AUDIT_KEYS_STREAM)) {
    const rotation = stringAt(data, 'rotation');
    const key = { vkey: stringAt(data, 'vkey'), since: stringAt(data, 'at') };
    keys.push(rotation === '' ? key : { ...key, rotation });
  }
  const named = new Set(keys.map(({ vkey }) => vkey));
  for (const { vkey } of trust?.keys ?? [])
    if (!named.has(vkey))
      findings.add({ code: 'key', file: FILES.trust, message: `the store lacks the key ${vkey}` });
  const origin = originOf(log.storeId);
  const authority = authorityOf(
    keys.length === 0 && trust === undefined ? undefined : { origin, keys },
    trust,
    findings,
  );
  return authority ?? { origin, vkeys: [], pin: undefined };
};

type Head = { readonly revision: number; readonly checkpoint: Checkpoint };

const headsOf = async (log: StoppedLog, authority: Authority, findings: Findings): Promise<Head[]> => {
  const heads: Head[] = [];
  let last: Head | undefined;
  let first: number | undefined;
  let count = 0;
  for await (const { data, revision } of log.readStream(TREE_HEADS_STREAM)) {
    first ??= revision;
    count += 1;
    const wrong = (message: string): void =>
      findings.add({
        code: 'head',
        event: `${TREE_HEADS_STREAM}@${revision}`,
        message: `the signed head ${message}`,
      });
    const checkpoint = openCheckpoint(stringAt(data, 'note'), authority, (why) =>
      wrong(`is not valid: ${why}`),
    );
    if (checkpoint === undefined) continue;
    if (last !== undefined && checkpoint.size <= last.checkpoint.size)
      wrong(`of size ${checkpoint.size} is not larger than the one before it`);
    if (last !== undefined && revision !== last.revision + 1)
      wrong('does not follow the one before it: some are missing');
    last = { revision, checkpoint };
    heads.push(last);
  }
  // The store itself drops none before there are more than it keeps.
  if (first !== undefined && first > 0 && count < MOST_HEADS)
    findings.add({
      code: 'head',
      event: `${TREE_HEADS_STREAM}@${first}`,
      message: `this is the first signed head: ${first} before it are missing`,
    });
  return heads;
};

/** A size at which the tree must have a root. */
type Mark = {
  readonly checkpoint: Checkpoint;
  readonly what: string;
  /**
   * Heads were signed by whoever keeps the store: that one fits tells nothing of an earlier pin. So an event that a pin
   * misses may be any, one that a head misses is behind the head before it.
   */
  readonly pinned: boolean;
};

const marksOf = (heads: readonly Head[], pin: Checkpoint | undefined): Mark[] =>
  [
    ...heads.map(({ checkpoint, revision }) => ({
      checkpoint,
      what: `the head ${TREE_HEADS_STREAM}@${revision}`,
      pinned: false,
    })),
    ...(pin === undefined ? [] : [{ checkpoint: pin, what: 'your pin', pinned: true }]),
  ].sort((left, right) => left.checkpoint.size - right.checkpoint.size);

const PAGE = 10_000;

type Progress = { events: number; leaves: number; signed: number };

const compare = async (
  log: StoppedLog,
  marks: readonly Mark[],
  { kept, served }: StoreOptions,
  findings: Findings,
  progress: Progress,
): Promise<{ readonly unsignedForMs: number; readonly trees: TreesOfLog | undefined }> => {
  const gaps = collectFindings();
  const comparison = createComparison(marks, { findings, gaps }, progress, sizeOf(served));
  try {
    for await (const event of allOf(log)) comparison.take(event);
    const { wrong, right, unsignedForMs, trees, doubles } = comparison.end();
    let place = 0;
    if (doubles !== undefined)
      for await (const event of leavesOf(log, undefined)) {
        doubles.next(event, { place });
        place += 1;
      }
    if (kept !== undefined && wrong.length > 0) {
      const start = wrong.some(({ pinned }) => pinned) ? NOTHING : right;
      const signed = marks.map(({ checkpoint }) => checkpoint);
      await nameChanges({ kept, start, signed, leaves: (after) => leavesOf(log, after) }, findings);
    }
    return { unsignedForMs, trees };
  } finally {
    // They tell what is wrong without any tree; what was named at its place is not told twice.
    const named = new Set(findings.list().map(({ event }) => event));
    tellGaps(gaps, findings, { place: [0, progress.leaves] }, named);
  }
};

/** Of a read model that cannot be read there is no size at which the log could be compared with it. */
const sizeOf = (served: ServedTrees | undefined): number | undefined => {
  try {
    return served?.size();
  } catch {
    return undefined;
  }
};

const NOTHING: RightUpTo = { size: 0, hashes: [], position: undefined };

const createComparison = (
  marks: readonly Mark[],
  { findings, gaps }: { readonly findings: Findings; readonly gaps: Findings },
  progress: Progress,
  /** Size at which the trees are asked for. */
  wanted: number | undefined,
) => {
  const tree = extendRange();
  const tenants = createTenantRoots();
  const revisions = createRevisionCheck(gaps);
  const ids = createIdCheck(gaps);
  const headed = marks.findLast(({ pinned }) => !pinned)?.checkpoint.size ?? 0;
  const wrong: Mark[] = [];
  let right = NOTHING;
  let next = 0;
  let below: Mark | undefined;
  let lastLeaf: PlacedEvent | undefined;
  let unsignedSince: number | undefined;
  let latest = 0;
  let trees: TreesOfLog | undefined;

  const since = (mark: Mark): number => (mark.pinned ? 0 : progress.signed);
  const compareWith = (mark: Mark): void => {
    // Behind the first head that is wrong every other one is; only a pin still tells how far back it begins.
    if (wrong.length > 0 && !mark.pinned) return;
    const problem = problemAt(mark, tree, tenants);
    if (problem === undefined) {
      progress.signed = tree.size();
      right = { size: tree.size(), hashes: tree.hashes(), position: lastLeaf?.position };
      checkPosition(mark, lastLeaf, findings);
      return;
    }
    wrong.push(mark);
    findings.add(anotherRoot(mark, since(mark), problem));
  };
  const reachMarks = (): void => {
    if (tree.size() === wanted) trees = { size: wanted, root: tree.root(), tenants: tenants.heads() };
    for (let mark = marks[next]; mark?.checkpoint.size === tree.size(); mark = marks[next]) {
      next += 1;
      below = mark;
      compareWith(mark);
    }
  };
  reachMarks();

  return {
    take: (event: RecordedEvent): void => {
      progress.events += 1;
      const recorded = Date.parse(event.recordedAt) || 0;
      latest = Math.max(latest, recorded);
      if (!isLeafStream(event.stream)) return;
      revisions.next(event, { place: tree.size() });
      ids.add(event.id);
      const hash = leafHashOf(leafOf(event));
      tree.append(hash);
      tenants.append(stringAt(event.metadata, 'tenant'), hash);
      progress.leaves += 1;
      lastLeaf = { ...event, place: tree.size() - 1 };
      checkTime(lastLeaf, { below, above: marks[next] }, findings);
      if (tree.size() > headed) unsignedSince ??= recorded;
      reachMarks();
    },
    end: () => {
      const largest = [false, true].map((pinned) => marks.findLast((mark) => mark.pinned === pinned));
      const headBelow = marks.findLast((mark) => !mark.pinned && mark.checkpoint.size <= tree.size());
      const beyond = largest.filter((mark) => mark !== undefined && mark.checkpoint.size > tree.size());
      for (const mark of beyond as Mark[]) {
        const sound = wrong.length === 0 && (headBelow !== undefined || tree.size() === 0);
        const ends = mark.pinned && sound;
        findings.add(
          ends ? endsBefore(mark, headBelow, tree.size()) : tooShort(mark, since(mark), tree.size()),
        );
        wrong.push(mark);
      }
      const unsignedForMs = unsignedSince === undefined ? 0 : latest - unsignedSince;
      return { wrong: wrong as readonly Mark[], right, unsignedForMs, trees, doubles: ids.doubles() };
    },
  };
};

const tooShort = ({ what, checkpoint }: Mark, from: number, size: number): Finding => ({
  code: 'missing-event',
  // An event may be missing anywhere since the last head that is right: all behind it have moved up.
  place: [from, checkpoint.size],
  message:
    `${what} is of size ${checkpoint.size}, the log has ${size} events: ` +
    `${checkpoint.size - size} of those since size ${from} are missing`,
});

/** Of a store that is what its own heads say: all of them are, so that none of what they cover is missing. */
const endsBefore = ({ checkpoint: pin }: Mark, head: Mark | undefined, size: number): Finding => {
  const back = head === undefined ? undefined : takenBack(pin, head.checkpoint);
  const why =
    back ??
    'it is a copy that is older than the pin, or history was taken back. Check an old copy with the trust.json that you ' +
      'kept when it was made';
  return {
    code: back === undefined ? 'missing-event' : 'taken-back',
    place: [size, pin.size],
    message: `the store ends at size ${size}, before your pin of size ${pin.size}: ${why}`,
  };
};

async function* leavesOf(log: StoppedLog, start: Position | undefined): AsyncGenerator<RecordedEvent> {
  for await (const event of allOf(log, start)) if (isLeafStream(event.stream)) yield event;
}

async function* allOf(log: StoppedLog, start?: Position): AsyncGenerator<RecordedEvent> {
  let after = start;
  let limit = PAGE;
  for (let more = true; more; ) {
    more = false;
    try {
      for await (const event of log.readAll({ limit, ...(after === undefined ? {} : { after }) })) {
        after = event.position;
        more = true;
        yield event;
      }
    } catch (error) {
      if (limit === 1) throw error;
      // A page is read as a whole or not at all: event by event it shows how far the log can be read.
      [limit, more] = [1, true];
    }
  }
}

const problemAt = ({ checkpoint }: Mark, tree: GrowingRange, tenants: TenantRoots): string | undefined => {
  if (!tree.root().equals(checkpoint.root)) return 'another root than the events have';
  if (tenants.count() === checkpoint.tenants.count && tenants.root().equals(checkpoint.tenants.root))
    return undefined;
  return 'another root over the trees of the tenants than the events have';
};

const anotherRoot = ({ what, checkpoint }: Mark, from: number, problem: string): Finding => ({
  code: 'root',
  place: [from, checkpoint.size],
  message: `${what} of size ${checkpoint.size} has ${problem}: at least one event since size ${from} was changed, moved, added or taken out`,
});
