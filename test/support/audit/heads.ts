import type { TreeHead } from '../../../src/app/audit/tree-heads.ts';

/** A head of a tree of this size, for whoever looks at no more of it. */
export const headOf = (size: number): TreeHead => ({
  at: '2026-01-01T00:00:00.000Z',
  size,
  position: String(size),
  root: '',
  tenantsRoot: '',
  tenants: 0,
  note: '',
  keyId: '',
  revision: size,
});
