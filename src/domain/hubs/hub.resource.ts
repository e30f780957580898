import { reject, type Rejection } from '../decider.ts';
import {
  documentDecider,
  documentView,
  type DocumentCommand,
  type DocumentFacts,
  type DocumentState,
} from '../catalog/document.ts';
import type { HubEvent } from '../catalog/events.ts';
import { MAX_INT32 } from '../catalog/limits.ts';
import type { JsonObject } from '../json.ts';
import { base32, fnv1a64 } from '../hash.ts';
import { listAt, numberAt, objectAt, own, stringAt, textOf, textsAt } from '../json-tools.ts';
import { nameFromId } from '../catalog/derived-names.ts';
import type { ResourceKind } from '../resource.ts';

/** Management clusters (osac-api.md §11 Hubs) with the additive fields of design §6. */
const SECRETS = [
  { path: 'spec.kubeconfig', kind: 'kubeconfig', reads: 'absent', encoding: 'base64' },
] as const;

export type HubMode = 'operator' | 'eda' | 'aap';
export type HubController = 'operator' | 'ledger';
export type HubScheduling = 'open' | 'cordoned' | 'draining';
export type StepRule = 'ledger' | 'hub' | 'none';

/** Steps that either our aggregates and adapters do, or the hub's operator and Ansible content (design §6). */
export const DELEGATED_STEPS = [
  'agents',
  'l2',
  'l3',
  'floating-ip',
  'storage',
  'dns',
  'install',
  'post-install',
  'validation',
] as const;
export type DelegatedStep = (typeof DELEGATED_STEPS)[number];

const MODES: readonly string[] = ['operator', 'eda', 'aap'];
const CONTROLLERS: readonly string[] = ['operator', 'ledger'];
const RULES: readonly string[] = ['ledger', 'hub', 'none'];
const SIMULATED_ID = /^sim-/;
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export const hubDecider = documentDecider({
  words: 'hub',
  events: {
    created: 'HubRegistered',
    revised: 'HubRevised',
    deletionRequested: 'HubDeregistrationRequested',
    retired: 'HubDeregistered',
  },
  immutable: [],
  // What a caller sends as status is not kept: the view derives it.
  normalize: ({ status: _sent, ...document }) => document,
  check: (document) => specRejection(objectAt(document, 'spec')),
});

export const hub: ResourceKind<DocumentState, DocumentCommand, HubEvent> = {
  kind: 'hub',
  collection: 'hubs',
  words: 'hub',
  message: 'Hub',
  service: 'Hubs',
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  ids: 'client-may-choose',
  nameScope: 'project',
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  event: { field: 'hub', public: false },
  defaultTenant: 'shared',
  privateOnly: [],
  secrets: SECRETS,
  immutable: [],
  references: [],
  pointsAt: () => [],
  protectedWhileReferenced: true,
  decider: hubDecider,
  stateVersion: 1,
  view: (state) => documentView(state, SECRETS, renderHub),
};

/** A hub as the scheduler and the workflow need it. */
export type HubFacts = {
  readonly id: string;
  readonly namespace: string;
  readonly mode: HubMode;
  readonly controller: HubController;
  readonly simulated: boolean;
  readonly zone: string;
  /** Ids of offered templates; empty: all. */
  readonly templates: readonly string[];
  /** Namespaces of single tenants, by tenant. */
  readonly namespaces: { readonly [tenant: string]: string };
  /** Each tenant's orders are in a namespace of its own, made when first needed. */
  readonly tenantNamespaces: boolean;
  /** `cordoned`: nothing new is placed here; `draining`: what has not been sent yet goes elsewhere, too. */
  readonly scheduling: HubScheduling;
  /** Addresses of the hub's automation by mode. */
  readonly endpoints: { readonly [mode: string]: string };
  readonly automation: { readonly templatePrefix: string; readonly ca?: string };
  /** Absent: the defaults. */
  readonly pacing?: { readonly callsPerSecond: number; readonly burst: number };
  /** Resolved: every delegated step has its rule. */
  readonly steps: { readonly [Step in DelegatedStep]: StepRule };
};

/** Undefined when the hub is absent; a hub being deleted is still a fact, the scheduler filters it out. */
export const hubFacts = (facts: Pick<DocumentFacts, 'id' | 'document'>): HubFacts => {
  const spec = objectAt(facts.document, 'spec');
  const simulated = isSimulatedHub(facts.id);
  const steps = objectAt(spec, 'steps');
  const automation = objectAt(spec, 'automation');
  const pacing = objectAt(spec, 'pacing');
  const calls = numberAt(pacing, 'calls_per_second');
  const fallback: StepRule = simulated ? 'ledger' : 'hub';
  return {
    id: facts.id,
    namespace: stringAt(spec, 'namespace'),
    mode: (stringAt(spec, 'mode') || 'operator') as HubMode,
    controller: (stringAt(spec, 'controller') || 'operator') as HubController,
    simulated,
    zone: stringAt(spec, 'zone'),
    templates: listAt(spec, 'templates').map(textOf),
    namespaces: textsAt(spec, 'namespaces'),
    tenantNamespaces: spec['tenant_namespaces'] === true,
    scheduling: (stringAt(spec, 'scheduling') || 'open') as HubScheduling,
    endpoints: textsAt(spec, 'endpoints'),
    automation: {
      templatePrefix: stringAt(automation, 'template_prefix') || 'osac',
      ...(stringAt(automation, 'ca') === '' ? {} : { ca: stringAt(automation, 'ca') }),
    },
    ...(calls === 0 ? {} : { pacing: { callsPerSecond: calls, burst: numberAt(pacing, 'burst') || 1 } }),
    steps: Object.fromEntries(
      DELEGATED_STEPS.map((step) => [step, (stringAt(steps, step) || fallback) as StepRule]),
    ) as HubFacts['steps'],
  };
};

/** Where orders of this tenant are created on the hub. */
export const namespaceOf = (hub: HubFacts, tenantName: string): string =>
  own(hub.namespaces, tenantName) ??
  (hub.tenantNamespaces ? tenantNamespace(hub.namespace, tenantName) : hub.namespace);

/** Longest name that leaves room for the control plane's namespace (management-cluster.md §10.1). */
const MAX_TENANT_NAMESPACE = 23;

/**
 * A tenant's own namespace: its name where that is short enough to be one, otherwise its beginning and a hash. The hub's
 * namespace goes into the hash, so that two services may share a management cluster.
 */
export const tenantNamespace = (hubNamespace: string, tenant: string): string => {
  if (NAMESPACE.test(tenant) && tenant.length <= MAX_TENANT_NAMESPACE && tenant !== hubNamespace)
    return tenant;
  const digits = base32(fnv1a64(`${hubNamespace}\n${tenant}`));
  const head = tenant
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_TENANT_NAMESPACE - digits.length - 1)
    .replaceAll(/^-+|-+$/g, '');
  return head === '' ? `t-${digits}` : `${head}-${digits}`;
};

/** A hub whose id begins with `sim-` is simulated (design §6). */
export const isSimulatedHub = (id: string): boolean => SIMULATED_ID.test(id);

/** Condition `NoAdapter`: the hub is accepted, but nothing in this release can reach it. */
const renderHub = (document: JsonObject, facts: DocumentFacts): JsonObject => {
  const simulated = isSimulatedHub(facts.id);
  const condition = {
    type: 'NoAdapter',
    status: 'CONDITION_STATUS_TRUE',
    last_transition_time: facts.createdAt,
    reason: 'NoAdapter',
    message: 'no adapter of this release reaches this hub; orders are not placed on it',
  };
  const status = simulated ? { adapter: 'simulated' } : { adapter: 'none', conditions: [condition] };
  return { ...document, status };
};

const specRejection = (spec: JsonObject): Rejection | undefined => {
  const say = (field: string, message: string): Rejection =>
    reject('invalid', 'INVALID_HUB', message, { field });
  const namespaces: [string, string][] = [
    ['spec.namespace', stringAt(spec, 'namespace')],
    ...Object.entries(objectAt(spec, 'namespaces')).map(([tenant, namespace]): [string, string] => [
      `spec.namespaces.${tenant}`,
      textOf(namespace),
    ]),
  ];
  for (const [field, namespace] of namespaces) {
    if (namespace !== '' && !NAMESPACE.test(namespace)) {
      return say(field, `field '${field}' must be a Kubernetes namespace, but it is '${namespace}'`);
    }
  }
  const oneOf = (field: string, value: string, values: readonly string[]): Rejection | undefined =>
    value === '' || values.includes(value)
      ? undefined
      : say(field, `field '${field}' must be one of ${values.join(', ')}, but it is '${value}'`);
  return (
    oneOf('spec.mode', stringAt(spec, 'mode'), MODES) ??
    oneOf('spec.controller', stringAt(spec, 'controller'), CONTROLLERS) ??
    stepsRejection(spec, oneOf, say) ??
    capacityRejection(spec, say) ??
    // A tenant's own namespace is an exception from this one; without it most orders would have nowhere to go.
    (stringAt(spec, 'namespace') === ''
      ? say(
          'spec.namespace',
          "field 'spec.namespace' is required: orders are created in this namespace of the hub",
        )
      : undefined)
  );
};

const stepsRejection = (
  spec: JsonObject,
  oneOf: (field: string, value: string, values: readonly string[]) => Rejection | undefined,
  say: (field: string, message: string) => Rejection,
): Rejection | undefined => {
  for (const [step, rule] of Object.entries(objectAt(spec, 'steps'))) {
    const field = `spec.steps.${step}`;
    if (!DELEGATED_STEPS.some((known) => known === step)) {
      return say(field, `field 'spec.steps' has no step '${step}'; steps are ${DELEGATED_STEPS.join(', ')}`);
    }
    const wrong = oneOf(field, textOf(rule), RULES);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
};

const capacityRejection = (
  spec: JsonObject,
  say: (field: string, message: string) => Rejection,
): Rejection | undefined => {
  const capacity = objectAt(spec, 'capacity');
  const numbers: [string, unknown][] = [
    ['spec.capacity.control_planes', capacity['control_planes'] ?? 0],
    ...Object.entries(objectAt(capacity, 'nodes')).map(([type, count]): [string, unknown] => [
      `spec.capacity.nodes.${type}`,
      count,
    ]),
  ];
  const wrong = numbers.find(
    ([, count]) => !Number.isInteger(count) || Number(count) < 0 || Number(count) > MAX_INT32,
  );
  return wrong === undefined
    ? undefined
    : say(wrong[0], `field '${wrong[0]}' must be a whole number from 0 on, but it is ${String(wrong[1])}`);
};
