import { rangeHashes, rootAt } from '../merkle/compact-range.ts';
import type { HashAt } from '../merkle/hashing.ts';
import { consistencyPath } from '../merkle/proofs.ts';
import type { TenantPlace, TenantStanding } from '../merkle/tenants.ts';
import type { BundleProofs, BundleScope } from './format.ts';

/** What *proofs.json* is computed from. */
export type ProofParts = {
  readonly scope: BundleScope;
  /** Sizes of the tree of the scope: [from, to) is exported. */
  readonly range: { readonly from: number; readonly to: number };
  /** Size of the main tree that the checkpoint signs, and that tree. */
  readonly size: number;
  readonly hashAt: HashAt;
  /** Tenant bundles: the tenant's tree, its size at the checkpoint, and where it stood among those of all tenants then. */
  readonly tenant?: {
    readonly hashAt: HashAt;
    readonly size: number;
    readonly place: Pick<TenantPlace, 'index' | 'path'> | undefined;
  };
};

const base64 = (hashes: readonly Buffer[]): string[] => hashes.map((hash) => hash.toString('base64'));

/** All but the pins. Throws RangeError for a range that the checkpoint does not cover, and for a tenant that it does not know. */
export const headProofs = ({
  scope,
  range,
  size,
  hashAt,
  tenant,
}: ProofParts): Omit<BundleProofs, 'pins'> => {
  const tree = tenant ?? { hashAt, size };
  if (range.from > range.to || range.to > tree.size)
    throw new RangeError(`the checkpoint covers ${tree.size} events, not [${range.from}, ${range.to})`);
  const place = tenant?.place;
  if (scope.kind === 'tenant' && place === undefined)
    throw new RangeError('the checkpoint knows no tree of this tenant: there is nothing to export yet');
  return {
    v: 1,
    scope,
    from: { size: range.from, hashes: base64(rangeHashes(range.from, tree.hashAt)) },
    to: { size: range.to },
    tree: { size: tree.size, path: base64(consistencyPath(range.to, tree.size, tree.hashAt)) },
    ...(place === undefined
      ? {}
      : {
          tenant: {
            root: rootAt(tree.size, tree.hashAt).toString('base64'),
            index: place.index,
            path: base64(place.path),
          },
        }),
  };
};

/** Those pins that the checkpoint can be shown to continue, each once, in the order in which they came. */
export const pinsBelow = (size: number, pins: Iterable<number>): number[] =>
  [...new Set(pins)].filter((pin) => Number.isSafeInteger(pin) && pin > 0 && pin < size);

/**
 * That the checkpoint continues a pin, and the tenant's tree the one that it had there; `standing`: how the tenant stood
 * at the pin; absent: the bundle shows nothing of it. Some tiles are read: about a millisecond.
 */
export const pinProof = (
  pin: number,
  { size, hashAt, tenant }: ProofParts,
  standing?: TenantStanding,
): BundleProofs['pins'][number] => ({
  size: pin,
  path: base64(consistencyPath(pin, size, hashAt)),
  ...(tenant === undefined || standing === undefined ? {} : standingAtPin(standing, tenant)),
});

const standingAtPin = (
  standing: TenantStanding,
  { hashAt, size }: NonNullable<ProofParts['tenant']>,
): Pick<BundleProofs['pins'][number], 'tenant' | 'between'> => {
  if ('between' in standing)
    return {
      between: standing.between.map((place) => ({
        key: place.head.key.toString('base64'),
        ...placeFields(place),
      })),
    };
  const consistency = base64(consistencyPath(standing.there.head.size, size, hashAt));
  return { tenant: { ...placeFields(standing.there), consistency } };
};

const placeFields = ({ head, index, path }: TenantPlace) => ({
  size: head.size,
  root: head.root.toString('base64'),
  index,
  path: base64(path),
});
