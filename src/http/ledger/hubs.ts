import { automationConnectionOf } from '../../app/hubs/hub-check.ts';
import { lanesOfHub } from '../../app/hubs/hub-lanes.ts';
import { watchesByHub } from '../../app/hubs/hub-watches.ts';
import type { RegisteredHub } from '../../app/hubs/hub-registry.ts';
import { hubCapacity } from '../../app/hubs/scheduler.ts';
import { isWaitingSpace } from '../../app/hubs/tenant-space-book.ts';
import { actingKindOf, actingKinds } from '../../domain/acting-kinds.ts';
import { ghostMark } from '../../domain/clusters/cluster.resource.ts';
import { holderKey, holderOf, type Holder } from '../../domain/holder.ts';
import { claimedBy, type HubCapacityState } from '../../domain/hubs/capacity.ts';
import { ASPECTS, firstProblem } from '../../domain/hubs/health.ts';
import { AUTOMATED_MODES } from '../../domain/hubs/former-modes.ts';
import { defined, own } from '../../domain/json-tools.ts';
import { hub as hubKind } from '../../domain/kinds.ts';
import type { Referring, ResourceRow } from '../../projections/read-models.ts';
import { readQuery, rendered } from './forms.ts';
import { hubCheckRoutes } from './hub-checks.ts';
import {
  HUB_LANES,
  HUB_ORDERS_QUERY,
  HUB_WATCH,
  type HubDetails,
  type HubOrder,
  type HubOrders,
  type HubSummary,
} from './hub-operations.ts';
import { hubOf, type HubServices } from './hub-services.ts';
import { orderSummary } from './orders.ts';
import { breathe } from './query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';

/**
 * Hubs as an operator sees them: what is wrong with one, what is still on it, and a look that really connects, also
 * before a hub is registered. Registering, closing and removing are writes of the document (`/api/private/v1/hubs`).
 */
export const hubRoutes = (services: HubServices): readonly LedgerRoute[] => [
  { verb: 'GET', path: 'hubs', handler: () => listHubs(services) },
  { verb: 'GET', path: 'hubs/{id}', handler: (call) => showHub(call, services) },
  { verb: 'GET', path: 'hubs/{id}/orders', handler: (call) => listOrdersOf(call, services) },
  ...hubCheckRoutes(services),
];

/** Rows that are looked up before others get their turn. */
const AT_ONCE = 50;

const listHubs = async (services: HubServices): Promise<LedgerAnswer> => {
  const items: HubSummary[] = [];
  for (const hub of services.hubRegistry?.hubs() ?? []) {
    items.push({ ...summaryOf(hub), ...(await roomOf(hub, services)), ...lanesIn(services, hub.facts.id) });
    if (items.length % AT_ONCE === 0) await breathe();
  }
  return { json: { items: items.toSorted(byId) } };
};

/** Lanes of a hub that work or have trouble, on the instance that runs the processes; idle ones are well. */
const lanesIn = ({ lanes }: HubServices, id: string): Pick<HubSummary, 'lanes'> => {
  const status = lanes?.status();
  if (status?.epoch === undefined) return {};
  const names = lanesOfHub(id);
  return {
    lanes: rendered(
      HUB_LANES,
      status.lanes.filter(({ lane }) => names.includes(lane)),
    ),
  };
};

const byId = (left: HubSummary, right: HubSummary): number => (left.id < right.id ? -1 : 1);

const summaryOf = ({
  facts,
  deleting,
  health,
  adapter,
  cluster,
}: RegisteredHub): Omit<HubSummary, 'limits' | 'used'> => {
  const wrong = firstProblem(health);
  const lacking = health.lacking?.kinds ?? [];
  const unknown = health.ready === undefined && !facts.simulated;
  return {
    id: facts.id,
    adapter: facts.simulated ? 'simulated' : adapter === undefined ? 'none' : 'kubernetes',
    mode: facts.mode,
    controller: facts.controller,
    namespace: facts.namespace,
    zone: facts.zone || undefined,
    scheduling: deleting ? 'leaving' : facts.scheduling,
    health: wrong?.problem.code ?? (adapter === undefined ? 'NoAdapter' : unknown ? 'NotChecked' : 'ok'),
    message: wrong?.problem.message,
    version: health.version,
    cluster,
    ...(lacking.length === 0 ? {} : { lacking: [...lacking] }),
  };
};

const capacityOf = async (id: string, { runner }: HubServices): Promise<HubCapacityState> =>
  (await runner.load(hubCapacity, id)).state;

const roomOf = async ({ facts, limits }: RegisteredHub, services: HubServices) => ({
  limits,
  used: (await capacityOf(facts.id, services)).used,
});

const showHub = async (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const hub = await hubOf(call, services);
  const { id } = hub.facts;
  const capacity = await capacityOf(id, services);
  const states = new Map<string, number>();
  await eachOrder(id, services, (order) => {
    states.set(order.state, (states.get(order.state) ?? 0) + 1);
  });
  const lane = services.lanes?.status().lanes.find((each) => each.lane === `hub:${id}`);
  const watch = watchesByHub(services.hubWatches?.() ?? []).get(id);
  const json: HubDetails = {
    ...summaryOf(hub),
    limits: hub.limits,
    used: capacity.used,
    hosts: hub.health.hosts?.counts,
    problems: problemsOf(hub),
    orders: Object.fromEntries(states),
    ...formerOf(hub),
    ...tenantsOf(services, id),
    ghosts: actingKinds.reduce(
      (sum, { kind }) => sum + services.resources.countMarked(kind, ghostMark(id)),
      0,
    ),
    // Absent: nobody on this instance watches the hub.
    watch:
      watch &&
      rendered(HUB_WATCH, {
        ...watch,
        notSynced: watch.notSynced.length === 0 ? undefined : watch.notSynced,
      }),
    lane: lane && { breaker: lane.breaker, paused: lane.paused, waiting: lane.waiting },
  };
  return { json };
};

/** What is not as wanted comes first. */
const SHOWN_TENANTS = 100;
const tenantsOf = ({ hubRegistry }: HubServices, id: string): Pick<HubDetails, 'tenants'> => {
  const spaces = hubRegistry?.spacesOn(id) ?? [];
  if (spaces.length === 0) return {};
  const waiting = spaces
    .filter(isWaitingSpace)
    .toSorted((left, right) => (left.since < right.since ? -1 : 1))
    .slice(0, SHOWN_TENANTS)
    .map(({ tenant, status, since, failure }) => ({
      tenant,
      state: status === 'removing' ? ('removing' as const) : ('making' as const),
      since,
      ...(failure === undefined ? {} : { reason: failure.reason, message: failure.message }),
    }));
  return { tenants: { ready: spaces.filter(({ status }) => status === 'ready').length, waiting } };
};

/** Addresses by mode that orders of before a switch are still served at. */
const formerOf = (hub: RegisteredHub): Pick<HubDetails, 'former_automation'> => {
  const kept = AUTOMATED_MODES.filter(
    (mode) => mode !== hub.facts.mode && own(hub.facts.formerAutomation ?? {}, mode) !== undefined,
  );
  if (kept.length === 0) return {};
  const urls = kept.map((mode) => [mode, automationConnectionOf(hub, mode)?.url ?? ''] as const);
  return { former_automation: Object.fromEntries(urls) };
};

const problemsOf = ({ health }: RegisteredHub): HubDetails['problems'] =>
  ASPECTS.flatMap((aspect) =>
    (health[aspect]?.problems ?? []).map((problem) => ({ ...problem, since: health[aspect]?.since ?? '' })),
  );

/** Read in one go. */
const REFERRING = 1_000;

/** Orders that hold capacity on a hub, and those that are there with another one, as a subnet is with its network. */
const holdersOn = async (
  hub: string,
  capacity: HubCapacityState,
  { resources }: HubServices,
): Promise<readonly Holder[]> => {
  const keys = new Set(claimedBy(capacity).map(holderKey));
  let after: Referring | undefined;
  do {
    const page = resources.referring(hubKind.kind, hub, { ...defined({ after }), limit: REFERRING });
    for (const { kind, id } of page) if (actingKindOf(kind) !== undefined) keys.add(holderKey({ kind, id }));
    after = page.length < REFERRING ? undefined : page.at(-1);
    await breathe();
  } while (after !== undefined);
  return [...keys].toSorted().map(holderOf);
};

/** By kind and id. What the read model does not know yet is only an id. */
const eachOrder = async (
  hub: string,
  services: HubServices,
  see: (order: HubOrder) => void,
  { offset, limit } = { offset: 0, limit: Number.POSITIVE_INFINITY },
): Promise<number> => {
  const holders = await holdersOn(hub, await capacityOf(hub, services), services);
  const page = holders.slice(offset, offset + limit);
  for (const [i, { kind, id }] of page.entries()) {
    const row: ResourceRow | undefined = services.resources.get(kind, id, { all: true });
    see(row === undefined ? { kind, id, state: 'unknown' } : orderSummary(row));
    if (i % AT_ONCE === AT_ONCE - 1) await breathe();
  }
  return holders.length;
};

const listOrdersOf = async (call: LedgerCall, services: HubServices): Promise<LedgerAnswer> => {
  const hub = await hubOf(call, services);
  const { limit, offset } = readQuery(call.query, HUB_ORDERS_QUERY);
  const items: HubOrder[] = [];
  const total = await eachOrder(hub.facts.id, services, (order) => items.push(order), { offset, limit });
  const next = offset + items.length;
  const more = next < total && items.length > 0;
  const json: HubOrders = { items, total, next_offset: more ? next : undefined };
  return { json };
};
