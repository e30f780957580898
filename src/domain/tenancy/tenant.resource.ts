import { documentKind } from '../catalog/document-kind.ts';
import { reject, type Rejection } from '../decider.ts';
import { RESERVED_NAMESPACE } from '../hubs/hub-facts.ts';
import type { JsonValue } from '../json.ts';
import { defined, listAt, objectAt, stringAt, textOf, withoutValueAt } from '../json-tools.ts';
import { validationFailed } from '../metadata-rules.ts';
import { PROVISION } from '../networks/default-networking.ts';

/** Tenants (OSAC): id, name and `metadata.tenant` are one and the same. */
const MAX_DOMAIN = 253;
const DNS_LABEL = /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$/;
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;
/** Tenants that exist from the first start; `system` is never visible to tenants. */
/** Its deletion was requested, and something still holds it. */
export const LEAVING_MARK = 'leaving';
export const BUILT_IN_TENANTS = ['system', 'shared'] as const;

/** Generated at creation and shown in that answer only; whoever writes one into the status replaces it unseen. */
const BREAK_GLASS = 'status.break_glass_credentials';

export const tenant = documentKind({
  kind: 'tenant',
  context: 'tenancy',
  events: {
    created: 'TenantOnboarded',
    revised: 'TenantRevised',
    deletionRequested: 'TenantOffboardingRequested',
    retired: 'TenantOffboarded',
  },
  inCatalogue: true,
  methods: {
    public: ['List', 'Get'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  ids: 'equals-name',
  nameScope: 'global',
  uniqueValues: (document) =>
    listAt(objectAt(document, 'spec'), 'domains').map((domain) => ({
      scope: 'tenant.domain',
      value: textOf(domain).toLowerCase(),
      field: 'spec.domains',
      taken: `value '${textOf(domain)}' in field 'spec.domains' is already used by another tenant`,
    })),
  defaultTenant: 'own-name',
  privateOnly: ['status'],
  unshown: [PROVISION],
  marks: (document) =>
    stringAt(objectAt(document, 'metadata'), 'deletion_timestamp') === '' ? [] : [LEAVING_MARK],
  secrets: [
    { path: `${BREAK_GLASS}.password`, kind: 'break-glass-password', reads: 'absent', encoding: 'text' },
  ],
  // What nobody is shown nobody can send back.
  normalize: (document, { previous }) => ({
    ...withoutValueAt(document, BREAK_GLASS),
    ...defined({ [PROVISION]: document[PROVISION] ?? previous?.[PROVISION] }),
  }),
  check: (document, { id, name, tenant: owner }) =>
    identityRejection(id, name, owner) ??
    namespaceRejection(name) ??
    domainsRejection(listAt(objectAt(document, 'spec'), 'domains')),
});

const identityRejection = (id: string, name: string, owner: string): Rejection | undefined =>
  id === name && owner === name
    ? undefined
    : reject(
        'invalid',
        'TENANT_IDENTITY',
        `id and 'metadata.tenant' of a tenant must equal its name '${name}' or be left out`,
        { field: id === name ? 'metadata.tenant' : 'id' },
      );

/**
 * A hub's operator takes a tenant for ready by the Namespace of its name. Of a reserved one, the tenant would have a part
 * of the hub's own, or wait for ever.
 */
const namespaceRejection = (name: string): Rejection | undefined =>
  RESERVED_NAMESPACE.test(name)
    ? validationFailed([
        {
          field: 'object.metadata.name',
          problem:
            "must not be 'default', 'kube' or 'openshift', nor begin with 'kube-' or 'openshift-': hubs keep these namespaces",
        },
      ])
    : undefined;

const domainsRejection = (domains: readonly JsonValue[]): Rejection | undefined => {
  const seen = new Set<string>();
  for (const [index, entry] of domains.entries()) {
    const domain = textOf(entry);
    const problem = seen.has(domain.toLowerCase())
      ? 'repeats another domain of the list'
      : domainProblem(domain);
    if (problem !== undefined) return validationFailed([{ field: `object.spec.domains[${index}]`, problem }]);
    seen.add(domain.toLowerCase());
  }
  return undefined;
};

const domainProblem = (domain: string): string | undefined => {
  if (domain.length === 0) return 'must be at least 1 characters';
  if (domain.length > MAX_DOMAIN) return `must be at most ${MAX_DOMAIN} characters`;
  if (IPV4.test(domain) || domain.includes(':')) return 'must be a domain name, not an IP address';
  const labels = domain.split('.');
  if (labels.length < 2) return 'must have at least two labels, for example example.com';
  return labels.every((label) => DNS_LABEL.test(label)) ? undefined : 'must consist of valid DNS labels';
};
