import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { SERVICE_LEVELS } from '../hot-pool/sizing.ts';
import {
  count,
  counts,
  list,
  listOf,
  mayBe,
  text,
  time,
  typesOf,
  type EventOf,
  type Shapes,
} from '../schemas.ts';

const holder = z.strictObject({ kind: text, id: text });
/** A port of the host, and the port of a switch that it is plugged into. */
export const agentLink = z.strictObject({ fabric: text, switch: text, port: text, mac: text });
const wipe = z.strictObject({ at: time, evidence: text });
export const PRIORITIES = ['high', 'low'] as const;

/**
 * Events of `agentPool-<hub id>`: the one stream that owns every agent of a hub. An order gets all of its agents in one
 * event, over all classes, or none; no agent has two holders.
 */
export const AGENT_POOL = {
  /** Of one class, how many hosts of the hub are neither agents nor on their way. Absent: nobody knows. */
  HardwareCounted: { hostClass: text, known: count.exactOptional() },
  /** A host was asked for, for the `attempt`th time. It counts as failed when it is no agent by `deadline`. */
  DiscoveryStarted: { discovery: text, hostClass: text, attempt: count, deadline: time },
  DiscoveryFailed: { discovery: text, reason: text },
  /** `discovery`: which led to it. Absent: it appeared by itself. */
  AgentDiscovered: {
    agent: text,
    hostClass: text,
    links: listOf(agentLink),
    discovery: mayBe,
    cleaned: wipe.exactOptional(),
  },
  /** Too few are free: the order waits and holds none. `have`: free ones of the classes that it wants. */
  AgentsAwaited: { holder, wanted: counts, have: counts, priority: z.enum(PRIORITIES) },
  AgentsReserved: { holder, generation: count, agents: list, priority: z.enum(PRIORITIES) },
  /** The site marked them as the holder's. */
  AgentsBound: { holder, generation: count },
  /** They are wiped before anybody else gets them. The holder waits for no more either. */
  AgentsReleased: { holder, agents: list },
  AgentCleaned: { agent: text, cleaned: wipe },
  AgentFailed: { agent: text, reason: text },
  /** A failed or retired agent is wiped, or wiped again. `generation`: of the mark, where it has no holder. */
  AgentCleaningStarted: { agent: text, generation: count.exactOptional() },
  AgentRetired: { agent: text, reason: text },
  /** How many agents of a class are to be free or on their way, and what that follows from. */
  HotPoolTargetChanged: {
    hostClass: text,
    target: count,
    minFree: count,
    ordersPerHour: z.number().min(0),
    leadHours: z.number().positive(),
    meanSize: z.number().min(0),
    meanSquare: z.number().min(0),
    serviceLevel: z.union(SERVICE_LEVELS.map((level) => z.literal(level))),
  },
} as const satisfies Shapes;

export type AgentPoolEvent = EventOf<typeof AGENT_POOL>;

export const agentEventTypes: readonly EventType[] = typesOf(
  { context: 'hubs', audience: 'provider' },
  AGENT_POOL,
);
