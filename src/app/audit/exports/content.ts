import type { ExportRequest } from '../../../domain/audit/events.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { BundleScope } from '../bundle/format.ts';
import type { AuditKeys } from '../audit-keys.ts';
import type { BundleContent, LinePage } from '../bundle/writer.ts';
import { fromBase64 } from '../merkle/base64.ts';
import { parseCheckpoint } from '../merkle/checkpoint.ts';
import { signNote, splitNote } from '../merkle/note.ts';
import type { TenantStanding } from '../merkle/tenants.ts';
import type { AuditProofs, TenantProof } from '../proofs.ts';
import type { AuditWords } from '../shown.ts';
import type { TreeHead } from '../tree-heads.ts';
import type { AuditTree, TenantTree } from '../tree.ts';
import type { LogToExport } from './events-in-order.ts';
import { exportPages, type LinesAsked } from './export-lines.ts';
import type { MakeLines } from './ports.ts';

/** What an export is made from. */
export type ExportSource = {
  readonly store: LogToExport;
  readonly tree: AuditTree & {
    /** Number of leaves whose running maximum of recorded time is not later. */
    sizeAtTime(time: string): number;
  };
  readonly proofs: Pick<AuditProofs, 'tenantProof' | 'trust' | 'standings'>;
  readonly words: AuditWords;
  /** Makes the lines elsewhere; absent: on this thread, in slices. */
  readonly makeLines?: MakeLines;
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

/**
 * How an export goes on: `line` lets others have the thread, counts (`many`: so many lines at once, default 1), and throws
 * when the export was called off.
 */
export type Steps = { readonly line: (many?: number) => Promise<void>; readonly signal: AbortSignal };

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
  const { productVersion } = source;
  const pages = (of: LinesAsked['of']): AsyncIterable<LinePage> =>
    linesOf({ of, scope, range, request: shownBy(request), productVersion }, source, { line, signal });
  const ofTenant = scope.kind === 'tenant' ? tree.tenantTree(scope.tenant) : undefined;
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
    lines: pages('events'),
    schemas: await source.schemas(),
    ...(request.format === 'ocsf' ? { more: [{ name: 'ocsf.ndjson', lines: pages('ocsf') }] } : {}),
    filter: filterOf(request),
    asOf: { position: head.position, time: head.at },
    createdAt: at,
    sign: signWith(source.keys, head),
  };
};

/** Of a request what its lines depend on. */
const shownBy = ({ filter, audience }: ExportRequest): LinesAsked['request'] => ({
  filter,
  ...(audience === undefined ? {} : { audience }),
});

/** Elsewhere where that is possible, otherwise here. */
async function* linesOf(
  asked: LinesAsked,
  { makeLines, store, tree, words }: ExportSource,
  { line, signal }: Steps,
): AsyncGenerator<LinePage> {
  const elsewhere = makeLines?.(asked, signal);
  if (elsewhere === undefined) {
    yield* exportPages(asked, { store, tree, words }, { line: () => line(), signal });
    return;
  }
  for await (const page of elsewhere) {
    await line(page.counts.events);
    yield page;
  }
}

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
