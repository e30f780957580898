import { LRUCache } from 'lru-cache';
import type { ExportRequest } from '../../../domain/audit/events.ts';
import { headProofs, pinProof, pinsBelow, type ProofParts } from '../bundle/proofs.ts';
import { proofsText } from '../bundle/format.ts';
import type { BundleProofs, BundleScope } from '../bundle/format.ts';
import { BundleInconsistent, type LinePage } from '../bundle/writer.ts';
import { extendRange, rangeHashes, type GrowingRange } from '../merkle/compact-range.ts';
import type { TenantStanding } from '../merkle/tenants.ts';
import { createTenantHeads, type Rest } from '../tenant-heads.ts';
import type { AuditTree, TenantTree } from '../tree.ts';

/** Which proofs: plain data, for it crosses a thread. */
export type ProofsAsked = {
  readonly of: 'proofs';
  readonly scope: BundleScope;
  readonly range: { readonly from: number; readonly to: number };
  /** Size of the main tree that the checkpoint signs. */
  readonly size: number;
  /** Sizes of heads that the export shows to be continued; those beyond the checkpoint are left out. */
  readonly pins: readonly number[];
  readonly audience?: ExportRequest['audience'];
};

/** `line` is called behind each piece of work of about a millisecond: it lets others have the thread, or throws. */
export type ProofSteps = { readonly line: Rest };

/** Tenants whose trees are remembered, some 10 KiB each: a tenant is looked at for each pin behind which it has events. */
const REMEMBERED_TENANTS = 1000;
/** With more new leaves than this a root is cheaper from the tiles. */
const MOST_GROWN = 256;

/** The file `proofs.json` of an export, as a page of its own. Throws BundleInconsistent when the tree lacks the tenant. */
export async function* exportProofs(
  { scope, range, size, pins, audience }: ProofsAsked,
  { tree }: { readonly tree: AuditTree },
  { line }: ProofSteps,
): AsyncGenerator<LinePage> {
  const before = pinsBelow(size, pins);
  const { tenant, standings } =
    scope.kind === 'tenant'
      ? await tenantAt(scope.tenant, { size, pins: before }, tree, line)
      : { tenant: undefined, standings: undefined };
  const parts: ProofParts = { scope, range, size, hashAt: tree.hashAt, ...(tenant && { tenant }) };
  const proofs: BundleProofs = { ...headProofs(parts), pins: [] };
  for (const pin of before) {
    const standing = standings?.get(pin);
    proofs.pins.push(pinProof(pin, parts, standing && mayShow(standing, audience) ? standing : undefined));
    await line();
  }
  const counts = { events: 0, full: 0, redacted: 0, withheld: 0 };
  yield { text: Buffer.from(proofsText(proofs), 'utf8'), hashes: new Uint8Array(), counts };
}

/** That a tenant had no events yet is shown by the trees of two others, with the hashes of their names: for the provider only. */
const mayShow = (standing: TenantStanding, audience: ProofsAsked['audience']): boolean =>
  audience === 'provider' || 'there' in standing;

/** The tenant's tree at the checkpoint, and how it stood at each pin: one way through the tree from the oldest pin on. */
const tenantAt = async (
  tenant: string,
  { size, pins }: Pick<ProofsAsked, 'size' | 'pins'>,
  tree: AuditTree,
  rest: Rest,
): Promise<{
  readonly tenant: NonNullable<ProofParts['tenant']>;
  readonly standings: ReadonlyMap<number, TenantStanding>;
}> => {
  const tenants = createTenantHeads(growingRoots(tree), rest);
  const standings = new Map<number, TenantStanding>();
  for (const at of [...pins.toSorted((left, right) => left - right), size]) {
    await tenants.advance(at);
    standings.set(at, await tenants.standingOf(tenant));
    await rest();
  }
  const now = standings.get(size);
  if (now === undefined || !('there' in now))
    throw new BundleInconsistent('the tree has no events of this tenant below the checkpoint');
  const { head, index, path } = now.there;
  return {
    tenant: { hashAt: tree.tenantTree(tenant).hashAt, size: head.size, place: { index, path } },
    standings,
  };
};

/** Roots of tenants' trees grow with the sizes that are asked for, one after the other, instead of being hashed anew. */
const growingRoots = (tree: AuditTree): AuditTree => {
  const remembered = new LRUCache<string, TenantTree>({ max: REMEMBERED_TENANTS });
  return {
    ...tree,
    tenantTree: (tenant) => {
      const known = remembered.get(tenant) ?? growing(tree.tenantTree(tenant));
      remembered.set(tenant, known);
      return known;
    },
  };
};

const growing = (tree: TenantTree): TenantTree => {
  const { hashAt } = tree;
  let range: GrowingRange | undefined;
  return {
    ...tree,
    rootAt: (size) => {
      if (range === undefined || range.size() > size || size - range.size() > MOST_GROWN)
        range = extendRange({ size, hashes: rangeHashes(size, hashAt) });
      for (let index = range.size(); index < size; index += 1) range.append(hashAt(0, index));
      return range.root();
    },
  };
};
