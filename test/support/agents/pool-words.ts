import type { AgentPoolCommand, SeenAgent } from '../../../src/domain/agents/decisions.ts';
import type { AgentPoolEvent } from '../../../src/domain/agents/event-types.ts';
import type { Priority, Wanted } from '../../../src/domain/agents/pool-state.ts';
import type { Holder } from '../../../src/domain/holder.ts';

/** Events and commands of an agent pool, as specs write them. */
export const START = '2026-11-23T12:00:00.000Z';
export const minutes = (n: number): string => new Date(Date.parse(START) + n * 60_000).toISOString();
export const order = (id: string): Holder => ({ kind: 'cluster', id });
const links = [{ fabric: 'f1', switch: 'leaf-1', port: '1', mac: '52:54:00:00:00:01' }];

export const discovered = (agent: string, hostClass = 'fc430', at = START): AgentPoolEvent => ({
  type: 'AgentDiscovered',
  data: { at, agent, hostClass, links },
});
export const awaited = (
  id: string,
  wanted: Wanted,
  have: Wanted,
  at = START,
  priority: Priority = 'high',
): AgentPoolEvent => ({ type: 'AgentsAwaited', data: { at, holder: order(id), wanted, have, priority } });
export const reserved = (
  id: string,
  generation: number,
  agents: readonly string[],
  at = START,
  priority: Priority = 'high',
): AgentPoolEvent => ({
  type: 'AgentsReserved',
  data: { at, holder: order(id), generation, agents, priority },
});
export const bound = (id: string, generation: number, at = START): AgentPoolEvent => ({
  type: 'AgentsBound',
  data: { at, holder: order(id), generation },
});
export const released = (id: string, agents: readonly string[], at = START): AgentPoolEvent => ({
  type: 'AgentsReleased',
  data: { at, holder: order(id), agents },
});
export const wiped = (at: string) => ({ at, evidence: `wiped at ${at}` });
export const cleaned = (agent: string, at = START): AgentPoolEvent => ({
  type: 'AgentCleaned',
  data: { at, agent, cleaned: wiped(at) },
});
export const failedAgent = (agent: string, reason: string, at = START): AgentPoolEvent => ({
  type: 'AgentFailed',
  data: { at, agent, reason },
});

export const select = (
  id: string,
  wanted: Wanted,
  at = START,
  priority: Priority = 'high',
): AgentPoolCommand => ({ type: 'SelectAgents', at, holder: order(id), wanted, priority });
export const release = (id: string, more: { keep?: Wanted; generation?: number } = {}, at = START) =>
  ({ type: 'ReleaseAgents', at, holder: order(id), ...more }) as const;
export const seen = (id: string, more: Partial<SeenAgent> = {}): SeenAgent => ({
  id,
  hostClass: 'fc430',
  links,
  state: 'free',
  ...more,
});
export const look = (
  agents: readonly SeenAgent[],
  more: Partial<Extract<AgentPoolCommand, { type: 'ObserveSite' }>> = {},
): AgentPoolCommand => ({ type: 'ObserveSite', at: START, agents, discoveries: [], hardware: {}, ...more });
