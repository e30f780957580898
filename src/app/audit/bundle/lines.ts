import { hash } from 'node:crypto';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, numberAt, own, stringAt } from '../../../domain/json-tools.ts';
import type { RecordedEvent } from '../../log/event-store.ts';
import type { AuditLeaf } from '../tree.ts';
import { encryptedIn, isEncrypted } from '../../../domain/personal.ts';
import { splitOf } from '../../log/metadata.ts';
import { isHash, leafHash } from '../merkle/hashing.ts';
import { canonicalHash, canonicalText, hashedMetadata, leafHashOf, type LeafRecord } from '../merkle/leaf.ts';
import type { BundleLine, LineEvent, Shown, WhyWithheld } from './format.ts';

/** Text of a line, without its newline. What is not hashed of the metadata has no place in an export. */
export const lineText = (line: BundleLine): string => {
  const { event } = line;
  const proven =
    event === null ? line : { ...line, event: { ...event, metadata: hashedMetadata(event.metadata) } };
  return canonicalText(proven as unknown as JsonValue);
};

/** Where an event stands: its leaf in the audit tree. */
export type LeafPlace = Pick<AuditLeaf, 'index' | 'tenantIndex' | 'record'>;

/** An event as it is, and the clear texts of its personal fields (`revealedTexts`). */
export const fullLine = (
  { index, tenantIndex, record }: LeafPlace,
  event: RecordedEvent,
  revealed?: { readonly [path: string]: string },
): BundleLine => ({
  index,
  tenantIndex,
  shown: 'full',
  leaf: record,
  event: lineEvent(event),
  ...(revealed === undefined ? {} : { revealed }),
});

/** An event of which the reader may see only this: where its leaf has `hidden`, what `ShownEvent.stored` says. */
export const redactedLine = (
  { index, tenantIndex, record }: LeafPlace,
  event: RecordedEvent,
  visible: Pick<RecordedEvent, 'data' | 'metadata'>,
): BundleLine => ({
  index,
  tenantIndex,
  shown: 'redacted',
  leaf: record,
  event: lineEvent({ ...event, ...visible }),
});

/** That there is an event, and nothing about it. */
export const withheldLine = ({ index, tenantIndex, record }: LeafPlace, why: WhyWithheld): BundleLine => ({
  index,
  tenantIndex,
  shown: 'withheld',
  leaf: null,
  hash: leafHashOf(record).toString('hex'),
  why,
  event: null,
});

const lineEvent = ({ position, recordedAt, data, metadata }: RecordedEvent): LineEvent => ({
  position,
  recordedAt,
  data,
  metadata: hashedMetadata(metadata),
});

export type CheckedLine = {
  readonly index: number;
  readonly tenantIndex: number;
  readonly shown: Shown;
  /** Undefined for a withheld event. */
  readonly leaf: LeafRecord | undefined;
  readonly leafHash: Buffer;
  readonly event: LineEvent | undefined;
  /** Whether the leaf is of what the line shows: of all that is stored, or of all that tenants may see. */
  readonly provenContent: boolean;
  /** Undefined for an event that is not withheld. */
  readonly why: WhyWithheld | undefined;
  /** What does not fit inside of the line, for an event that is otherwise readable. */
  readonly problems: readonly string[];
};

/** A text that is no line of events.ndjson; the message says why. */
export class UnreadableLine extends Error {
  override readonly name = 'UnreadableLine';
}

const refuse = (why: string): never => {
  throw new UnreadableLine(why);
};

/**
 * Reads a line and checks everything that can be checked inside of it: its spelling, its shape, and that what it
 * shows hashes to what its leaf says. Throws UnreadableLine.
 */
export const checkLine = (text: string): CheckedLine => {
  const line = parse(text);
  const shown = shownOf(line);
  const leaf = shown === 'withheld' ? undefined : leafIn(line);
  const event = shown === 'withheld' ? undefined : eventIn(line);
  return {
    index: wholeNumber(line, 'index'),
    tenantIndex: wholeNumber(line, 'tenantIndex'),
    shown,
    leaf,
    leafHash: leaf === undefined ? statedHash(line) : quickLeafHash(own(line, 'leaf') as JsonObject, leaf),
    event,
    provenContent: shown === 'full' || (shown === 'redacted' && leaf?.hidden !== undefined),
    why: whyIn(line, shown),
    problems: [
      ...(leaf !== undefined && event !== undefined ? contentProblems(leaf, event, shown) : []),
      ...revealProblems(own(line, 'revealed'), event),
    ],
  };
};

const KEYS: ReadonlySet<string> = new Set([
  'index',
  'tenantIndex',
  'shown',
  'leaf',
  'hash',
  'why',
  'event',
  'revealed',
]);

/** One spelling per line: a second key of the same name, or spaces, could show two readers two events. */
const parse = (text: string): JsonObject => {
  const line = parsedJson(text);
  if (!isObject(line)) return refuse('it is not a JSON object');
  const unknown = Object.keys(line).find((key) => !KEYS.has(key));
  if (unknown !== undefined) return refuse(`it has a field ${JSON.stringify(unknown)} that no line has`);
  // Serialising is five times faster than sorting first, and gives the same for nearly every line.
  if (JSON.stringify(line) !== text && canonicalText(line) !== text)
    return refuse('it is not in canonical form (RFC 8785)');
  return line;
};

const parsedJson = (text: string): JsonValue => {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return refuse('it is not JSON');
  }
};

const shownOf = (line: JsonObject): Shown => {
  const shown = own(line, 'shown');
  return shown === 'full' || shown === 'redacted' || shown === 'withheld'
    ? shown
    : refuse('`shown` is full, redacted or withheld');
};

const whyIn = (line: JsonObject, shown: Shown): WhyWithheld | undefined => {
  const why = own(line, 'why');
  if (shown !== 'withheld')
    return why === undefined ? undefined : refuse('`why` stands only where the event is withheld');
  return why === 'filter' || why === 'audience' ? why : refuse('`why` is filter or audience');
};

const wholeNumber = (line: JsonObject, key: string): number => {
  const value = own(line, key);
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? value
    : refuse(`\`${key}\` is a whole number from 0`);
};

/** Keys of a leaf, sorted. */
const LEAF_KEYS: readonly string[] = [
  'data',
  'hidden',
  'id',
  'metadata',
  'occurredAt',
  'revision',
  'stream',
  'type',
  'v',
];
const keysOfLeaf = (leaf: JsonObject): readonly string[] =>
  LEAF_KEYS.filter((key) => key !== 'hidden' || Object.hasOwn(leaf, key));

const leafIn = (line: JsonObject): LeafRecord => {
  const leaf = own(line, 'leaf');
  if (!isObject(leaf) || leaf['v'] !== 1 || Object.keys(leaf).sort().join() !== keysOfLeaf(leaf).join())
    return refuse('`leaf` has not the fields of a leaf');
  if (own(line, 'hash') !== undefined) return refuse('`hash` stands only where the leaf is withheld');
  const texts = Object.entries(leaf).filter(([key]) => key !== 'v' && key !== 'revision');
  if (!texts.every(([, text]) => typeof text === 'string') || !Number.isSafeInteger(leaf['revision']))
    return refuse('`leaf` has a field of another type');
  return leaf as unknown as LeafRecord;
};

const eventIn = (line: JsonObject): LineEvent => {
  const event = own(line, 'event');
  if (!isObject(event) || Object.keys(event).sort().join() !== 'data,metadata,position,recordedAt')
    return refuse('`event` has not the fields of an event');
  const { data, metadata, position, recordedAt } = event;
  return isObject(data) &&
    isObject(metadata) &&
    typeof position === 'string' &&
    typeof recordedAt === 'string'
    ? { data, metadata, position, recordedAt }
    : refuse('`event` has a field of another type');
};

const statedHash = (line: JsonObject): Buffer => {
  const stated = own(line, 'hash');
  const bytes = Buffer.from(typeof stated === 'string' ? stated : '', 'hex');
  if (!isHash(bytes) || bytes.toString('hex') !== stated) return refuse('`hash` is not 64 hex digits');
  return own(line, 'leaf') === null && own(line, 'event') === null
    ? bytes
    : refuse('a withheld event shows neither leaf nor event');
};

/** The leaf stands in the line in canonical form already: see `parse`. Sorted keys need no sorting. */
const quickLeafHash = (stored: JsonObject, leaf: LeafRecord): Buffer => {
  const keys = Object.keys(stored);
  const sorted = keysOfLeaf(stored);
  return keys.every((key, at) => key === sorted[at])
    ? leafHash(Buffer.from(JSON.stringify(stored), 'utf8'))
    : leafHashOf(leaf);
};

/**
 * A text that has the right hash is the canonical form, whoever made it: nothing else has that hash. So the form that
 * serialising gives is tried first, and sorted only when it is not the one.
 */
const hashesTo = (value: JsonObject, expected: string): boolean =>
  hash('sha256', JSON.stringify(value), 'hex') === expected || canonicalHash(value) === expected;

/** What of a line's content its leaf is the hash of; undefined: of what is not shown there too. */
const provenContent = (
  leaf: LeafRecord,
  { data, metadata }: LineEvent,
  shown: Shown,
): (Pick<LineEvent, 'data' | 'metadata'> & { readonly hidden?: JsonObject }) | undefined => {
  if (leaf.hidden === undefined) return shown === 'full' ? { data, metadata } : undefined;
  return shown === 'full' ? splitOf({ data, metadata }) : { data, metadata };
};

const contentProblems = (leaf: LeafRecord, event: LineEvent, shown: Shown): string[] => {
  const content = provenContent(leaf, event, shown);
  if (content === undefined)
    return shown === 'full' ? ['its metadata does not say which part of it its leaf is of'] : [];
  const { data, metadata, hidden } = content;
  const isHidden = leaf.hidden === undefined || hidden === undefined || hashesTo(hidden, leaf.hidden);
  return [
    ...(hashesTo(data, leaf.data) ? [] : ['its data is not what was stored']),
    ...(hashesTo(metadata, leaf.metadata) ? [] : ['its metadata is not what was stored']),
    ...(isHidden ? [] : ['its part that is hidden from tenants is not as stored']),
    ...(stringAt(metadata, 'occurredAt') === leaf.occurredAt ? [] : ['its time is not that of its metadata']),
  ];
};

/** `revealed` may only speak of fields that are ciphertext in the event. */
const revealProblems = (revealed: JsonValue | undefined, event: LineEvent | undefined): string[] => {
  if (revealed === undefined) return [];
  if (!isObject(revealed) || event === undefined) return ['`revealed` stands without an event'];
  const shown: JsonObject = { data: event.data, metadata: event.metadata };
  return Object.entries(revealed).flatMap(([path, clear]) =>
    typeof clear === 'string' && isEncrypted(valueOf(shown, path))
      ? []
      : [`\`revealed\` names ${JSON.stringify(path)}, which is not an encrypted field of the event`],
  );
};

const valueOf = (value: JsonValue, path: string): JsonValue | undefined => {
  let node: JsonValue | undefined = value;
  for (const key of pathKeys(path)) {
    if (Array.isArray(node)) node = node[Number(key)];
    else if (isObject(node)) node = own(node, key);
    else return undefined;
  }
  return node;
};

/** JSON Pointers (RFC 6901), since keys may hold dots. */
const pathKeys = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));

/**
 * Clear texts of an event's personal fields for `revealed`, by JSON Pointer; undefined when there are none, or none
 * is readable any more. `open` returns undefined for what was erased.
 */
export const revealedTexts = (
  event: Pick<LineEvent, 'data' | 'metadata'>,
  open: (values: ReturnType<typeof encryptedIn>) => readonly (string | undefined)[],
): { [path: string]: string } | undefined => {
  const found = [...encryptedAt({ data: event.data, metadata: event.metadata }, '')];
  const texts = open(found.map(({ value }) => value));
  const readable = found.flatMap(({ path }, at): [string, string][] => {
    const clear = texts[at];
    return clear === undefined ? [] : [[path, clear]];
  });
  return readable.length === 0 ? undefined : Object.fromEntries(readable);
};

function* encryptedAt(
  value: JsonValue,
  path: string,
): Generator<{ path: string; value: ReturnType<typeof encryptedIn>[number] }> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value) && isEncrypted(value)) {
    yield { path, value };
    return;
  }
  for (const [key, inner] of Object.entries(value))
    yield* encryptedAt(inner as JsonValue, `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

/** `<stream>@<revision>` of a line, undefined for a withheld one. */
export const eventName = (leaf: LeafRecord | undefined): string | undefined =>
  leaf === undefined ? undefined : `${leaf.stream}@${leaf.revision}`;

/** Best guess at which event a line was that cannot be read any more. */
export const guessedName = (text: string): string | undefined => {
  try {
    const leaf = own(JSON.parse(text) as JsonObject, 'leaf');
    return isObject(leaf) && typeof leaf['stream'] === 'string'
      ? `${leaf['stream']}@${numberAt(leaf, 'revision')}`
      : undefined;
  } catch {
    const [, revision, stream] = /"revision":(\d+),"stream":"([^"\\]+)"/.exec(text) ?? [];
    return stream === undefined ? undefined : `${stream}@${revision}`;
  }
};
