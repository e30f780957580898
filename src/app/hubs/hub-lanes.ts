import { ownedObjects } from '../../domain/hub-objects.ts';
import { laneOf } from '../../domain/hubs/hub-object.ts';
import type { HubRegistry } from './hub-registry.ts';
import type { ProcessHooks, ProcessRunner } from '../process-runner/types.ts';
import type { Pacing } from '../fairness/token-bucket.ts';

/** Lane of what is done on no hub: placement and what belongs to it. */
export const SCHEDULER_LANE = 'scheduler';

/** `hub:<id>`, or `hub:<id>:<Kind>` for a kind with a lane of its own. */
const HUB_LANE = /^hub:(?<hub>.+?)(?::(?<kind>[A-Z][A-Za-z]*))?$/;
const hubOfLane = (lane: string): string | undefined => HUB_LANE.exec(lane)?.groups?.['hub'];
/** And those of its automation, by mode. */
const AUTOMATION_LANE = /^automation:(?:eda|aap):/;
export const lanesOfHub = (id: string): readonly string[] => [
  laneOf(id),
  ...ownedObjects().flatMap((kind) => (kind.ownLane === true ? [laneOf(id, kind)] : [])),
  `automation:eda:${id}`,
  `automation:aap:${id}`,
];

/**
 * Effects on a real hub where its document says nothing: each is a few calls, an API server's own clients make 5 a
 * second
 * and 10 at once unless told otherwise (OSAC's operator), and ours replaces many of them.
 */
export const DEFAULT_PACING: Pacing = { callsPerSecond: 20, burst: 40 };
/** Each READY cluster is looked at once a minute, which alone shows that it degraded: more of them need a faster pace. */
const ROUND_SECONDS = 60;
/** What looks take of 10,000 clusters and a fifth more; above it rounds take longer. */
const MAX_DEFAULT_RATE = 200;
/** A pace is not changed for each order. */
const STEP = 10;

/** The pace of a real hub whose document names none, with so many orders of ours on it. */
export const defaultPacing = (orders: number): Pacing => {
  // A tenth is left for what is not a look.
  const needed = Math.ceil((1.1 * orders) / ROUND_SECONDS / STEP) * STEP;
  const callsPerSecond = Math.min(MAX_DEFAULT_RATE, Math.max(DEFAULT_PACING.callsPerSecond, needed));
  return { callsPerSecond, burst: 2 * callsPerSecond };
};

/** How fast a lane may go: each of a hub as its document says; simulated hubs and what is no hub are not paced. */
export const pacingOfLanes =
  (registry: Pick<HubRegistry, 'get'>, ordersOn: (hub: string) => number) =>
  (lane: string): Pacing | undefined => {
    const id = hubOfLane(lane);
    const facts = id === undefined ? undefined : registry.get(id)?.facts;
    if (facts === undefined) return undefined;
    const orders = lane === laneOf(facts.id) ? ordersOn(facts.id) : 0;
    return facts.pacing ?? (facts.simulated ? undefined : defaultPacing(orders));
  };

/**
 * Hooks that have a hub looked at as soon as its lane closes, so that its document says why, long before the next look.
 * `then`: hooks that are told as well.
 */
export const lookWhenClosed = (lookSoon: (hub: string) => void, then: ProcessHooks = {}): ProcessHooks => ({
  ...then,
  laneChanged: (lane) => {
    const hub = hubOfLane(lane.lane.replace(AUTOMATION_LANE, 'hub:'));
    if (hub !== undefined && lane.breaker === 'open') lookSoon(hub);
    then.laneChanged?.(lane);
  },
});

/**
 * New credentials of a hub or its automation end what refused ones parked: its lanes try one effect at once. Returns
 * how
 * to stop.
 */
export const probeOnNewCredentials = (
  registry: Pick<HubRegistry, 'onChange'>,
  probe: ProcessRunner['probeLane'],
): (() => void) => {
  const versions = new Map<string, string>();
  return registry.onChange((id, hub) => {
    const automations = [hub?.automation, ...Object.values(hub?.formerAutomation ?? {})];
    const secrets = automations.flatMap((each) => [each?.token, each?.hmacSecret]);
    const version = [hub?.kubeconfig, ...secrets].map((secret) => secret?.version ?? '').join(' ');
    const known = versions.has(id);
    if (known && hub !== undefined && versions.get(id) !== version) lanesOfHub(id).forEach(probe);
    if (hub === undefined) versions.delete(id);
    else versions.set(id, version);
  });
};
