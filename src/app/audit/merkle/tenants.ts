import { emptyRoot, leafHash, sha256, type HashAt } from './hashing.ts';
import { inclusionPath, verifyInclusion } from './proofs.ts';

/**
 * The tree over the trees of all tenants, which makes exports of one tenant complete: a checkpoint signs its root,
 * and with it the size and root of every tenant's own tree. Tenants appear by the hash of their name only.
 */
export type TenantHead = {
  /** SHA-256 of the tenant's name in UTF-8; see `tenantKey`. */
  readonly key: Buffer;
  readonly size: number;
  /** RFC 6962 root over the leaf hashes of this tenant's events, in log order. */
  readonly root: Buffer;
};

/** `''` stands for the service itself. */
export const tenantKey = (tenant: string): Buffer => sha256(Buffer.from(tenant, 'utf8'));

/** Leaf of a tenant: hash over key, size (unsigned, 64 bits, big endian) and root. */
export const tenantLeafHash = ({ key, size, root }: TenantHead): Buffer => {
  const encoded = Buffer.alloc(8);
  encoded.writeBigUInt64BE(BigInt(size));
  return leafHash(Buffer.concat([key, encoded, root]));
};

/** A tenant's tree, and where it stands among those of all tenants. */
export type TenantPlace = {
  readonly head: TenantHead;
  readonly index: number;
  readonly path: readonly Buffer[];
};

/** Which tree a tenant had; or, for one that had none, the trees between which it would stand (at most two). */
export type TenantStanding = { readonly there: TenantPlace } | { readonly between: readonly TenantPlace[] };

/** `count` trees, sorted by key, and the tree over them. */
export type SortedHeads = {
  readonly count: number;
  readonly headAt: (index: number) => TenantHead;
  readonly hashAt: HashAt;
};

export const standingOf = (tenant: string, { count, headAt, hashAt }: SortedHeads): TenantStanding => {
  const key = tenantKey(tenant);
  const placeAt = (index: number): TenantPlace => ({
    head: headAt(index),
    index,
    path: inclusionPath(index, count, hashAt),
  });
  let [low, high] = [0, count];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (headAt(middle).key.compare(key) < 0) low = middle + 1;
    else high = middle;
  }
  if (low < count && headAt(low).key.equals(key)) return { there: placeAt(low) };
  return { between: [low - 1, low].filter((index) => index >= 0 && index < count).map(placeAt) };
};

/** Whether a root over `count` trees holds this one. */
export const verifyPlace = (
  { head, index, path }: TenantPlace,
  { count, root }: { readonly count: number; readonly root: Buffer },
): boolean => verifyInclusion({ index, size: count, leafHash: tenantLeafHash(head), path, root });

/** Whether a root over `count` trees has none of this tenant: both neighbours are there, next to each other. */
export const verifyAbsence = (
  tenant: string,
  between: readonly TenantPlace[],
  tenants: { readonly count: number; readonly root: Buffer },
): boolean => {
  const key = tenantKey(tenant);
  if (!between.every((place) => verifyPlace(place, tenants))) return false;
  const before = between.filter(({ head }) => head.key.compare(key) < 0);
  const behind = between.filter(({ head }) => head.key.compare(key) > 0);
  if (before.length > 1 || behind.length > 1 || before.length + behind.length !== between.length)
    return false;
  const [left, right] = [before[0]?.index ?? -1, behind[0]?.index ?? tenants.count];
  return right === left + 1 && (tenants.count > 0 || tenants.root.equals(emptyRoot()));
};
