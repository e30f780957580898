import { HubError, type CallOptions } from '../../../app/management-cluster.ts';
import { IDENTITY_NAMESPACE } from '../../../domain/hubs/identity.ts';
import { objectAt } from '../../../domain/json-tools.ts';
import {
  ACCESS_REVIEWS,
  AGENTS,
  apiVersion,
  CLUSTER_ROLES,
  CLUSTER_ORDERS,
  HOSTED_CLUSTERS,
  LEASES,
  NAMESPACES,
  NODE_POOLS,
  pathOf,
  ROLE_BINDINGS,
  SECRETS,
  SERVICE_ACCOUNTS,
  type Api,
  type Kind,
} from './api.ts';
import { MARK_NAME } from './marks.ts';

/** One thing that the hub's RBAC may allow. Without a namespace: in every namespace. */
export type Right = {
  readonly kind: Pick<Kind, 'group' | 'plural'>;
  readonly verb: string;
  readonly namespace?: string;
  readonly part?: 'status';
  /** Only of this object. */
  readonly name?: string;
};

const rights = (
  kind: Kind,
  verbs: readonly string[],
  more: { namespace?: string; part?: 'status'; name?: string } = {},
): readonly Right[] => verbs.map((verb) => ({ kind, verb, ...more }));

/** Where orders are: in these namespaces, or in any. */
export type OrderNamespaces = readonly string[] | 'any';

const within = (namespaces: OrderNamespaces): readonly { readonly namespace?: string }[] =>
  namespaces === 'any' ? [{}] : namespaces.map((namespace) => ({ namespace }));

/** Of management-cluster.md §5 what orders need, and nothing besides. */
export const orderRights = (namespaces: readonly string[]): readonly Right[] => [
  ...within(namespaces).flatMap((at) =>
    rights(CLUSTER_ORDERS, ['create', 'delete', 'get', 'list', 'patch', 'watch'], at),
  ),
  ...rights(HOSTED_CLUSTERS, ['get']),
  ...rights(SECRETS, ['get']),
];

/** The mark of the deployment that drives the hub (marks.ts). RBAC cannot grant a creation by name. */
export const markRights = (namespace: string): readonly Right[] => [
  ...rights(LEASES, ['create'], { namespace }),
  ...rights(LEASES, ['get', 'update'], { namespace, name: MARK_NAME }),
];

/** `tenant_namespaces`: orders may be anywhere, and their namespaces are made (ops/rbac/tenant-namespaces.yaml). */
export const tenantNamespaceRights = (): readonly Right[] => [
  ...rights(CLUSTER_ORDERS, ['create', 'delete', 'get', 'list', 'patch', 'watch']),
  ...rights(NAMESPACES, ['create', 'get']),
];

/** What the account `hub-access` of the hub's namespace is granted in each cluster's (§1.1). */
export const hubAccessRole = (namespace: string): string => `${namespace}-hub-access-hosted-clusters`;

/**
 * `controller: ledger` (ops/rbac/controller-ledger.yaml). The status of an order is written where the order is; what
 * belongs to its cluster is in a namespace of the cluster's own.
 */
export const controllerRights = (hubNamespace: string, orders: OrderNamespaces): readonly Right[] => [
  ...within(orders).flatMap((at) => rights(CLUSTER_ORDERS, ['get', 'patch'], { ...at, part: 'status' })),
  ...rights(NAMESPACES, ['create', 'delete', 'get', 'list']),
  ...rights(SERVICE_ACCOUNTS, ['create', 'get']),
  ...rights(ROLE_BINDINGS, ['create', 'get']),
  // Nobody may grant what he does not hold, but for roles that he may bind: refused only when the binding is made.
  ...['admin', hubAccessRole(hubNamespace)].flatMap((name) => rights(CLUSTER_ROLES, ['bind'], { name })),
  ...rights(NODE_POOLS, ['list']),
];

export const READ_NODE_POOLS: Right = { kind: NODE_POOLS, verb: 'list' };
export const READ_AGENTS: Right = { kind: AGENTS, verb: 'list' };
export const READ_IDENTITY: Right = { kind: NAMESPACES, verb: 'get', name: IDENTITY_NAMESPACE };

export const sayRight = ({ kind, verb, namespace, part, name }: Right): string => {
  const what = `${verb} ${kind.plural}${part === undefined ? '' : `/${part}`}${kind.group === '' ? '' : `.${kind.group}`}`;
  const where = namespace === undefined ? 'in every namespace' : `in namespace ${namespace}`;
  if (name === undefined) return `${what} ${where}`;
  return namespace === undefined ? `${what} ${name}` : `${what} ${name} ${where}`;
};

/** Milliseconds after which an answer is asked for again. */
const REMEMBER_MS = 600_000;

export type Rights = {
  /** Asked anew each time (a SelfSubjectAccessReview, which everybody may make). Throws HubError. */
  ask(right: Right, by: CallOptions): Promise<boolean>;
  /** As `ask`, remembered for ten minutes: what is not allowed is not tried on each read. */
  has(right: Right, by: CallOptions): Promise<boolean>;
};

export const createRights = (api: Api, monotonicMs: () => number): Rights => {
  const known = new Map<string, { readonly allowed: boolean; readonly at: number }>();

  const ask: Rights['ask'] = async (right, by) => {
    const { kind, verb, namespace, part, name } = right;
    const review = await api.ask(
      {
        what: `review of the right to ${verb} ${kind.plural}`,
        method: 'POST',
        path: pathOf(ACCESS_REVIEWS),
        reads: true,
        body: {
          apiVersion: apiVersion(ACCESS_REVIEWS),
          kind: 'SelfSubjectAccessReview',
          spec: {
            resourceAttributes: {
              group: kind.group,
              resource: kind.plural,
              verb,
              ...(namespace === undefined ? {} : { namespace }),
              ...(part === undefined ? {} : { subresource: part }),
              ...(name === undefined ? {} : { name }),
            },
          },
        },
      },
      by,
    );
    const allowed = objectAt(review, 'status')['allowed'] === true;
    known.set(sayRight(right), { allowed, at: monotonicMs() });
    return allowed;
  };

  return {
    ask,
    has: async (right, by) => {
      const before = known.get(sayRight(right));
      if (before !== undefined && monotonicMs() - before.at < REMEMBER_MS) return before.allowed;
      try {
        return await ask(right, by);
      } catch (error) {
        // A hub that lets nobody ask: then what is not certain is not tried.
        if (!(error instanceof HubError) || error.facts['status'] !== 403) throw error;
        known.set(sayRight(right), { allowed: false, at: monotonicMs() });
        return false;
      }
    },
  };
};
