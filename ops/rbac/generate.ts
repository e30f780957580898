import { readFileSync, writeFileSync } from 'node:fs';
import { Document, isScalar, visit } from 'yaml';
import { HUB_OBJECTS } from '../../src/domain/hub-objects.ts';
import {
  OSAC_GROUP,
  type HubObject,
  type NeededRight,
  type RightsSetup,
} from '../../src/domain/hubs/hub-object.ts';
import { LEASE } from '../../src/domain/hubs/hub-objects.ts';

/**
 * Writes the files of this folder from the declared kinds (src/domain/hub-objects.ts): `node ops/rbac/generate.ts`. A test
 * compares them. In all of them `osac-hub` stands for the hub's namespace.
 */
const NS = 'osac-hub';
const RBAC = 'rbac.authorization.k8s.io';
const ACCOUNT = 'hub-access';

type Rule = {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
};

/** What OSAC's installer grants its own service in the hub's namespace: we ask for nothing besides. */
const STOCK_KINDS = [
  'baremetalinstances',
  'clusterorders',
  'computeinstances',
  'externalipattachments',
  'externalippools',
  'externalips',
  'natgateways',
  'securitygroups',
  'subnets',
  'tenants',
  'virtualnetworks',
  'volumes',
];
const STOCK_RULES: readonly Rule[] = [
  {
    apiGroups: [OSAC_GROUP],
    resources: STOCK_KINDS,
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  },
  {
    apiGroups: [OSAC_GROUP],
    resources: STOCK_KINDS.map((kind) => `${kind}/status`),
    verbs: ['get', 'patch', 'update'],
  },
  {
    apiGroups: ['console.osac.openshift.io'],
    resources: ['computeinstances/console', 'computeinstances/vnc'],
    verbs: ['get'],
  },
  { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
];
/** And in every namespace. */
const STOCK_EVERYWHERE: readonly Rule[] = [
  { apiGroups: ['hypershift.openshift.io'], resources: ['hostedclusters'], verbs: ['get'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  {
    apiGroups: [''],
    resources: ['namespaces'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  },
  { apiGroups: [OSAC_GROUP], resources: ['subnets', 'networkclasses'], verbs: ['get', 'list', 'watch'] },
];

/** What a setup needs of the declared kinds that the stock rights do not hold, one rule for each of them. */
const rulesOf = (
  setup: RightsSetup,
  objects: readonly HubObject[],
  stock: readonly Rule[],
): readonly Rule[] =>
  objects.flatMap((kind) => {
    const needed = kind.rights.filter((right) => right.setup === setup).map((right) => ruleOf(kind, right));
    return merged(needed).filter((rule) => !stock.some((granted) => grants(granted, rule)));
  });

const ruleOf = ({ group, plural }: HubObject, { verbs, part, names }: NeededRight): Rule => ({
  apiGroups: [group],
  resources: [part === undefined ? plural : `${plural}/${part}`],
  ...(names === undefined ? {} : { resourceNames: names.map((name) => name.replace(/^NS/, NS)) }),
  verbs: verbs.toSorted(),
});

/** Rules about the same thing in one. */
const merged = (rules: readonly Rule[]): readonly Rule[] => {
  const of = ({ verbs: _verbs, ...what }: Rule): string => JSON.stringify(what);
  return [...Map.groupBy(rules, of).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    return [{ ...first, verbs: [...new Set(same.flatMap(({ verbs }) => verbs))].toSorted() }];
  });
};

export const grants = (granted: Rule, wanted: Rule): boolean =>
  wanted.apiGroups.every((group) => granted.apiGroups.includes(group)) &&
  wanted.resources.every((resource) => granted.resources.includes(resource)) &&
  wanted.verbs.every((verb) => granted.verbs.includes(verb)) &&
  (granted.resourceNames === undefined ||
    (wanted.resourceNames ?? ['']).every((name) => granted.resourceNames?.includes(name) === true));

const role = (kind: 'Role' | 'ClusterRole', name: string, rules: readonly Rule[]): object => ({
  apiVersion: `${RBAC}/v1`,
  kind,
  metadata: { name, ...(kind === 'Role' ? { namespace: NS } : {}) },
  rules,
});
const binding = (kind: 'RoleBinding' | 'ClusterRoleBinding', name: string, to: object): object => ({
  apiVersion: `${RBAC}/v1`,
  kind,
  metadata: { name, ...(kind === 'RoleBinding' ? { namespace: NS } : {}) },
  roleRef: { apiGroup: RBAC, ...to },
  subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: NS }],
});
const clusterWide = (name: string, rules: readonly Rule[]): readonly object[] => [
  role('ClusterRole', name, rules),
  binding('ClusterRoleBinding', name, { kind: 'ClusterRole', name }),
];

/** Objects of each file. */
export const rbacObjects = (
  objects: readonly HubObject[] = HUB_OBJECTS,
): { readonly [Setup in RightsSetup]: readonly object[] } => {
  const stock = [...STOCK_RULES, ...STOCK_EVERYWHERE];
  const more = (setup: RightsSetup): readonly Rule[] => rulesOf(setup, objects, stock);
  const mark = LEASE.rights.map((right) => ruleOf(LEASE, right));
  const missing = rulesOf('hub-access', objects, [...stock, ...mark]);
  // OSAC's operator gives the role of this name to each cluster's namespace, so it must hold what the stock role does.
  const everywhere = [...STOCK_EVERYWHERE, ...missing];
  return {
    'hub-access': [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace: NS } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: ACCOUNT,
          namespace: NS,
          annotations: { 'kubernetes.io/service-account.name': ACCOUNT },
        },
        type: 'kubernetes.io/service-account-token',
      },
      role('ClusterRole', `${NS}-hub-access`, STOCK_RULES),
      binding('RoleBinding', `${NS}-hub-access`, { kind: 'ClusterRole', name: `${NS}-hub-access` }),
      role('Role', `${NS}-mark`, mark),
      binding('RoleBinding', `${NS}-mark`, { kind: 'Role', name: `${NS}-mark` }),
      ...clusterWide(`${NS}-hub-access-hosted-clusters`, everywhere),
    ],
    'node-counts': clusterWide(`${NS}-node-counts`, more('node-counts')),
    'controller-ledger': clusterWide(`${NS}-controller-ledger`, more('controller-ledger')),
    'tenant-namespaces': [
      binding('ClusterRoleBinding', `${NS}-hub-access-tenants`, {
        kind: 'ClusterRole',
        name: `${NS}-hub-access`,
      }),
    ],
  };
};

/** The remarks at the top of each file stay; what follows them is generated. */
export const rbacFile = (setup: RightsSetup): URL => new URL(`./${setup}.yaml`, import.meta.url);
const remarksOf = (text: string): string => /^(?:#.*\n)*/.exec(text)?.[0] ?? '';

export const rbacText = (setup: RightsSetup, before: string): string =>
  remarksOf(before) + rbacObjects()[setup].map(yamlOf).join('---\n');

/** More names than this in a list are easier to read below each other. */
const SHORT_LIST = 7;

const yamlOf = (object: object): string => {
  const document = new Document(object);
  visit(document, {
    Seq: (_key, list) => {
      list.flow = list.items.length <= SHORT_LIST && list.items.every(isScalar);
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
};

export const SETUPS: readonly RightsSetup[] = [
  'hub-access',
  'node-counts',
  'controller-ledger',
  'tenant-namespaces',
];

if (import.meta.main)
  for (const setup of SETUPS)
    writeFileSync(rbacFile(setup), rbacText(setup, readFileSync(rbacFile(setup), 'utf8')));
