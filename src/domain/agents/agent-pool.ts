import type { Decider } from '../decider.ts';
import { decideAgents, type AgentPoolCommand } from './decisions.ts';
import type { AgentPoolEvent } from './event-types.ts';
import { EMPTY_POOL, evolveAgents, type AgentPoolState } from './pool-state.ts';

/**
 * All agents of one hub. One stream for a hub, not one for a class or an agent: so an order gets agents of several
 * classes in one append, or none, and an agent has one owner without a transaction over streams.
 */
export const AGENT_POOL_CATEGORY = 'agentPool';

export const agentPoolDecider: Decider<AgentPoolState, AgentPoolCommand, AgentPoolEvent> = {
  initialState: () => EMPTY_POOL,
  evolve: evolveAgents,
  decide: decideAgents,
};
