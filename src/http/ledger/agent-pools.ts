import type { SiteOfHub } from '../../app/agents/agent-effects.ts';
import { ownerOf } from '../../app/agents/agent-effects.ts';
import type { CommandRunner } from '../../app/commands/command.ts';
import type { HubRegistry } from '../../app/hubs/hub-registry.ts';
import type { Clock } from '../../app/ports.ts';
import { SiteError } from '../../app/site/ports.ts';
import type { AgentPoolCommand } from '../../domain/agents/decisions.ts';
import {
  agentOf,
  AGENT_STATES,
  discoveringIn,
  stockOf,
  type AgentPoolState,
  type AgentState,
  type PooledAgent,
} from '../../domain/agents/pool-state.ts';
import { agentsIn, etaOf, inTurn } from '../../domain/agents/queue.ts';
import { idleCost } from '../../domain/hot-pool/sizing.ts';
import { agentPoolAggregate, hub as hubKind } from '../../domain/kinds.ts';
import { contextOf, type LookServices } from '../audit-reads.ts';
import { ApiError, unfit } from '../errors.ts';
import type { ActServices } from './acts.ts';
import {
  AGENT_POOLS_QUERY,
  RETIRE_BODY,
  type AgentPool,
  type AgentPoolDetails,
  type PoolAgent,
} from './agent-pool-operations.ts';
import { fieldsOf, readBody, readQuery } from './forms.ts';
import { once, osacCall } from './osac-call.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

export type AgentPoolServices = ActServices &
  Pick<LookServices, 'ids' | 'requestHash' | 'personal'> & {
    readonly runner: Pick<CommandRunner, 'execute' | 'load'>;
    readonly clock: Pick<Clock, 'now'>;
    /** Absent where no hubs are followed: nothing is found then. */
    readonly hubRegistry?: Pick<HubRegistry, 'hubs' | 'get' | 'agentPool'>;
    readonly siteOfHub?: SiteOfHub;
  };

/** Agents of the hubs whose agents the ledger owns, as operators see them (docs/allocation.md). */
export const agentPoolRoutes = (services: AgentPoolServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'pools/agents',
    handler: ({ query }) => ({ json: { items: poolsIn(services, hostHourIn(query)) } }),
  },
  {
    verb: 'GET',
    path: 'pools/agents/{hub}',
    handler: (call) => {
      const { hub, pool } = poolOf(call, services);
      const json: AgentPoolDetails = {
        ...shownPool(hub, pool, services.clock.now(), hostHourIn(call.query)),
        agents: agentsIn(pool)
          .map(shownAgent)
          .toSorted((left, right) => (left.agent < right.agent ? -1 : 1)),
      };
      return { json };
    },
  },
  {
    verb: 'POST',
    path: 'pools/agents/{hub}/{agent}/retire',
    fields: fieldsOf(RETIRE_BODY),
    handler: (call) => {
      const { reason } = readBody(call.body, RETIRE_BODY);
      return act(call, services, 'retire', (agent, at) => ({ type: 'RetireAgent', at, agent, reason }));
    },
  },
  {
    verb: 'POST',
    path: 'pools/agents/{hub}/{agent}/clean',
    handler: (call) => act(call, services, 'clean', (agent, at) => ({ type: 'CleanAgent', at, agent })),
  },
];

const hostHourIn = (query: URLSearchParams): number | undefined =>
  readQuery(query, AGENT_POOLS_QUERY).host_hour;

const poolsIn = ({ hubRegistry, clock }: AgentPoolServices, hostHour?: number): readonly AgentPool[] => {
  const ids = (hubRegistry?.hubs() ?? []).map(({ facts }) => facts.id).sort();
  return ids.flatMap((hub) => {
    const pool = hubRegistry?.agentPool(hub);
    return pool === undefined ? [] : [shownPool(hub, pool, clock.now(), hostHour)];
  });
};

/** Throws ApiError 404. */
const poolOf = ({ path }: LedgerCall, { hubRegistry }: AgentPoolServices) => {
  const hub = path['hub'] ?? '';
  const pool = hubRegistry?.agentPool(hub);
  if (pool === undefined)
    throw new ApiError(
      'NOT_FOUND',
      `no agents of hub '${hub.slice(0, 100)}' found; ledgerctl pools agents shows all`,
    );
  return { hub, pool };
};

const act = async (
  call: LedgerCall,
  services: AgentPoolServices,
  deed: 'clean' | 'retire',
  commandOf: (agent: string, at: string) => AgentPoolCommand,
) => {
  const { hub } = poolOf(call, services);
  const { state } = await services.runner.load(agentPoolAggregate, hub);
  const agent = agentOf(state, call.path['agent'] ?? '');
  if (agent === undefined)
    throw new ApiError(
      'NOT_FOUND',
      `agent '${(call.path['agent'] ?? '').slice(0, 100)}' of hub '${hub}' not found`,
    );
  const named = { act: `pools/agents/${deed}`, on: agent.id, kind: hubKind.kind, resourceId: hub } as const;
  await services.recordAct(call, named);
  const asked = { what: call.route, query: call.body, method: call.verb };
  const context = { ...(await contextOf(osacCall(once(call)), asked, services)), hub };
  const command = commandOf(agent.id, services.clock.now());
  const outcome = await services.runner.execute(agentPoolAggregate, hub, command, context);
  if (outcome.outcome === 'rejected') throw unfit(outcome.rejection.message, outcome.rejection.code);
  const now = agentOf(outcome.loaded.state, agent.id) ?? agent;
  if (deed === 'clean') await wipe(now, hub, call, services);
  return { json: shownAgent(now) };
};

/** The site begins at once; otherwise the next look would take the agent for one whose wipe failed again. */
const wipe = async (
  agent: PooledAgent,
  hub: string,
  { requestId, signal }: LedgerCall,
  { siteOfHub }: AgentPoolServices,
): Promise<void> => {
  const options = { effectId: `request/${requestId}`, deadlineMs: CALL_DEADLINE_MS, signal };
  try {
    await siteOfHub?.(hub)?.agents.clean(agent.id, ownerOf(agent), options);
  } catch (error) {
    if (!(error instanceof SiteError)) throw error;
    throw new ApiError('UNAVAILABLE', `the site of hub '${hub}' did not begin to wipe it: ${error.message}`);
  }
};
const CALL_DEADLINE_MS = 10_000;

const shownPool = (hub: string, pool: AgentPoolState, at: string, hostHour?: number): AgentPool => ({
  hub,
  classes: Object.keys(pool.classes)
    .sort()
    .map((hostClass) => shownClass(pool, hostClass, hostHour)),
  waiting: inTurn(pool.waiting, at).map(({ holder, priority, wanted, since }, index) => ({
    ...holder,
    position: index + 1,
    priority,
    wanted: { ...wanted },
    since,
    eta: etaOf(pool, holder, at),
  })),
});

const shownClass = (pool: AgentPoolState, hostClass: string, hostHour?: number) => {
  const { counts, known, lowSince, target } = stockOf(pool, hostClass);
  const numbers = AGENT_STATES.map((state) => [state, counts[state] ?? 0]);
  return {
    host_class: hostClass,
    ...(Object.fromEntries(numbers) as { [State in AgentState]: number }),
    discovering: discoveringIn(pool, hostClass),
    known,
    low_since: lowSince,
    hot_pool: target && {
      target: target.target,
      min_free: target.minFree,
      orders_per_hour: target.ordersPerHour,
      lead_hours: target.leadHours,
      mean_size: target.meanSize,
      mean_square: target.meanSquare,
      service_level: target.serviceLevel,
      idle_hosts: idleCost(target.target, target, 1),
      idle_cost_per_hour: hostHour === undefined ? undefined : idleCost(target.target, target, hostHour),
    },
  };
};

const shownAgent = ({ id, hostClass, state, since, holder, reason, cleaned }: PooledAgent): PoolAgent => ({
  agent: id,
  host_class: hostClass,
  state,
  since,
  holder: state === 'free' ? undefined : holder && { ...holder },
  reason,
  cleaned: cleaned && { ...cleaned },
});
