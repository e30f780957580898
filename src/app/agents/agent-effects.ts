import { agentsOf, waitingOf } from '../../domain/agents/pool-state.ts';
import type { AgentPoolState, PooledAgent, Priority, Wanted } from '../../domain/agents/pool-state.ts';
import type { AgentPoolCommand } from '../../domain/agents/decisions.ts';
import { agentsIn, etaOf, haveOf, positionOf } from '../../domain/agents/queue.ts';
import { holderKey, type Holder } from '../../domain/holder.ts';
import { agentPoolAggregate } from '../../domain/kinds.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandRunner } from '../commands/command.ts';
import { callOptionsOf, done, effectPort, failed, refused } from '../hubs/hub-effects.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import type { HubRegistry } from '../hubs/hub-registry.ts';
import type { SiteRegistry } from '../site/site-registry.ts';
import { SiteError, type OwnerMark, type Site } from '../site/ports.ts';

type Args = { readonly holder: Holder; readonly hub: string };
type Return = Args & { readonly keep?: Wanted; readonly generation?: number };

/** The part of a site that agents are about; undefined: nobody reaches the site of the hub. */
export type SiteOfHub = (hub: string) => Pick<Site, 'agents' | 'discovery'> | undefined;

export const siteOfHubs =
  (hubs: Pick<HubRegistry, 'get'>, sites: Pick<SiteRegistry, 'siteOf'>): SiteOfHub =>
  (hub) => {
    const zone = hubs.get(hub)?.facts.zone;
    return zone === undefined ? undefined : sites.siteOf(zone);
  };

const CALL_DEADLINE_MS = 10_000;

/**
 * Effect port `agents`: what an order gets from the agent pool of its hub, and gives back to it. All of it may be repeated.
 *
 * - `select` {holder, hub, wanted, priority?} → {agents, generation}, all marked as the holder's on the site; or
 *   {waiting, have, want, position, eta}. `wanted`: what it is to have in all, by host type id. `AgentsReserved` wakes it.
 * - `addresses` {holder, hub} → {addresses} by agent, or {waiting}.
 * - `return` {holder, hub, keep?, generation?} → {held}: what is not kept is being wiped, and belongs to the pool.
 * - `look` {holder, hub} → {agents, generation?, waiting?}.
 */
export const createAgentEffects = ({
  commandRunner,
  siteOf,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly siteOf: SiteOfHub;
  readonly clock: Clock;
}): EffectPort => {
  /** Waits for what is under way: an earlier attempt of the same effect may be. */
  const poolOf = async ({ hub }: Args, { signal }: EffectCall): Promise<AgentPoolState> =>
    (await commandRunner.load(agentPoolAggregate, hub, { signal })).state;

  /** The pool afterwards, also where an earlier attempt gave this command. */
  const execute = async (
    args: Args,
    command: AgentPoolCommand,
    call: EffectCall,
    ...step: readonly (string | number)[]
  ): Promise<AgentPoolState> => {
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type, args.hub, ...step);
    const context = { ...contextOf(call, commandId), hub: args.hub };
    const options = { step: true, inLine: true };
    const outcome = await commandRunner.execute(agentPoolAggregate, args.hub, command, context, options);
    if (outcome.outcome === 'rejected') throw new Refused(outcome.rejection.code, outcome.rejection.message);
    return outcome.replayed ? poolOf(args, call) : outcome.loaded.state;
  };

  const select = async (
    { wanted, priority = 'high', ...args }: Args & { readonly wanted: Wanted; readonly priority?: Priority },
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { holder } = args;
    const at = clock.now();
    const pool = await execute(args, { type: 'SelectAgents', at, holder, wanted, priority }, call);
    const waits = waitingOf(pool, holder);
    if (waits !== undefined) {
      const facts = { have: haveOf(pool, waits.wanted), want: waits.wanted, since: waits.since };
      const eta = etaOf(pool, holder, at);
      return done({
        waiting: shortage(pool, holder, at),
        ...facts,
        position: positionOf(pool, holder, at),
        eta,
      });
    }
    for (const agent of agentsOf(pool, holder)) {
      const taken = agent.state === 'reserved' ? await mark(args, agent, call) : undefined;
      if (taken !== undefined) return taken;
    }
    return bind(args, pool, call);
  };

  /** The site is told whose it is. Undefined: it took the mark. */
  const mark = async (
    args: Args,
    agent: PooledAgent,
    call: EffectCall,
  ): Promise<EffectOutcome | undefined> => {
    try {
      await site(args.hub).agents.label(agent.id, ownerOf(agent), callOptionsOf(call, CALL_DEADLINE_MS));
      return undefined;
    } catch (error) {
      if (!(error instanceof SiteError) || error.kind !== 'conflict') throw error;
      const { holder } = args;
      const rejected = { at: clock.now(), holder, agent: agent.id, reason: error.message };
      await execute(args, { type: 'RejectAgent', ...rejected }, call, agent.id);
      return failed('AgentMarkedElsewhere', `agent ${agent.id}: ${error.message}`);
    }
  };

  const bind = async (args: Args, pool: AgentPoolState, call: EffectCall): Promise<EffectOutcome> => {
    const { holder } = args;
    const held = agentsOf(pool, holder);
    const generations = new Set(held.map(({ generation = 0 }) => generation));
    for (const generation of generations) {
      const command = { type: 'BindAgents', at: clock.now(), holder, generation } as const;
      if (held.some((agent) => agent.generation === generation && agent.state === 'reserved'))
        await execute(args, command, call, generation);
    }
    return done({
      agents: held.map((agent) => shown(agent, args.hub)),
      generation: Math.max(...generations, 0),
    });
  };

  const addresses = async (args: Args, call: EffectCall): Promise<EffectOutcome> => {
    const held = agentsOf(await poolOf(args, call), args.holder);
    const of = { hub: args.hub, order: args.holder.id };
    const seen = await site(args.hub).agents.observe(of, callOptionsOf(call, CALL_DEADLINE_MS));
    const known = new Map(seen.map((agent) => [agent.id, agent.addresses]));
    const silent = held.filter(({ id }) => (known.get(id) ?? []).length === 0);
    if (silent.length > 0)
      return done({ waiting: `no address seen yet of: ${silent.map(({ id }) => id).join(', ')}` });
    return done({ addresses: Object.fromEntries(held.map(({ id }) => [id, known.get(id) ?? []])) });
  };

  const giveBack = async (
    { keep, generation, ...args }: Return,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { holder } = args;
    const more = { ...(keep && { keep }), ...(generation !== undefined && { generation }) };
    const command = { type: 'ReleaseAgents', at: clock.now(), holder, ...more } as const;
    const pool = await execute(args, command, call);
    for (const agent of agentsIn(pool)) {
      const isOurs = agent.holder !== undefined && holderKey(agent.holder) === holderKey(holder);
      if (agent.state !== 'cleaning' || !isOurs) continue;
      await site(args.hub)
        .agents.clean(agent.id, ownerOf(agent), callOptionsOf(call, CALL_DEADLINE_MS))
        // It is not ours any more; the next look at the site takes it out of the pool.
        .catch((error: unknown) => {
          if (!(error instanceof SiteError) || error.kind !== 'conflict') throw error;
        });
    }
    return done({ held: agentsOf(pool, holder).length > 0 });
  };

  const look = async (args: Args, call: EffectCall): Promise<EffectOutcome> => {
    const pool = await poolOf(args, call);
    const held = agentsOf(pool, args.holder);
    const generation = held.at(-1)?.generation;
    const waits = waitingOf(pool, args.holder);
    return done({
      agents: held.map((agent) => shown(agent, args.hub)),
      ...(generation === undefined ? {} : { generation }),
      ...(waits && { waiting: shortage(pool, args.holder, clock.now()) }),
    });
  };

  const site = (hub: string): Pick<Site, 'agents' | 'discovery'> => {
    const found = siteOf(hub);
    if (found === undefined) throw new SiteError('unavailable', `nothing reaches the site of hub ${hub}`);
    return found;
  };

  return effectPort({ select, addresses, return: giveBack, look }, (error) => {
    if (error instanceof Refused) return refused(error.code, error.message);
    return error instanceof SiteError ? outcomeOfSite(error) : storeOutcome(error);
  });
};

class Refused extends Error {
  override readonly name = 'Refused';
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const outcomeOfSite = ({ kind, message, retryAfterMs }: SiteError): EffectOutcome => {
  switch (kind) {
    case 'refused':
      return refused('RefusedBySite', message);
    case 'unknown-outcome':
      return { outcome: 'unknown', reason: 'OutcomeUnknown', message };
    default:
      return failed('SiteUnavailable', message, retryAfterMs);
  }
};

/** Of an agent without holder that is wiped: the pool's own. */
export const ownerOf = ({ holder, generation = 0 }: PooledAgent): OwnerMark => ({
  order: holder?.id ?? 'agent-pool',
  generation,
});

const shown = ({ id, hostClass, links }: PooledAgent, hub: string) => ({ id, hub, hostClass, links });

/** What an order is short of, in words. */
export const shortage = (pool: AgentPoolState, holder: Holder, at: string): string => {
  const { wanted = {} } = waitingOf(pool, holder) ?? {};
  const have = haveOf(pool, wanted);
  const short = Object.entries(wanted).map(
    ([hostClass, size]) => `${size} ${hostClass} (${have[hostClass] ?? 0} free)`,
  );
  return `waits for agents: ${short.join(', ')}; position ${positionOf(pool, holder, at)}`;
};
