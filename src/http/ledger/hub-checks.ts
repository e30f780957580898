import type { AutomationCandidate } from '../../app/automation/automation.ts';
import { automationConnectionOf, type HubCheck } from '../../app/hubs/hub-check.ts';
import type { RegisteredHub } from '../../app/hubs/hub-registry.ts';
import type { HubConnection, ManagementCluster } from '../../app/hubs/management-cluster.ts';
import { originOf } from '../../domain/hubs/automation-origins.ts';
import { clearTextRejection, hubSpecRejection } from '../../domain/hubs/hub-spec.ts';
import { objectAt, own, stringAt, textsAt, withoutEmpty } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { hub as hubKind } from '../../domain/kinds.ts';
import { ApiError, invalid } from '../errors.ts';
import { fieldsOf, readBody, rendered } from './forms.ts';
import { CANDIDATE_BODY, HUB_CHECK, TRIED_BODY, type HubCheckAnswer } from './hub-operations.ts';
import { hubOf, type HubServices } from './hub-services.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';

/** Looks that really connect: at a registered hub, at it with other values than it has, and before one is registered. */
export const hubCheckRoutes = (services: HubServices): readonly LedgerRoute[] => [
  {
    verb: 'POST',
    path: 'hubs/check',
    fields: fieldsOf(CANDIDATE_BODY),
    handler: (call) => checkCandidate(call, services),
  },
  {
    verb: 'POST',
    path: 'hubs/{id}/check',
    fields: fieldsOf(TRIED_BODY),
    handler: (call) => checkHub(call, services),
  },
];

/** With any of these in the body a hub is looked at as it would be with them, and what is found is not recorded. */
const TRIED = ['kubeconfig', 'mode', 'endpoints', 'automation'] as const;

const checkHub = async (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const hub = await hubOf(call, services);
  refuseClearText(call.body);
  const body = readBody(call.body, TRIED_BODY);
  if (TRIED.some((field) => body[field] !== undefined)) return tryValues(call, services, hub);
  await services.recordAct(call, { act: 'hubs/check', kind: hubKind.kind, resourceId: hub.facts.id });
  const checked = await services.hubHealth?.check(hub, call.signal);
  if (checked === undefined) return withoutAdapter(hub);
  const { check, position } = checked;
  if (position !== undefined) await services.positions.applied(position);
  return {
    json: {
      ...shown(hub.facts.id, check),
      ...sharing(services, hub.facts.id, check, placesOf(hub.facts)),
    },
    ...(position === undefined
      ? {}
      : { headers: { 'x-ledger-position': services.positions.format(position) } }),
  };
};

const withoutAdapter = ({ facts }: RegisteredHub): LedgerAnswer => {
  const problem = { code: 'NoAdapter', message: 'the hub has no kubeconfig, so that nothing reaches it' };
  return { json: { id: facts.id, ok: false, problems: [problem] } };
};

const tryValues = (call: LedgerCall, services: HubServices, hub: RegisteredHub): Promise<LedgerAnswer> => {
  const { facts, tenant } = hub;
  const automation = triedAutomation(call.body, hub);
  if (own(call.body, 'kubeconfig') !== undefined) {
    // The cluster that the hub is, or the one that it is to become.
    const cluster = stringAt(call.body, 'cluster') || hub.cluster;
    const otherNamespaces = Object.values(facts.namespaces);
    return candidateAnswer(call, services, { ...facts, tenant, cluster, otherNamespaces }, automation);
  }
  const { adapter } = hub;
  if (adapter === undefined) return Promise.resolve(withoutAdapter(hub));
  return look(call, services, adapter, automation, placesOf(facts));
};

/** What the hub has, and what the body says instead; undefined: automation is not looked at. Throws ApiError 400. */
const triedAutomation = (body: JsonObject, hub: RegisteredHub): AutomationCandidate | undefined => {
  const { facts, tenant } = hub;
  if (TRIED.every((field) => field === 'kubeconfig' || own(body, field) === undefined)) return undefined;
  const { mode = facts.mode } = readBody(body, TRIED_BODY);
  const known = automationConnectionOf(hub, mode);
  const given = automationIn(body);
  const url = stringAt(objectAt(body, 'endpoints'), mode) || known?.url || '';
  refuseStrays(url, known, given);
  const { templatePrefix, ca } = { ...known, ...given };
  const settings = withoutEmpty({ template_prefix: templatePrefix, ca });
  const endpoints = mode === 'operator' || url === '' ? {} : { [mode]: url };
  refuseSpec({ namespace: facts.namespace, mode, endpoints, automation: settings });
  return mode === 'operator'
    ? undefined
    : { templatePrefix: 'osac', ...known, ...given, hub: facts.id, tenant, mode, url };
};

/** What is stored goes nowhere but where it was given for: the operator who tries an address need not know it. */
const refuseStrays = (
  url: string,
  known: AutomationCandidate | undefined,
  given: ReturnType<typeof automationIn>,
): void => {
  if (known === undefined || originOf(url) === originOf(known.url)) return;
  const missing = [
    ...(known.token !== undefined && given.token === undefined ? ['automation.token'] : []),
    ...(known.mode === 'eda' && known.hmacSecret !== undefined && given.hmacSecret === undefined
      ? ['automation.hmac_secret']
      : []),
  ];
  const [field] = missing;
  if (field === undefined) return;
  const names = missing.map((name) => `'${name}'`).join(' and ');
  throw invalid(
    `field 'endpoints.${known.mode}' leads to ${originOf(url)}, which the stored ${names} of the hub was not given for: give ${names} in the same request`,
    field,
  );
};

const checkCandidate = (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  refuseClearText(call.body);
  const body = readBody(call.body, CANDIDATE_BODY);
  const { namespace, mode = 'operator', controller, tenant_namespaces: tenantNamespaces, endpoints } = body;
  // A right or namespace that is missing on the hub would be the wrong thing to mend for a spec that nobody takes.
  const { automation } = body;
  refuseSpec(withoutEmpty({ namespace, mode: body.mode, controller, endpoints, automation }));
  const id = body.id || 'candidate';
  return candidateAnswer(
    call,
    services,
    { id, namespace, tenant: 'shared', controller, tenantNamespaces },
    mode === 'operator'
      ? undefined
      : {
          templatePrefix: 'osac',
          ...automationIn(call.body),
          hub: id,
          tenant: 'shared',
          mode,
          url: endpoints?.[mode] ?? '',
        },
  );
};

const refuseClearText = ({ endpoints, automation }: JsonObject): void => {
  const wrong = clearTextRejection(withoutEmpty({ endpoints, automation }));
  if (wrong !== undefined) throw invalid(wrong.message, wrong.field ?? 'spec');
};

const refuseSpec = (spec: JsonObject): void => {
  const wrong = hubSpecRejection(spec, { simulated: false });
  if (wrong !== undefined) throw invalid(wrong.message, wrong.field ?? 'spec');
};

/** What a body says of an automation, in the fields of a hub's spec; secrets in clear. */
const automationIn = (
  body: JsonObject,
): Partial<Pick<AutomationCandidate, 'token' | 'hmacSecret' | 'ca' | 'templatePrefix'>> => {
  const { token, hmac_secret: hmacSecret, ca, template_prefix: templatePrefix } = textsAt(body, 'automation');
  return withoutEmpty({ token, hmacSecret, ca, templatePrefix });
};

type Candidate = Required<
  Pick<HubConnection, 'id' | 'namespace' | 'tenant' | 'controller' | 'tenantNamespaces'>
> & { readonly cluster?: string | undefined; readonly otherNamespaces?: readonly string[] };

const candidateAnswer = async (
  call: LedgerCall,
  services: HubServices,
  hub: Candidate,
  automation: AutomationCandidate | undefined,
): Promise<LedgerAnswer> => {
  const { id, namespace, tenant, controller, tenantNamespaces, cluster, otherNamespaces = [] } = hub;
  const connection = { id, namespace, tenant, controller, tenantNamespaces, otherNamespaces, revision: 0 };
  const known = cluster === undefined ? connection : { ...connection, cluster };
  const adapter = services.clusters?.candidate?.(known, kubeconfigOf(call.body));
  if (adapter === undefined) throw nothingLooks();
  try {
    return await look(call, services, adapter, automation, [namespace, ...otherNamespaces]);
  } finally {
    await adapter.close();
  }
};

/** Records who tried which host, and nothing of what is found. */
const look = async (
  call: LedgerCall,
  services: HubServices,
  adapter: ManagementCluster,
  automation: AutomationCandidate | undefined,
  places: readonly string[],
): Promise<LedgerAnswer> => {
  if (services.hubHealth === undefined) throw nothingLooks();
  const { id } = call.path;
  const typed = stringAt(call.body, 'id');
  await services.recordAct(call, {
    act: 'hubs/check',
    ...(id === undefined ? (typed === '' ? {} : { typed }) : { kind: hubKind.kind, resourceId: id }),
    hosts: hostsOf(call.body, automation, services),
  });
  const check = await services.hubHealth.checkCandidate(adapter, automation, call.signal);
  call.signal.throwIfAborted();
  return {
    json: { ...shown(adapter.hubId, check), ...sharing(services, adapter.hubId, check, places) },
  };
};

/** Where a look goes that is not at the hub as it is. */
const hostsOf = (
  body: JsonObject,
  automation: AutomationCandidate | undefined,
  { clusters }: HubServices,
): readonly string[] => {
  const hub = own(body, 'kubeconfig') === undefined ? undefined : clusters?.hostOf?.(kubeconfigOf(body));
  return [
    ...(hub === undefined ? [] : [hub]),
    ...(automation === undefined ? [] : [new URL(automation.url).host]),
  ];
};

const placesOf = ({ namespace, namespaces }: RegisteredHub['facts']): readonly string[] => [
  namespace,
  ...Object.values(namespaces),
];

/**
 * Other hubs that keep orders in the same namespaces of the same cluster. Orders are told apart by their labels; hosts are
 * not, so that each of the hubs would offer all of them.
 */
const sharing = (
  { hubRegistry }: HubServices,
  id: string,
  { cluster }: HubCheck,
  places: readonly string[],
): JsonObject => {
  const others = (hubRegistry?.hubs() ?? []).filter(
    ({ facts, cluster: theirs }) =>
      cluster !== undefined &&
      theirs === cluster &&
      facts.id !== id &&
      placesOf(facts).some((place) => places.includes(place)),
  );
  return others.length === 0 ? {} : { also_in_namespace: others.map(({ facts }) => facts.id).toSorted() };
};

const nothingLooks = (): ApiError =>
  new ApiError('UNIMPLEMENTED', 'this instance has no adapter for management clusters');

/** Base64, as the private API takes it. The value is in no answer, no log and no error text. */
const kubeconfigOf = (body: JsonObject): Uint8Array => {
  const text = own(body, 'kubeconfig');
  const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length === 0) throw invalid("field 'kubeconfig' must hold a kubeconfig in base64", 'kubeconfig');
  return bytes;
};

const shown = (id: string, check: HubCheck): HubCheckAnswer =>
  rendered(HUB_CHECK, {
    ...check,
    id,
    ok: check.problems.length === 0,
    clockSkewMs: check.clockSkewMs === undefined ? undefined : Math.round(check.clockSkewMs),
    recommendation: recommendation(check),
  });

/** Clusters do without these rights and kinds, so that their want is no problem. */
const recommendation = ({ canReadNodePools, lacking = [] }: HubCheck): string | undefined => {
  const kinds = lacking.map(({ kind, message }) => `no ${kind} goes there: ${message}`);
  const nodePools =
    "the hub's credentials may not list node pools, so that clusters with several node sets show no node counts: apply ops/rbac/node-counts.yaml, which shows free hosts as well";
  const said = [...(canReadNodePools === false ? [nodePools] : []), ...kinds];
  return said.length === 0 ? undefined : said.join('; ');
};
