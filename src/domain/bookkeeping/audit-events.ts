import { z } from 'zod';
import type { DomainEvent } from '../decider.ts';
import { count, text } from '../schemas.ts';

/** Signed heads of the Merkle tree over the log, and the keys that signed them (design §7). They are no leaves. */
export type AuditTreeEvent =
  /** `sys-auditTree`: only the newest 10,000 stay. */
  | DomainEvent<'TreeHeadSigned', TreeHeadData>
  /** `sys-auditKeys`: all of them stay. */
  | DomainEvent<'AuditKeyAdded', AuditKeyData>;

export type TreeHeadData = {
  readonly at: string;
  /** Leaves of the tree. */
  readonly size: number;
  /** Store position of the last leaf. */
  readonly position: string;
  /** Root hash, base64. */
  readonly root: string;
  /** Root over the trees of all tenants, base64, and how many these are. */
  readonly tenantsRoot: string;
  readonly tenants: number;
  /** The checkpoint as a signed note: what auditors keep. */
  readonly note: string;
  readonly keyId: string;
};

export type AuditKeyData = {
  readonly at: string;
  readonly vkey: string;
  /** Note of the key before this one that announces it; absent for the first. */
  readonly rotation?: string;
};

/** Rows of the registry, in the form of `typesOf`. */
export const auditTreeEventTypes: readonly (readonly [type: string, shape: z.ZodRawShape])[] = [
  [
    'TreeHeadSigned',
    { size: count, position: text, root: text, tenantsRoot: text, tenants: count, note: text, keyId: text },
  ],
  ['AuditKeyAdded', { vkey: text, rotation: text.exactOptional() }],
];
