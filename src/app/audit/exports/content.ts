import type { ExportRequest } from '../../../domain/audit/events.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { encryptedIn } from '../../../domain/personal.ts';
import type { EventStore, RecordedEvent } from '../../event-store.ts';
import type { BundleLine, BundleScope } from '../bundle/format.ts';
import { fullLine, redactedLine, revealedTexts, withheldLine } from '../bundle/lines.ts';
import { ocsfOf } from '../bundle/ocsf.ts';
import type { AuditKeys } from '../audit-keys.ts';
import { BundleInconsistent, type BundleContent } from '../bundle/writer.ts';
import { eventsOf } from '../event-source.ts';
import { fromBase64 } from '../merkle/base64.ts';
import { leafHashOf, leafOf } from '../merkle/leaf.ts';
import { parseCheckpoint } from '../merkle/checkpoint.ts';
import { signNote, splitNote } from '../merkle/note.ts';
import type { TenantStanding } from '../merkle/tenants.ts';
import type { AuditProofs, TenantProof } from '../proofs.ts';
import {
  revealsActor,
  shownTo,
  type AuditAudience,
  type AuditWords,
  type ShownEvent,
  type StoredContent,
} from '../shown.ts';
import type { TreeHead } from '../tree-heads.ts';
import type { AuditLeaf, AuditTree, TenantTree } from '../tree.ts';

/** What an export is made from. */
export type ExportSource = {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly tree: AuditTree & {
    /** Number of leaves whose running maximum of recorded time is not later. */
    sizeAtTime(time: string): number;
  };
  readonly proofs: Pick<AuditProofs, 'tenantProof' | 'trust' | 'standings'>;
  readonly words: AuditWords;
  /** JSON Schemas of the event types, by type; made in steps. */
  readonly schemas: () => Promise<{ readonly [type: string]: JsonObject }>;
  readonly productVersion: string;
  /** The key that signs what is exported. */
  readonly keys: Pick<AuditKeys, 'current'>;
};

/** There is nothing that could be exported; the message says why. */
export class NothingToExport extends Error {
  override readonly name = 'NothingToExport';
}

/** How an export goes on: `line` lets others have the thread, counts, and throws when the export was called off. */
export type Steps = { readonly line: () => Promise<void>; readonly signal: AbortSignal };

/** Everything of one export as of a signed head. Throws NothingToExport. */
export const contentOf = async (
  request: ExportRequest,
  { head, pins, at }: { readonly head: TreeHead; readonly pins: readonly number[]; readonly at: string },
  source: ExportSource,
  { line, signal }: Steps,
): Promise<BundleContent> => {
  const { tree, proofs } = source;
  const scope: BundleScope =
    request.tenant === undefined ? { kind: 'log' } : { kind: 'tenant', tenant: request.tenant };
  const tenant = scope.kind === 'tenant' ? await proofs.tenantProof(scope.tenant, head) : undefined;
  if (scope.kind === 'tenant' && tenant === undefined)
    throw new NothingToExport('there was no event of this tenant when the tree was signed');
  const range = rangeOf(request, scope, head, tree);
  const lineOf = lines(request, source.words);
  const ofTenant = scope.kind === 'tenant' ? tree.tenantTree(scope.tenant) : undefined;
  const each = (): AsyncGenerator<Found> => found(ofTenant ?? tree, range, source, { line, signal });
  const all = [...pins, ...(request.pins ?? [])];
  const atPins =
    tenant === undefined
      ? undefined
      : await standingsAt(pinsToShow(all, request.pins, tenant.count), request, source, signal);
  return {
    scope,
    range,
    checkpoint: parseCheckpoint(splitNote(head.note).text),
    note: head.note,
    trust: { ...(await proofs.trust(signal)), pin: head.note },
    hashAt: tree.hashAt,
    ...(ofTenant === undefined || tenant === undefined
      ? {}
      : { tenant: { ...placeOf(ofTenant, tenant), ...(atPins && { atPins }) } }),
    pins: all,
    lines: mapped(each(), ({ leaf, event }) => lineOf(leaf, event)),
    schemas: await source.schemas(),
    ...(request.format === 'ocsf'
      ? { more: [{ name: 'ocsf.ndjson', lines: ocsfLines(each(), lineOf, source.productVersion) }] }
      : {}),
    filter: filterOf(request),
    asOf: { position: head.position, time: head.at },
    createdAt: at,
    sign: signWith(source.keys, head),
  };
};

/** Looks at tenants for the pins of one export: some seconds, in steps. */
const MOST_LOOKS = 200_000;

/** Those that were asked for, and of the others as many as are cheap, the newest first. */
const pinsToShow = (
  all: readonly number[],
  asked: readonly number[] | undefined,
  tenants: number,
): readonly number[] => {
  const most = Math.floor(MOST_LOOKS / Math.max(1, tenants));
  const newest = [...new Set(all)].toSorted((left, right) => right - left).slice(0, most);
  return [...newest, ...(asked ?? [])];
};

/**
 * How the tenant stood at pins. That it had no events yet is shown by the trees of two others, with the hashes of their
 * names and their sizes: for the provider only.
 */
const standingsAt = async (
  sizes: readonly number[],
  { tenant = '', audience }: ExportRequest,
  { proofs }: Pick<ExportSource, 'proofs'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<number, TenantStanding>> => {
  const standings = await proofs.standings(tenant, sizes, signal);
  const mayShow = (standing: TenantStanding): boolean => audience === 'provider' || 'there' in standing;
  return new Map([...standings].filter(([, standing]) => mayShow(standing)));
};

const placeOf = (
  { hashAt }: TenantTree,
  { tree: { size }, tenant, index, count, path, head }: TenantProof,
): NonNullable<BundleContent['tenant']> => ({
  hashAt,
  size,
  tenants: {
    count,
    root: fromBase64(head.tenantsRoot) ?? Buffer.alloc(0),
    proofOf: (asked) => (asked === tenant ? { index, path } : undefined),
  },
});

type Found = { readonly leaf: AuditLeaf; readonly event: RecordedEvent };

/** Leaves that are read in one go, with their events. */
const PAGE = 32;

/** Leaves of a range with their events. Throws BundleInconsistent when the log does not hold one. */
async function* found(
  tree: Pick<AuditTree, 'leaves'>,
  { from, to }: { readonly from: number; readonly to: number },
  { store }: Pick<ExportSource, 'store'>,
  { line, signal }: Steps,
): AsyncGenerator<Found> {
  for (let index = from; index < to; ) {
    const leaves = tree.leaves(index, Math.min(PAGE, to - index));
    if (leaves.length === 0) throw new BundleInconsistent(`the audit tree lacks leaf ${index}`);
    const events = await eventsOf(store, leaves, signal);
    for (const [i, leaf] of leaves.entries()) {
      await line();
      const event = events[i];
      const name = `${leaf.record.stream}@${leaf.record.revision}, leaf ${leaf.index} of the tree`;
      if (event?.id !== leaf.record.id) throw new BundleInconsistent(`the log does not hold ${name}`);
      // Nobody else would notice: of what is redacted or withheld the tree's own leaf is shown.
      if (!leafHashOf(leafOf(event)).equals(leafHashOf(leaf.record)))
        throw new BundleInconsistent(
          `the log has changed ${name}: its data or metadata are not those it was made of`,
        );
      yield { leaf, event };
    }
    index += leaves.length;
  }
}

async function* mapped<From, To>(items: AsyncIterable<From>, map: (item: From) => To): AsyncGenerator<To> {
  for await (const item of items) yield map(item);
}

/** Derived from what is shown, after it was proven. */
async function* ocsfLines(
  items: AsyncIterable<Found>,
  lineOf: (leaf: AuditLeaf, event: RecordedEvent) => BundleLine,
  productVersion: string,
): AsyncGenerator<string> {
  for await (const item of items) {
    const { leaf, event, revealed } = lineOf(item.leaf, item.event);
    if (leaf === null || event === null) continue;
    const { kind, resourceId } = item.leaf;
    const more = revealed === undefined ? {} : { revealed };
    yield JSON.stringify(ocsfOf({ leaf, event, kind, resourceId, productVersion, ...more }));
  }
}

const signWith =
  (keys: Pick<AuditKeys, 'current'>, head: TreeHead): BundleContent['sign'] =>
  async (text) => {
    const { origin } = parseCheckpoint(splitNote(head.note).text);
    return signNote(text, { name: origin, privateKey: (await keys.current()).privateKey });
  };

const rangeOf = (
  { from, to }: ExportRequest,
  scope: BundleScope,
  head: TreeHead,
  tree: ExportSource['tree'],
): { readonly from: number; readonly to: number } => {
  const before = (time: string): number => Math.min(head.size, tree.sizeAtTime(justBefore(time)));
  const first = from === undefined ? 0 : before(from);
  const end = Math.max(first, to === undefined ? head.size : before(to));
  if (scope.kind === 'log') return { from: first, to: end };
  const ofTenant = tree.tenantTree(scope.tenant);
  return { from: ofTenant.indexBelow(first), to: ofTenant.indexBelow(end) };
};

/** Times of the store have milliseconds. */
const justBefore = (time: string): string => new Date(Date.parse(time) - 1).toISOString();

const filterOf = ({ filter, from, to }: ExportRequest): JsonObject => ({
  ...filter,
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
});

/** A line per leaf. Of what the filter leaves out, and of what may not be seen, it holds the hash only. */
const lines = (
  request: ExportRequest,
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
 * A leaf of version 1 is of everything, and its hashes have no salt: a tenant who may not see everything gets none of it,
 * or what is left out could be found by guessing. To the provider it is shown also of what only the service may read.
 */
const shownPart = (
  { record }: AuditLeaf,
  { shown, stored, data, metadata }: ShownEvent,
  audience: AuditAudience,
): StoredContent | undefined =>
  record.v === 1 && shown === 'redacted' && audience === 'provider' ? { data, metadata } : stored;

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
