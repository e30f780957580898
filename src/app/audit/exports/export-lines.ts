import type { ExportRequest } from '../../../domain/audit/events.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { encryptedIn } from '../../../domain/personal.ts';
import type { RecordedEvent } from '../../log/event-store.ts';
import type { BundleLine, BundleScope } from '../bundle/format.ts';
import { fullLine, lineText, redactedLine, revealedTexts, withheldLine } from '../bundle/lines.ts';
import { ocsfOf } from '../bundle/ocsf.ts';
import { BundleInconsistent, type LinePage } from '../bundle/writer.ts';
import { assertUnchanged, ChangedEvent } from '../event-source.ts';
import { leafHashOf } from '../merkle/leaf.ts';
import {
  revealsActor,
  shownTo,
  type AuditAudience,
  type AuditWords,
  type ShownEvent,
  type StoredContent,
} from '../shown-event.ts';
import type { AuditLeaf, AuditTree } from '../tree.ts';
import { openEventsInOrder, type EventsInOrder, type LogToExport } from './events-in-order.ts';

/** Which lines: plain data, for it crosses a thread. */
export type LinesAsked = {
  /** `events`: the lines that are proven. `ocsf`: the same events as records of OCSF, without what is withheld. */
  readonly of: 'events' | 'ocsf';
  readonly scope: BundleScope;
  readonly range: { readonly from: number; readonly to: number };
  readonly request: Pick<ExportRequest, 'filter' | 'audience'>;
  readonly productVersion: string;
};

/** What lines are made from. */
export type LinesSource = {
  readonly store: LogToExport;
  readonly tree: Pick<AuditTree, 'leaves' | 'tenantTree'>;
  readonly words: AuditWords;
};

/** `line` is called for each leaf: it lets others have the thread, and throws when the export was called off. */
export type LineSteps = { readonly line: () => Promise<void>; readonly signal: AbortSignal };

/** Leaves that are read in one go, with their events. */
const READ_LEAVES = 32;
/** Bytes of text, and leaves, behind which a page of lines ends. */
const PAGE_BYTES = 256 * 1024;
const PAGE_LEAVES = 500;

/** The lines of an export in their order. Throws ChangedEvent where the log holds another event, BundleInconsistent for a tree with gaps. */
export async function* exportPages(
  { of, scope, range, request, productVersion }: LinesAsked,
  source: LinesSource,
  { line, signal }: LineSteps,
): AsyncGenerator<LinePage> {
  const tree = scope.kind === 'tenant' ? source.tree.tenantTree(scope.tenant) : source.tree;
  const lineOf = lines(request, source.words);
  const page = openPage();
  const log = openLog(source, { scope, range }, signal);
  try {
    for (let index = range.from; index < range.to; ) {
      const leaves = tree.leaves(index, Math.min(READ_LEAVES, range.to - index));
      if (leaves.length === 0) throw new BundleInconsistent(`the audit tree lacks leaf ${index}`);
      const events = await log.of(leaves);
      for (const [i, leaf] of leaves.entries()) {
        await line();
        const { event, hash } = checked(leaf, events[i]);
        const shown = lineOf(leaf, event);
        if (of === 'events') page.add(lineText(shown), shown, hash);
        else page.add(ocsfText(shown, leaf, productVersion), shown);
        if (page.bytes() >= PAGE_BYTES || page.leaves() >= PAGE_LEAVES) yield page.take();
      }
      index += leaves.length;
    }
    if (page.leaves() > 0) yield page.take();
  } finally {
    await log.close();
  }
}

/** The whole log lies in its order; a tenant's events lie between those of others. */
const openLog = (
  { store: { readStream, readAll }, tree }: LinesSource,
  { scope, range }: Pick<LinesAsked, 'scope' | 'range'>,
  signal: AbortSignal,
): EventsInOrder => {
  const before = range.from === 0 ? undefined : tree.leaves(range.from - 1, 1)[0]?.position;
  const inOrder = scope.kind === 'log' && readAll !== undefined && (range.from === 0 || before !== undefined);
  return openEventsInOrder({ readStream, ...(inOrder && { readAll }) }, before, signal);
};

/** The event of a leaf, and the hash that both have. Throws ChangedEvent. */
const checked = (
  leaf: AuditLeaf,
  event: RecordedEvent | undefined,
): { event: RecordedEvent; hash: Buffer } => {
  if (event === undefined) throw new ChangedEvent(leaf, 'is missing in the log');
  // Nobody else would notice: of what is redacted or withheld the tree's own leaf is shown.
  const hash = leafHashOf(leaf.record);
  assertUnchanged(leaf, event, hash);
  return { event, hash };
};

/** Gathers lines, each with its newline. */
const openPage = () => {
  let texts: string[] = [];
  let hashes: Buffer[] = [];
  let counts = { events: 0, full: 0, redacted: 0, withheld: 0 };
  let bytes = 0;
  return {
    bytes: () => bytes,
    leaves: () => counts.events,
    add: (text: string | undefined, { shown }: BundleLine, hash?: Buffer): void => {
      counts.events += 1;
      counts[shown] += 1;
      if (hash !== undefined) hashes.push(hash);
      if (text === undefined) return;
      texts.push(text, '\n');
      bytes += text.length;
    },
    take: (): LinePage => {
      const taken = { text: Buffer.from(texts.join(''), 'utf8'), hashes: Buffer.concat(hashes), counts };
      [texts, hashes, bytes] = [[], [], 0];
      counts = { events: 0, full: 0, redacted: 0, withheld: 0 };
      return taken;
    },
  };
};

/** Derived from what is shown, after it was proven; undefined for what is withheld. */
const ocsfText = (
  { leaf, event, revealed }: BundleLine,
  { kind, resourceId }: AuditLeaf,
  productVersion: string,
): string | undefined => {
  if (leaf === null || event === null) return undefined;
  const more = revealed === undefined ? {} : { revealed };
  return JSON.stringify(ocsfOf({ leaf, event, kind, resourceId, productVersion, ...more }));
};

/** A line per leaf. Of what the filter leaves out, and of what may not be seen, it holds the hash only. */
const lines = (
  request: LinesAsked['request'],
  words: AuditWords,
): ((leaf: AuditLeaf, event: RecordedEvent) => BundleLine) => {
  const audience = request.audience ?? 'tenant';
  const wanted = matcher(request.filter, audience);
  return (leaf, event) => {
    const visible = shownTo(event, audience, words);
    const part = visible && shownPart(leaf, visible, audience);
    if (visible === undefined || part === undefined) return withheldLine(leaf, 'audience');
    if (!wanted(leaf)) return withheldLine(leaf, 'filter');
    if (visible.shown === 'full') {
      const { data, metadata } = event;
      return fullLine(leaf, event, revealedIn({ data, metadata }, audience, words));
    }
    const line = redactedLine(leaf, event, part);
    const revealed = revealedIn(part, audience, words);
    return revealed === undefined ? line : { ...line, revealed };
  };
};

/**
 * What a line shows of an event: where the leaf is of a part of it, that part. Undefined when it cannot show that one,
 * since more is kept from this reader today than when the event was stored: beside the leaf anything else would be wrong.
 * Of what only the service may read the provider is shown what `shownTo` leaves, unproven.
 */
const shownPart = (
  { record }: AuditLeaf,
  { shown, stored, data, metadata }: ShownEvent,
  audience: AuditAudience,
): StoredContent | undefined =>
  record.hidden === undefined && shown === 'redacted' && audience === 'provider'
    ? { data, metadata }
    : stored;

const revealedIn = (
  event: { readonly data: JsonObject; readonly metadata: JsonObject },
  audience: AuditAudience,
  { open }: AuditWords,
): { readonly [path: string]: string } | undefined => {
  if (encryptedIn(event.data).length === 0 && encryptedIn(event.metadata).length === 0) return undefined;
  const all = revealedTexts(event, (values) => open(values));
  if (all === undefined || revealsActor(event.metadata, audience)) return all;
  const ofData = Object.entries(all).filter(([path]) => path.startsWith('/data/'));
  return ofData.length === 0 ? undefined : Object.fromEntries(ofData);
};

/** What is asked for in `filter`: `subject`, `kind`, `resource_id`, `types`, `outcome`. Of events as lists find them. */
const matcher = (filter: JsonObject, audience: AuditAudience): ((leaf: AuditLeaf) => boolean) => {
  const wanted = (name: string, value: string): boolean => ['', value].includes(stringAt(filter, name));
  const types = Array.isArray(filter['types']) ? filter['types'] : undefined;
  const isAbout = ({ kind, resourceId }: { readonly kind: string; readonly resourceId: string }): boolean =>
    wanted('kind', kind) && wanted('resource_id', resourceId);
  return (leaf) =>
    wanted('subject', leaf.subject) &&
    wanted('outcome', leaf.outcome) &&
    (types === undefined || types.includes(leaf.record.type)) &&
    [leaf, ...(leaf.also ?? []).filter(({ hidden }) => audience === 'provider' || !hidden)].some(isAbout);
};
