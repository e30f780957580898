import type { AgentPoolCommand, SeenAgent } from '../../domain/agents/decisions.ts';
import { discoveryId, nextDiscoveries, triable } from '../../domain/agents/decisions.ts';
import {
  agentOf,
  awaitedIn,
  discoveringIn,
  stockOf,
  type AgentPoolState,
} from '../../domain/agents/pool-state.ts';
import { MAX_CONCURRENT, refill } from '../../domain/hot-pool/refill.ts';
import type { ServiceLevel } from '../../domain/hot-pool/sizing.ts';
import { sameJson } from '../../domain/json-tools.ts';
import { agentPoolAggregate } from '../../domain/kinds.ts';
import type { CommandRunner } from '../commands/command.ts';
import type { HubRegistry, RegisteredHub } from '../hubs/hub-registry.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';
import type { Clock, Logger, Timers } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import { SiteError, type Agents } from '../site/ports.ts';
import { ownerOf, type SiteOfHub } from './agent-effects.ts';

/** Milliseconds between two looks at the site of a hub. */
const LOOK_MS = 5_000;
/** Rounds in which a site is looked at once that never had an agent: most hubs have none to give. */
const ROUNDS_OF_EMPTY = 12;
const CALL_DEADLINE_MS = 10_000;
/** Milliseconds between two reviews of a target. */
const REVIEW_MS = 15 * 60_000;

export type HotPoolSettings = {
  readonly serviceLevel: ServiceLevel;
  /** Hours until a host that is asked for is a free agent. */
  readonly leadHours: number;
  /** Orders per hour and class to reckon with at least. */
  readonly ordersPerHour: number;
  /** Hosts of one hub that are on their way at most. */
  readonly maxConcurrent: number;
};
export const HOT_POOL_DEFAULTS: HotPoolSettings = {
  serviceLevel: 0.95,
  leadHours: 0.25,
  ordersPerHour: 0,
  maxConcurrent: MAX_CONCURRENT,
};

export type KeeperPorts = {
  readonly registry: Pick<HubRegistry, 'hubs' | 'agentPool'>;
  readonly siteOf: SiteOfHub;
  readonly commandRunner: Pick<CommandRunner, 'execute' | 'peek'>;
  /** Host types that a hub may have, besides those that its pool knows. */
  readonly hostClasses: () => readonly string[];
  readonly settings?: HotPoolSettings;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

type Shown = Awaited<ReturnType<Agents['observe']>>;

/**
 * Keeps the agent pool of each hub as its site is, for as long as this instance owns the processes: agents that appear,
 * are clean or failed are recorded, wipes that nobody took on are asked for again, and hosts are asked for until the hot
 * pool is full. A site that does not answer leaves its pool as it was.
 */
export const keepAgentPools = async (ports: KeeperPorts): Promise<void> => {
  const { registry, siteOf, timers, logger, signal } = ports;
  const silent = new Set<string>();
  const reviewed = new Map<string, number>();
  const rounds = new Map<string, number>();
  while (!signal.aborted) {
    const hubs = registry
      .hubs()
      .filter(({ facts, deleting }) => !deleting && facts.steps.agents === 'ledger' && siteOf(facts.id));
    await Promise.all(
      hubs.map(async (hub) => {
        const { id } = hub.facts;
        const round = rounds.get(id) ?? 0;
        rounds.set(id, round + 1);
        if (registry.agentPool(id) === undefined && round % ROUNDS_OF_EMPTY > 0) return;
        try {
          await keepPool(hub, ports, reviewed);
          if (silent.delete(id)) logger.info({ hub: id }, 'agents of the hub are looked after again');
        } catch (error) {
          if (signal.aborted || silent.has(id)) return;
          silent.add(id);
          logger.warn({ err: error, hub: id }, 'agents of the hub cannot be looked after; retrying');
        }
      }),
    );
    await pause(timers, LOOK_MS, signal);
  }
};

/** One look at the site of a hub, and what follows from it. */
export const keepPool = async (
  hub: RegisteredHub,
  ports: Omit<KeeperPorts, 'registry' | 'timers' | 'logger'>,
  reviewed: Map<string, number>,
): Promise<void> => {
  const { siteOf, commandRunner, clock, signal, settings = HOT_POOL_DEFAULTS } = ports;
  const { id } = hub.facts;
  const site = siteOf(id);
  if (site === undefined) return;
  const options = { effectId: `agent-keeper/${id}`, deadlineMs: CALL_DEADLINE_MS, signal };
  const execute = async (
    command: AgentPoolCommand,
    ...step: readonly (string | number)[]
  ): Promise<AgentPoolState> => {
    const { revision } = await commandRunner.peek(agentPoolAggregate, id, { signal });
    const commandId = derivedCommandId('agent-keeper', id, command.type, revision, ...step);
    const context = { ...hubContext(commandId, 'agent-keeper', id, hub), signal };
    return (await commandRunner.execute(agentPoolAggregate, id, command, context, { step: true })).loaded
      .state;
  };

  const before = (await commandRunner.peek(agentPoolAggregate, id, { signal })).state;
  const shown = await site.agents.observe({ hub: id }, options);
  const discoveries = await site.discovery.observe({ hub: id }, options);
  const classes = new Set([
    ...ports.hostClasses(),
    ...Object.keys(before.classes),
    ...before.waiting.flatMap(({ wanted }) => Object.keys(wanted)),
    ...shown.map(({ hostClass }) => hostClass),
  ]);
  const hardware: { [hostClass: string]: number | undefined } = {};
  for (const hostClass of classes)
    hardware[hostClass] = await site.discovery.remaining({ hub: id, hostClass }, options);
  let pool = await execute({
    type: 'ObserveSite',
    at: clock.now(),
    agents: shown.map(seenAgent),
    discoveries: discoveries.flatMap((each) =>
      each.id.startsWith(`${id}/`) ? [{ ...each, id: each.id.slice(id.length + 1) }] : [],
    ),
    hardware,
  });
  for (const agent of unwiped(pool, shown)) {
    const effectId = `agent-keeper/${id}/${agent.id}/${agent.generation ?? 0}`;
    await site.agents.clean(agent.id, ownerOf(agent), { ...options, effectId }).catch(notOurs);
  }

  for (const hostClass of Object.keys(pool.classes)) {
    const key = `${id}/${hostClass}`;
    const now = clock.monotonicMs();
    if (now - (reviewed.get(key) ?? -Infinity) >= REVIEW_MS) {
      const { serviceLevel, leadHours, ordersPerHour: floor } = settings;
      const inputs = { at: clock.now(), hostClass, serviceLevel, leadHours, floor };
      pool = await execute({ type: 'ReviewTarget', ...inputs }, hostClass);
      reviewed.set(key, now);
    }
    const at = clock.now();
    for (const { discovery, attempt } of missing(pool, hostClass, settings, at)) {
      const wanted = { id: `${id}/${discoveryId(discovery, attempt)}`, hub: id, hostClass };
      // Recorded once the site took it on: while it does not answer, no host uses up its attempts.
      await site.discovery.discover(wanted, { ...options, effectId: `agent-keeper/${wanted.id}` });
      pool = await execute({ type: 'StartDiscovery', at, discovery, hostClass, attempt }, discovery, attempt);
    }
  }
};

/** The next look takes an agent out of the pool that the site has for somebody else, or no longer. */
const notOurs = (error: unknown): void => {
  if (!(error instanceof SiteError) || (error.kind !== 'conflict' && error.kind !== 'refused')) throw error;
};

const seenAgent = ({ id, hostClass, links, state, cleaned, owner }: Shown[number]): SeenAgent => ({
  id,
  hostClass,
  links,
  state,
  ...(cleaned && { cleaned }),
  ...(owner && { owner: owner.order }),
});

/** Agents that are to be wiped, and of which the site does not show that it has begun. */
const unwiped = (pool: AgentPoolState, shown: Shown) =>
  shown.flatMap(({ id, state, cleaned }) => {
    const agent = agentOf(pool, id);
    if (agent?.state !== 'cleaning') return [];
    const isWaiting = state === 'labelled' || (state === 'free' && sameJson(cleaned, agent.cleaned));
    return isWaiting ? [agent] : [];
  });

/** Hosts of a class to ask for now. */
const missing = (pool: AgentPoolState, hostClass: string, settings: HotPoolSettings, at: string) => {
  const { free, target, known } = stockOf(pool, hostClass);
  const underWay = Object.keys(pool.classes).reduce((sum, each) => sum + discoveringIn(pool, each), 0);
  const stock = {
    target: target?.target ?? 0,
    free: free.length,
    discovering: discoveringIn(pool, hostClass),
    awaited: awaitedIn(pool, hostClass),
    ...(known === undefined ? {} : { known: known + triable(pool, hostClass, at).length }),
  };
  return nextDiscoveries(pool, hostClass, refill(stock, settings.maxConcurrent - underWay), at);
};
