import type { DocumentFacts } from '../catalog/document.ts';
import { base32, fnv1a64 } from '../hash.ts';
import type { JsonObject } from '../json.ts';
import { listAt, numberAt, objectAt, own, stringAt, textOf, textsAt } from '../json-tools.ts';
import { AUTOMATED_MODES } from './former-modes.ts';

export type HubMode = 'operator' | 'eda' | 'aap';
export type HubController = 'operator' | 'ledger';
export type HubScheduling = 'open' | 'cordoned' | 'draining';
export type StepRule = 'ledger' | 'hub' | 'none';

/** Steps that either our aggregates and adapters do, or the hub's operator and Ansible content. */
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

const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export type AutomationFacts = { readonly templatePrefix: string; readonly ca?: string };
export type FormerFacts = AutomationFacts & { readonly endpoint?: string };

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
  readonly automation: AutomationFacts;
  /** How orders of modes that the hub was switched away from are still served, by mode. */
  readonly formerAutomation?: { readonly [mode: string]: FormerFacts };
  /** Absent: the defaults. */
  readonly pacing?: { readonly callsPerSecond: number; readonly burst: number };
  /** Resolved: every delegated step has its rule. */
  readonly steps: { readonly [Step in DelegatedStep]: StepRule };
  /** Steps whose rule nobody stated. */
  readonly unstated: readonly DelegatedStep[];
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
    automation: automationFacts(automation),
    ...formerFacts(automation),
    ...(calls === 0
      ? {}
      : { pacing: { callsPerSecond: calls, burst: numberAt(pacing, 'burst') || Math.max(1, 2 * calls) } }),
    steps: Object.fromEntries(
      DELEGATED_STEPS.map((step) => [step, (stringAt(steps, step) || fallback) as StepRule]),
    ) as HubFacts['steps'],
    unstated: DELEGATED_STEPS.filter((step) => stringAt(steps, step) === ''),
  };
};

/**
 * What holds for an order that is placed there now. A simulated hub whose steps are not stated does those by itself for
 * which its site has nothing (`offered`: it has).
 */
export const rulesFor = (
  { steps, unstated }: Pick<HubFacts, 'steps' | 'unstated'>,
  offered: readonly DelegatedStep[] = [],
): HubFacts['steps'] => {
  const rule = (step: DelegatedStep): StepRule =>
    steps[step] === 'ledger' && unstated.includes(step) && !offered.includes(step) ? 'hub' : steps[step];
  return Object.fromEntries(DELEGATED_STEPS.map((step) => [step, rule(step)])) as HubFacts['steps'];
};

const automationFacts = (automation: JsonObject): AutomationFacts => {
  const ca = stringAt(automation, 'ca');
  return {
    templatePrefix: stringAt(automation, 'template_prefix') || 'osac',
    ...(ca === '' ? {} : { ca }),
  };
};

const formerFacts = (automation: JsonObject): Pick<HubFacts, 'formerAutomation'> => {
  const modes = AUTOMATED_MODES.filter((mode) => automation[mode] !== undefined);
  if (modes.length === 0) return {};
  const kept = modes.map((mode) => {
    const former = objectAt(automation, mode);
    const endpoint = stringAt(former, 'endpoint');
    return [mode, { ...automationFacts(former), ...(endpoint === '' ? {} : { endpoint }) }] as const;
  });
  return { formerAutomation: Object.fromEntries(kept) };
};

/** Where orders of this tenant are created on the hub. */
export const namespaceOf = (hub: HubFacts, tenantName: string): string =>
  own(hub.namespaces, tenantName) ??
  (hub.tenantNamespaces ? tenantNamespace(hub.namespace, tenantName) : hub.namespace);

/**
 * `<namespace>-<order>-<order>` is a namespace of the hub as well, and an order's name has 19 characters
 * (OSAC's operator): 63 − 2·19 − 2.
 */
export const MAX_NAMESPACE = 23;

/** The control plane's namespace is `<namespace>-<order>-<order>`; it must be a Kubernetes name. */
export const namespaceFits = (namespace: string, order: string): boolean =>
  namespace.length > 0 && namespace.length + 2 * order.length + 2 <= 63;

/** Names that Kubernetes and OpenShift keep for namespaces of their own: a tenant must not write there. */
export const RESERVED_NAMESPACE = /^(default$|(kube|openshift)(-|$))/;

/**
 * A tenant's own namespace: its name where that can be one and is nobody else's, otherwise its beginning and a hash.
 * The hub's
 * namespace goes into the hash, so that two services may share a management cluster.
 */
export const tenantNamespace = (hubNamespace: string, tenant: string): string => {
  const itself = NAMESPACE.test(tenant) && tenant.length <= MAX_NAMESPACE;
  if (itself && tenant !== hubNamespace && !RESERVED_NAMESPACE.test(tenant)) return tenant;
  const digits = base32(fnv1a64(`${hubNamespace}\n${tenant}`));
  const head = tenant
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_NAMESPACE - digits.length - 1)
    .replaceAll(/^-+|-+$/g, '');
  return head === '' ? `t-${digits}` : `${head}-${digits}`;
};

/**
 * Namespaces that are a tenant's alone: the one of its name, by which the hub's operator takes it for ready
 * (OSAC's operator), and the one of its orders. None has a name that Kubernetes or the hub keeps.
 */
export const ownNamespaces = (hub: HubFacts, tenant: string): readonly string[] => {
  const isFree = NAMESPACE.test(tenant) && tenant !== hub.namespace && !RESERVED_NAMESPACE.test(tenant);
  const ofOrders = hub.tenantNamespaces && own(hub.namespaces, tenant) === undefined;
  return [
    ...new Set([...(isFree ? [tenant] : []), ...(ofOrders ? [tenantNamespace(hub.namespace, tenant)] : [])]),
  ];
};

/** A hub whose id begins with `sim-` is simulated; the prefix shows wherever the hub is named. */
export const isSimulatedHub = (id: string): boolean => id.startsWith('sim-');
