import type { Position } from '../log/event-store.ts';
import type { HashAt } from './merkle/hashing.ts';
import type { LeafRecord } from './merkle/leaf.ts';

/**
 * The Merkle tree of this instance as the signer and proofs read it (the read model `audit`). It only grows: what was
 * true below a size stays true. Every call is bounded and may be made on the HTTP thread.
 */
export type AuditTree = {
  /** Number of leaves. */
  size(): number;
  /** Throws RangeError for a subtree that is not complete yet. */
  readonly hashAt: HashAt;
  /** Hashes of a tile (C2SP tlog-tiles), as many of its 256 as there are; undefined when there are none. */
  tile(level: number, index: number): Uint8Array | undefined;
  /** What a leaf is made of; undefined when there is no such leaf. */
  leaf(index: number): AuditLeaf | undefined;
  /** Consecutive leaves in log order, beginning with `from`; at most `limit`, and at most 1,000. */
  leaves(from: number, limit: number): readonly AuditLeaf[];
  /** The tree of one tenant's events; empty when it has none. */
  tenantTree(tenant: string): TenantTree;
  /** Tenants in the order of their first events, behind `after` (0: from the first); at most `limit`. */
  tenants(after: number, limit: number): readonly { readonly tree: number; readonly tenant: string }[];
  /** Tenants of the leaves [from, to), each once; `to - from` is at most 1,000. */
  tenantsBetween(from: number, to: number): readonly string[];
};

export type TenantTree = {
  size(): number;
  readonly hashAt: HashAt;
  tile(level: number, index: number): Uint8Array | undefined;
  /** Leaves that the tree had when the main tree had `mainSize`: the number of the tenant's leaves below it. */
  indexBelow(mainSize: number): number;
  /** Root over the first `size` leaves; cheap for the present size. */
  rootAt(size: number): Buffer;
  /** Number in the main tree of leaf `index` of this tree; undefined when there is none. */
  mainIndexOf(index: number): number | undefined;
  /** The tenant's leaves in log order, beginning with its leaf `index`; at most `limit`, and at most 1,000. */
  leaves(index: number, limit: number): readonly AuditLeaf[];
};

/** One event in the tree: its place, what is hashed of it, and what it may be looked for by. Its data are in the log. */
export type AuditLeaf = {
  readonly index: number;
  readonly position: Position;
  /** ISO, UTC; the time of the store. */
  readonly recordedAt: string;
  /** '' stands for the service itself. */
  readonly tenant: string;
  /** Number of the leaf in its tenant's tree. */
  readonly tenantIndex: number;
  readonly subject: string;
  /** What the event is about; both '' when it is about no document. */
  readonly kind: string;
  readonly resourceId: string;
  /** Other objects that it is about, such as the cluster for which capacity was reserved; absent: none. */
  readonly also?: readonly AlsoAbout[];
  readonly outcome: 'accepted' | 'rejected' | 'denied' | 'unauthenticated';
  readonly record: LeafRecord;
};

/** An object that an event is about although its stream is another's. */
export type AlsoAbout = {
  readonly kind: string;
  readonly resourceId: string;
  /** Only the provider may find the event by it, and is shown it. */
  readonly hidden: boolean;
};
