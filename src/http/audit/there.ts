import type { AuditServices } from './services.ts';

/** Histories that are looked at. */
type Looked = { readonly tenants: 'all' | readonly string[] };

/**
 * Whether the histories that are looked at have an event. What others have is as absent as what never was: what is
 * recorded of a look must not tell what its answer does not. Both take the same one statement.
 */
export const isThere = (
  stream: string,
  revision: number,
  { tenants }: Looked,
  { reader }: Pick<AuditServices, 'reader'>,
): boolean => {
  const tenant = reader.tenantAt(stream, revision);
  return tenant !== undefined && (tenants === 'all' || tenants.includes(tenant));
};
