import { tenant as tenants } from '../../domain/tenancy/tenant.resource.ts';
import { ApiError, denied, invalid } from '../errors.ts';
import { meant } from '../suggestions.ts';
import type { Principal } from '../osac/principal.ts';
import { reaches, type Reach } from './access.ts';
import type { AuditServices } from './services.ts';

/** Names of tenants that a misspelt one is compared with. */
const MOST_COMPARED = 1_000;

/**
 * Refuses who may read no history at all, and tenants that are out of reach: an empty answer would read as if nothing had
 * happened. What is not there and what is not theirs is told apart for nobody but who may read everything anyway.
 * `field`: as the caller calls it, for example `query parameter 'tenant'`. Throws ApiError 403 or 400.
 */
export const assertReach = (
  asked: readonly string[],
  reach: Reach,
  { subjectId }: Pick<Principal, 'subjectId'>,
  { field, reader, resources }: { readonly field: string } & Pick<AuditServices, 'reader' | 'resources'>,
): void => {
  if (reach.tenants !== 'all') {
    const foreign = asked.find((tenant) => !reaches(reach, tenant));
    if (foreign !== undefined) throw notYours(foreign, field, subjectId);
    assertSomeReach(reach, { subjectId });
    return;
  }
  const unknown = asked.find(
    (name) =>
      reader.tenantTree(name).size() === 0 && resources.get(tenants.kind, name, { all: true }) === undefined,
  );
  if (unknown === undefined) return;
  const known = reader.tenants(0, MOST_COMPARED).map(({ tenant }) => tenant);
  throw invalid(`${field}: tenant '${cut(unknown)}' not found${meant(unknown, known)}`, 'tenant');
};

/** Throws ApiError 403 for an auditor of no tenant without a grant. */
export const assertSomeReach = (
  reach: Pick<Reach, 'tenants'>,
  { subjectId }: Pick<Principal, 'subjectId'>,
): void => {
  if (reach.tenants === 'all' || reach.tenants.length > 0) return;
  throw denied(`you may read the history of no tenant; ${howTo(subjectId, '<name>')}`);
};

const notYours = (tenant: string, field: string, subjectId: string): ApiError => {
  const message =
    `${field}: you may not read the history of a tenant '${cut(tenant)}': check its spelling; if it is another ` +
    `organisation's, ${howTo(subjectId, cut(tenant))}`;
  return new ApiError('PERMISSION_DENIED', message, {
    violations: [{ field: 'tenant', description: message }],
  });
};

const howTo = (subjectId: string, tenant: string): string =>
  `a provider admin can let you: ledgerctl audit grant ${subjectId} --tenant ${tenant} --reason <why>`;

const cut = (name: string): string => name.slice(0, 100);

/** What a caller may read, for sentences that say that something is not in it. */
export const reachText = ({ tenants: of }: Pick<Reach, 'tenants'>): string => {
  if (of === 'all') return 'in the history';
  const shown = of.slice(0, 5).map(cut).join(', ');
  return `in the history that you may read (of ${shown}${of.length > 5 ? ' and more' : ''})`;
};
