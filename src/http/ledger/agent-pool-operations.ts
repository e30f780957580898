import { z } from 'zod';
import { SERVICE_LEVELS } from '../../domain/hot-pool/sizing.ts';
import type { Descriptions } from '../openapi/description.ts';
import { COUNT, itemsOf, listOf, mapOf, maybe, neededText, NO_BODY, TEXT, TIME } from './forms.ts';

const TARGET = z.strictObject({
  target: COUNT.describe('Agents that are to be free or on their way.'),
  min_free: COUNT.describe('Free agents that orders of low priority leave alone.'),
  orders_per_hour: z.number().min(0),
  lead_hours: z.number(),
  mean_size: z.number().describe('Agents per order.'),
  mean_square: z.number(),
  service_level: z.union(SERVICE_LEVELS.map((level) => z.literal(level))),
  idle_hosts: z.number().describe('Agents that wait for nothing, on average.'),
  ...maybe({ idle_cost_per_hour: z.number().describe('At the cost that `host_hour` says.') }),
});
const WAITING = z.strictObject({
  kind: TEXT,
  id: TEXT,
  position: COUNT,
  priority: z.enum(['high', 'low']),
  wanted: mapOf(COUNT).describe('By host type.'),
  since: TIME,
  eta: TIME.nullable().describe('When it probably has its agents. Null: more are wanted than can come.'),
});
const CLASS = z.strictObject({
  host_class: TEXT.describe('Id of the host type.'),
  free: COUNT,
  reserved: COUNT,
  bound: COUNT,
  cleaning: COUNT,
  failed: COUNT,
  retired: COUNT,
  discovering: COUNT,
  ...maybe({
    known: COUNT.describe('Hosts that discovery can still bring. Absent: nobody knows.'),
    low_since: TIME.describe('Since when fewer than the target are free or on their way.'),
    hot_pool: TARGET,
  }),
});
const POOL = { hub: TEXT, classes: listOf(CLASS), waiting: listOf(WAITING) };
const AGENT_POOL = z.strictObject(POOL).meta({ id: 'AgentPool' });
export type AgentPool = z.infer<typeof AGENT_POOL>;

const AGENT = z
  .strictObject({
    agent: TEXT,
    host_class: TEXT,
    state: z.enum(['free', 'reserved', 'bound', 'cleaning', 'failed', 'retired']),
    since: TIME,
    ...maybe({
      holder: z.strictObject({ kind: TEXT, id: TEXT }),
      reason: TEXT.describe('Why it failed or was retired.'),
      cleaned: z.strictObject({ at: TIME, evidence: TEXT }),
    }),
  })
  .meta({ id: 'PooledAgent' });
export type PoolAgent = z.infer<typeof AGENT>;
const AGENT_POOL_DETAILS = z
  .strictObject({ ...POOL, agents: listOf(AGENT) })
  .meta({ id: 'AgentPoolDetails' });
export type AgentPoolDetails = z.infer<typeof AGENT_POOL_DETAILS>;

export const AGENT_POOLS_QUERY = z.object({
  host_hour: z
    .number()
    .min(0)
    .describe('Cost of one host per hour, in any currency: the answer then shows the idle cost.')
    .optional(),
});
export const RETIRE_BODY = z.strictObject({ reason: neededText(1_000, 'why the agent is taken out') });

export const AGENT_POOL_DESCRIPTIONS: Descriptions = {
  'GET pools/agents': {
    summary: 'Agents of each hub whose agents the ledger owns, by class and state, and the orders that wait',
    query: AGENT_POOLS_QUERY,
    answer: itemsOf(AGENT_POOL),
  },
  'GET pools/agents/{hub}': {
    summary: 'The same of one hub, with each agent',
    query: AGENT_POOLS_QUERY,
    answer: AGENT_POOL_DETAILS,
  },
  'POST pools/agents/{hub}/{agent}/clean': {
    summary: 'Has a failed or retired agent wiped, after which it is free',
    body: NO_BODY,
    answer: AGENT,
    errors: ['FAILED_PRECONDITION'],
  },
  'POST pools/agents/{hub}/{agent}/retire': {
    summary: 'Takes a free or failed agent out of the pool until it is wiped again',
    body: RETIRE_BODY,
    answer: AGENT,
    errors: ['FAILED_PRECONDITION'],
  },
};
