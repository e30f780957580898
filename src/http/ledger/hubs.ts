import type { AutomationCandidate } from '../../app/automation.ts';
import type { HubCheck } from '../../app/hub-check.ts';
import type { HubHealthMonitor } from '../../app/hub-health.ts';
import type { HubObserver } from '../../app/hub-observer.ts';
import { watchesByHub, type HubWatch } from '../../app/hub-watches.ts';
import type { HubRegistry, RegisteredHub } from '../../app/hub-registry.ts';
import type { HubConnection, ManagementClusters } from '../../app/management-cluster.ts';
import type { ProcessRunner } from '../../app/process-runner/types.ts';
import { hubCapacity } from '../../app/scheduler.ts';
import { claimedBy, type HubCapacityState } from '../../domain/hubs/capacity.ts';
import { firstProblem } from '../../domain/hubs/health.ts';
import { ghostMark } from '../../domain/clusters/cluster.resource.ts';
import { hubSpecRejection } from '../../domain/hubs/hub-spec.ts';
import { objectAt, own, stringAt, withoutEmpty } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { cluster, hub as hubKind } from '../../domain/kinds.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import { ApiError, invalid } from '../errors.ts';
import type { WriteServices } from '../osac/write-context.ts';
import type { Positions } from '../positions.ts';
import { orderSummary } from './orders.ts';
import { breathe, wholeNumber } from './query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';

/**
 * Hubs as an operator sees them: what is wrong with one, what is still on it, and a look that really connects, also
 * before a hub is registered. Registering, closing and removing are writes of the document (`/api/private/v1/hubs`).
 */
export type HubServices = Pick<WriteServices, 'runner' | 'resources'> & {
  readonly positions: Positions;
  /** Absent where no hubs are followed: nothing is found then. */
  readonly hubRegistry?: Pick<HubRegistry, 'hubs' | 'get' | 'onChange'>;
  readonly hubHealth?: Pick<HubHealthMonitor, 'check' | 'checkCandidate'>;
  readonly clusters?: Pick<ManagementClusters, 'candidate'>;
  readonly lanes?: Pick<ProcessRunner, 'status'>;
  readonly hubWatches?: HubObserver['status'];
};

export const hubRoutes = (services: HubServices): readonly LedgerRoute[] => [
  { verb: 'GET', path: 'hubs', handler: () => listHubs(services) },
  { verb: 'POST', path: 'hubs/check', handler: (call) => checkCandidate(call, services) },
  { verb: 'GET', path: 'hubs/{id}', handler: (call) => showHub(call, services) },
  { verb: 'POST', path: 'hubs/{id}/check', handler: (call) => checkHub(call, services) },
  { verb: 'GET', path: 'hubs/{id}/orders', handler: (call) => listOrdersOf(call, services) },
];

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
/** Rows that are looked up before others get their turn. */
const AT_ONCE = 50;

const listHubs = async (services: HubServices): Promise<LedgerAnswer> => {
  const items: JsonObject[] = [];
  for (const hub of services.hubRegistry?.hubs() ?? []) {
    items.push(summaryOf(hub));
    if (items.length % AT_ONCE === 0) await breathe();
  }
  return { json: { items: items.toSorted(byId) } };
};

const byId = (left: JsonObject, right: JsonObject): number =>
  stringAt(left, 'id') < stringAt(right, 'id') ? -1 : 1;

/** The registry follows the log by itself: a hub that this instance shows already may reach it a moment later. */
const REGISTRY_MS = 2_000;

const hubOf = async (call: LedgerCall, services: HubServices): Promise<RegisteredHub> => {
  const id = call.path['id'] ?? '';
  const found = services.hubRegistry?.get(id) ?? (await arriving(id, call.signal, services));
  if (found === undefined) throw new ApiError('NOT_FOUND', `there is no hub '${id}'; ledgerctl hubs list`);
  return found;
};

const arriving = async (
  id: string,
  signal: AbortSignal,
  { hubRegistry, resources }: HubServices,
): Promise<RegisteredHub | undefined> => {
  if (hubRegistry === undefined || resources.get(hubKind.kind, id, { all: true }) === undefined)
    return undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  const limit = AbortSignal.any([signal, AbortSignal.timeout(REGISTRY_MS)]);
  limit.addEventListener('abort', () => resolve(), { once: true });
  const stop = hubRegistry.onChange((changed) => {
    if (changed === id) resolve();
  });
  await promise;
  stop();
  return hubRegistry.get(id);
};

const summaryOf = ({ facts, deleting, health, adapter }: RegisteredHub): JsonObject => {
  const wrong = firstProblem(health);
  const unknown = health.ready === undefined && !facts.simulated;
  return {
    id: facts.id,
    adapter: facts.simulated ? 'simulated' : adapter === undefined ? 'none' : 'kubernetes',
    mode: facts.mode,
    controller: facts.controller,
    namespace: facts.namespace,
    ...(facts.zone === '' ? {} : { zone: facts.zone }),
    scheduling: deleting ? 'leaving' : facts.scheduling,
    health: wrong?.problem.code ?? (adapter === undefined ? 'NoAdapter' : unknown ? 'NotChecked' : 'ok'),
    ...(wrong === undefined ? {} : { message: wrong.problem.message }),
    ...(health.version === undefined ? {} : { version: health.version }),
  };
};

const capacityOf = async (id: string, { runner }: HubServices): Promise<HubCapacityState> =>
  (await runner.load(hubCapacity, id)).state;

const showHub = async (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const hub = await hubOf(call, services);
  const { id } = hub.facts;
  const capacity = await capacityOf(id, services);
  const states = new Map<string, number>();
  await eachOrder(capacity, services, (order) => {
    const state = stringAt(order, 'state');
    states.set(state, (states.get(state) ?? 0) + 1);
  });
  const lane = services.lanes?.status().lanes.find((each) => each.lane === `hub:${id}`);
  return {
    json: {
      ...summaryOf(hub),
      limits: plain(hub.limits),
      used: plain(capacity.used),
      ...(hub.health.hosts === undefined ? {} : { hosts: plain(hub.health.hosts.counts) }),
      problems: problemsOf(hub),
      orders: Object.fromEntries(states),
      ghosts: services.resources.countMarked(cluster.kind, ghostMark(id)),
      ...watchText(watchesByHub(services.hubWatches?.() ?? []).get(id)),
      ...(lane === undefined
        ? {}
        : { lane: { breaker: lane.breaker, paused: lane.paused, waiting: lane.waiting } }),
    },
  };
};

/** Absent: nobody on this instance watches the hub. */
const watchText = (watch: HubWatch | undefined): { readonly watch?: JsonObject } => {
  if (watch === undefined) return {};
  const { notSynced, lastError, lastErrorAt, ...counts } = watch;
  return {
    watch: {
      ...counts,
      ...(notSynced.length === 0 ? {} : { not_synced: [...notSynced] }),
      ...(lastError === undefined ? {} : { last_error: lastError }),
      ...(lastErrorAt === undefined ? {} : { last_error_at: lastErrorAt }),
    },
  };
};

const plain = (value: object): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

const problemsOf = ({ health }: RegisteredHub): JsonObject[] =>
  [health.reachable, health.credentials, health.requirements, health.automation].flatMap((aspect) =>
    (aspect?.problems ?? []).map((problem) => ({ ...problem, since: aspect?.since ?? '' })),
  );

/** Orders that hold capacity on a hub, in the order of their ids. What the read model does not know yet is only an id. */
const eachOrder = async (
  capacity: HubCapacityState,
  { resources }: HubServices,
  see: (order: JsonObject) => void,
  { offset, limit } = { offset: 0, limit: Number.POSITIVE_INFINITY },
): Promise<number> => {
  const ids = claimedBy(capacity).toSorted();
  const page = ids.slice(offset, offset + limit);
  for (const [i, id] of page.entries()) {
    const row: ResourceRow | undefined = resources.get(cluster.kind, id, { all: true });
    see(row === undefined ? { id, state: 'unknown' } : orderSummary(row));
    if (i % AT_ONCE === AT_ONCE - 1) await breathe();
  }
  return ids.length;
};

const listOrdersOf = async (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const hub = await hubOf(call, services);
  const limit = wholeNumber(call.query, 'limit', DEFAULT_LIMIT, MAX_LIMIT);
  const offset = wholeNumber(call.query, 'offset', 0, 2 ** 31 - 1);
  const items: JsonObject[] = [];
  const capacity = await capacityOf(hub.facts.id, services);
  const total = await eachOrder(capacity, services, (order) => items.push(order), { offset, limit });
  const next = offset + items.length;
  return { json: { items, total, ...(next < total && items.length > 0 ? { next_offset: next } : {}) } };
};

/** Looks at a registered hub; with a `kubeconfig` in the body, at the same hub with those credentials instead. */
const checkHub = async (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const hub = await hubOf(call, services);
  if (own(call.body, 'kubeconfig') !== undefined)
    return candidateAnswer(call, services, {
      id: hub.facts.id,
      namespace: hub.facts.namespace,
      tenant: hub.tenant,
      controller: hub.facts.controller,
      tenantNamespaces: hub.facts.tenantNamespaces,
    });
  const checked = await services.hubHealth?.check(hub, call.signal);
  if (checked === undefined) {
    const problem = { code: 'NoAdapter', message: 'the hub has no kubeconfig, so that nothing reaches it' };
    return { json: { id: hub.facts.id, ok: false, problems: [problem] } };
  }
  const { check, position } = checked;
  if (position !== undefined) await services.positions.applied(position);
  return {
    json: { id: hub.facts.id, ...shown(check) },
    ...(position === undefined
      ? {}
      : { headers: { 'x-ledger-position': services.positions.format(position) } }),
  };
};

const checkCandidate = (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const namespace = stringAt(call.body, 'namespace');
  if (namespace === '')
    throw invalid(
      "field 'namespace' is required: orders are created in this namespace of the hub",
      'namespace',
    );
  const id = stringAt(call.body, 'id') || 'candidate';
  const controller = stringAt(call.body, 'controller') || 'operator';
  if (controller !== 'operator' && controller !== 'ledger')
    throw invalid(`field 'controller' must be operator or ledger, but it is '${controller}'`, 'controller');
  // A right or namespace that is missing on the hub would be the wrong thing to mend for a spec that nobody takes.
  const { mode, endpoints, automation } = call.body;
  const wrong = hubSpecRejection(withoutEmpty({ namespace, mode, controller, endpoints, automation }), {
    simulated: false,
  });
  if (wrong !== undefined) throw invalid(wrong.message, wrong.field ?? 'spec');
  const tenantNamespaces = own(call.body, 'tenant_namespaces') === true;
  return candidateAnswer(call, services, { id, namespace, tenant: 'shared', controller, tenantNamespaces });
};

const candidateAnswer = async (
  call: LedgerCall,
  { clusters, hubHealth }: HubServices,
  hub: Pick<HubConnection, 'id' | 'namespace' | 'tenant' | 'controller' | 'tenantNamespaces'>,
): Promise<LedgerAnswer> => {
  const kubeconfig = kubeconfigOf(call.body);
  const adapter = clusters?.candidate?.({ ...hub, revision: 0 }, kubeconfig);
  if (adapter === undefined || hubHealth === undefined)
    throw new ApiError('UNIMPLEMENTED', 'this instance has no adapter for management clusters');
  try {
    const automation = automationOf(call.body, hub);
    const check = await hubHealth.checkCandidate(adapter, automation, call.signal);
    call.signal.throwIfAborted();
    return { json: { id: hub.id, ...shown(check) } };
  } finally {
    await adapter.close();
  }
};

/** How the automation of a candidate is called: the fields of a hub's spec, secrets in clear. Throws ApiError 400. */
const automationOf = (
  body: JsonObject,
  { id, tenant }: { readonly id: string; readonly tenant: string },
): AutomationCandidate | undefined => {
  const mode = stringAt(body, 'mode') || 'operator';
  if (mode === 'operator') return undefined;
  if (mode !== 'eda' && mode !== 'aap')
    throw invalid(`field 'mode' must be one of operator, eda, aap, but it is '${mode}'`, 'mode');
  const url = stringAt(objectAt(body, 'endpoints'), mode);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalid(`field 'endpoints.${mode}' must be an http or https URL`, `endpoints.${mode}`);
  const automation = objectAt(body, 'automation');
  const given = (name: string): string | undefined => stringAt(automation, name) || undefined;
  const [token, hmacSecret, ca] = [given('token'), given('hmac_secret'), given('ca')];
  return {
    hub: id,
    tenant,
    mode,
    url,
    templatePrefix: given('template_prefix') ?? 'osac',
    ...(token === undefined ? {} : { token }),
    ...(hmacSecret === undefined ? {} : { hmacSecret }),
    ...(ca === undefined ? {} : { ca }),
  };
};

/** Base64, as the private API takes it. The value is in no answer, no log and no error text. */
const kubeconfigOf = (body: JsonObject): Uint8Array => {
  const text = own(body, 'kubeconfig');
  const bytes = typeof text === 'string' ? Buffer.from(text, 'base64') : Buffer.alloc(0);
  if (bytes.length === 0) throw invalid("field 'kubeconfig' must hold a kubeconfig in base64", 'kubeconfig');
  return bytes;
};

const shown = (check: HubCheck): JsonObject => ({
  ok: check.problems.length === 0,
  problems: check.problems.map((problem) => ({ ...problem })),
  ...(check.version === undefined ? {} : { version: check.version }),
  ...(check.clockSkewMs === undefined ? {} : { clock_skew_ms: Math.round(check.clockSkewMs) }),
  ...(check.canReadNodePools === undefined ? {} : { can_read_node_pools: check.canReadNodePools }),
  ...(check.canReadAgents === undefined ? {} : { can_read_agents: check.canReadAgents }),
  ...(check.hosts === undefined ? {} : { hosts: plain(check.hosts) }),
});
