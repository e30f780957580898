import type { ExportRequest } from '../../../domain/audit/events.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { BundleScope } from '../bundle/format.ts';
import type { AuditKeys } from '../audit-keys.ts';
import type { BundleContent, LinePage } from '../bundle/writer.ts';
import { parseCheckpoint } from '../merkle/checkpoint.ts';
import { signNote, splitNote } from '../merkle/note.ts';
import type { AuditProofs } from '../proofs.ts';
import type { AuditWords } from '../shown-event.ts';
import type { TreeHead } from '../tree-heads.ts';
import type { AuditTree } from '../tree.ts';
import type { LogToExport } from './events-in-order.ts';
import { justBefore } from './export-head.ts';
import { exportPages, type LinesAsked } from './export-lines.ts';
import { exportProofs } from './export-proofs.ts';
import type { MakePages, PagesAsked } from './ports.ts';

/** What an export is made from. */
export type ExportSource = {
  readonly store: LogToExport;
  readonly tree: AuditTree & {
    /** Number of leaves whose running maximum of recorded time is not later. */
    sizeAtTime(time: string): number;
  };
  readonly proofs: Pick<AuditProofs, 'trust'>;
  readonly words: AuditWords;
  /** Makes lines and proofs elsewhere; absent: on this thread, in slices. */
  readonly makePages?: MakePages;
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
  const ofTenant = scope.kind === 'tenant' ? tree.tenantTree(scope.tenant) : undefined;
  if (ofTenant?.indexBelow(head.size) === 0)
    throw new NothingToExport('there was no event of this tenant when the tree was signed');
  const range = rangeOf(request, scope, head, tree);
  const { productVersion } = source;
  const { size } = head;
  const { audience } = request;
  const pages = (asked: PagesAsked): AsyncIterable<LinePage> => pagesOf(asked, source, { line, signal });
  const lines = (of: LinesAsked['of']): AsyncIterable<LinePage> =>
    pages({ of, scope, range, request: shownBy(request), productVersion });
  return {
    scope,
    range,
    checkpoint: parseCheckpoint(splitNote(head.note).text),
    note: head.note,
    trust: { ...(await proofs.trust(signal)), pin: head.note },
    hashAt: tree.hashAt,
    ...(ofTenant && { tenant: { hashAt: ofTenant.hashAt } }),
    proofs: pages({
      of: 'proofs',
      scope,
      range,
      size,
      pins: [...cheapest(pins, head), ...(request.pins ?? [])],
      ...(audience === undefined ? {} : { audience }),
    }),
    lines: lines('events'),
    schemas: await source.schemas(),
    ...(request.format === 'ocsf' ? { more: [{ name: 'ocsf.ndjson', lines: lines('ocsf') }] } : {}),
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
async function* pagesOf(
  asked: PagesAsked,
  { makePages, store, tree, words }: ExportSource,
  { line, signal }: Steps,
): AsyncGenerator<LinePage> {
  // What is derived from the events shows none that was not counted.
  const counted = (many: number): number => (asked.of === 'ocsf' ? 0 : many);
  const elsewhere = makePages?.(asked, signal);
  if (elsewhere === undefined) {
    if (asked.of === 'proofs') yield* exportProofs(asked, { tree }, { line: () => line(0) });
    else yield* exportPages(asked, { store, tree, words }, { line: () => line(counted(1)), signal });
    return;
  }
  for await (const page of elsewhere) {
    await line(counted(page.counts.events));
    yield page;
  }
}

/** Looks at tenants for the pins of one export: some seconds, on a thread of their own. */
const MOST_LOOKS = 100_000;

/** Of the pins that nobody asked for as many as are cheap where there are many tenants, the newest first. */
const cheapest = (pins: readonly number[], { tenants }: Pick<TreeHead, 'tenants'>): readonly number[] => {
  const most = Math.floor(MOST_LOOKS / Math.max(1, tenants));
  return [...new Set(pins)].toSorted((left, right) => right - left).slice(0, most);
};

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

const filterOf = ({ filter, from, to }: ExportRequest): JsonObject => ({
  ...filter,
  ...(from === undefined ? {} : { from }),
  ...(to === undefined ? {} : { to }),
});
