import { reject, type Decision, type Rejection } from '../decider.ts';
import { holderKey, type Holder } from '../holder.ts';
import { expected } from '../hot-pool/forecast.ts';
import { baseStock, floorFor, isNewTarget, type ServiceLevel } from '../hot-pool/sizing.ts';
import { own, sameJson } from '../json-tools.ts';
import {
  agentOf,
  agentsOf,
  countByClass,
  evolveAgents,
  stockOf,
  waitingOf,
  type AgentPoolState,
  type PooledAgent,
  type Priority,
  type Wanted,
} from './pool-state.ts';
import type { AgentPoolEvent } from './event-types.ts';
import { agentsIn, DISCOVERY_DEADLINE_MS, grants, haveOf, shortOf } from './queue.ts';

/** An agent as its site shows it. */
export type SeenAgent = Pick<PooledAgent, 'id' | 'hostClass' | 'links' | 'cleaned'> & {
  readonly state: 'free' | 'labelled' | 'cleaning' | 'failed';
  /** Id of the order that it is marked for. */
  readonly owner?: string;
};
/** A host that was asked for, as its site shows it; `id` as `discoveryId` makes it. */
export type SeenDiscovery = {
  readonly id: string;
  readonly state: 'discovering' | 'found' | 'failed';
  readonly agent?: string;
};

/** The site knows each attempt by an id of its own. */
export const discoveryId = (discovery: string, attempt: number): string => `${discovery}-${attempt}`;
/** Attempts in a row for one host, then it rests. */
const ATTEMPTS = 3;
const REST_MS = 3_600_000;

type Asked = { readonly at: string; readonly holder: Holder };
export type AgentPoolCommand =
  /** `wanted`: what the holder is to have in all. */
  | ({ readonly type: 'SelectAgents'; readonly wanted: Wanted; readonly priority: Priority } & Asked)
  | ({ readonly type: 'BindAgents'; readonly generation: number } & Asked)
  /** `keep`: what the holder is to have afterwards. `generation`: no agent that it was given later. */
  | ({ readonly type: 'ReleaseAgents'; readonly keep?: Wanted; readonly generation?: number } & Asked)
  /** One look at the site, with all of its agents. `hardware`: hosts of a class that are no agents yet. */
  | {
      readonly type: 'ObserveSite';
      readonly at: string;
      readonly agents: readonly SeenAgent[];
      readonly discoveries: readonly SeenDiscovery[];
      readonly hardware: { readonly [hostClass: string]: number | undefined };
    }
  /** The site took it on. `attempt`: of `nextDiscoveries`. */
  | {
      readonly type: 'StartDiscovery';
      readonly at: string;
      readonly discovery: string;
      readonly hostClass: string;
      readonly attempt: number;
    }
  | {
      readonly type: 'ReviewTarget';
      readonly at: string;
      readonly hostClass: string;
      readonly serviceLevel: ServiceLevel;
      readonly leadHours: number;
      /** Orders per hour to reckon with at least. */
      readonly floor: number;
    }
  /** The site has it marked for somebody else: the reservation is given up, and nobody gets this agent. */
  | ({ readonly type: 'RejectAgent'; readonly agent: string; readonly reason: string } & Asked)
  /** By a person. */
  | { readonly type: 'CleanAgent'; readonly at: string; readonly agent: string }
  | { readonly type: 'RetireAgent'; readonly at: string; readonly agent: string; readonly reason: string };

/** Whatever becomes free with a command goes to whoever waits for it in the same append. */
export const decideAgents = (state: AgentPoolState, command: AgentPoolCommand): Decision<AgentPoolEvent> => {
  const { at } = command;
  const decided = decideOne(state, command);
  if ('rejected' in decided) return decided;
  const after = decided.reduce(evolveAgents, state);
  return [...decided, ...reservations(after, at)];
};

const reservations = (state: AgentPoolState, at: string): readonly AgentPoolEvent[] =>
  grants(state, at).map(({ waiting: { holder, priority }, agents }, index) => ({
    type: 'AgentsReserved',
    data: { at, holder, generation: state.generation + index + 1, agents, priority },
  }));

const decideOne = (state: AgentPoolState, command: AgentPoolCommand): Decision<AgentPoolEvent> => {
  switch (command.type) {
    case 'SelectAgents':
      return select(state, command);
    case 'BindAgents': {
      const { at, holder, generation } = command;
      const ofGeneration = agentsOf(state, holder).filter((agent) => agent.generation === generation);
      if (ofGeneration.length === 0)
        return refuse('NO_AGENTS_HELD', `${named(holder)} holds no agents of generation ${generation}`);
      return ofGeneration.every((agent) => agent.state === 'bound')
        ? []
        : [{ type: 'AgentsBound', data: { at, holder, generation } }];
    }
    case 'ReleaseAgents':
      return release(state, command);
    case 'RejectAgent': {
      const { at, holder, agent, reason } = command;
      const known = agentOf(state, agent);
      const { generation } = known ?? {};
      const reserved = agentsOf(state, holder).filter((each) => each.generation === generation);
      if (!reserved.some(({ id, state: now }) => id === agent && now === 'reserved')) return [];
      return [
        { type: 'AgentsReleased', data: { at, holder, agents: reserved.map(({ id }) => id) } },
        { type: 'AgentFailed', data: { at, agent, reason } },
      ];
    }
    case 'ObserveSite':
      return observe(state, command);
    case 'StartDiscovery': {
      const { at, discovery, hostClass, attempt } = command;
      const former = own(state.discoveries, discovery);
      if (attempt <= (former?.attempt ?? 0)) return [];
      const deadline = later(at, DISCOVERY_DEADLINE_MS);
      return [{ type: 'DiscoveryStarted', data: { at, discovery, hostClass, attempt, deadline } }];
    }
    case 'ReviewTarget':
      return review(state, command);
    case 'CleanAgent': {
      const agent = agentOf(state, command.agent);
      if (agent === undefined) return unknownAgent(command.agent);
      if (agent.state === 'cleaning') return [];
      if (agent.state !== 'failed' && agent.state !== 'retired') return inUse(agent, 'failed or retired');
      return [wipe(state, agent, command.at)];
    }
    case 'RetireAgent': {
      const agent = agentOf(state, command.agent);
      if (agent === undefined) return unknownAgent(command.agent);
      if (agent.state === 'retired') return [];
      if (agent.state !== 'free' && agent.state !== 'failed') return inUse(agent, 'free or failed');
      const { at, reason } = command;
      return [{ type: 'AgentRetired', data: { at, agent: agent.id, reason } }];
    }
  }
};

const select = (
  state: AgentPoolState,
  { at, holder, wanted, priority }: Extract<AgentPoolCommand, { type: 'SelectAgents' }>,
): Decision<AgentPoolEvent> => {
  const bad = badCount(wanted);
  if (bad !== undefined) return bad;
  const missing = shortOf(wanted, countByClass(agentsOf(state, holder)));
  const former = waitingOf(state, holder);
  if (Object.keys(missing).length === 0) {
    // It wants less than it did; it waits for nothing more.
    return former === undefined ? [] : [{ type: 'AgentsReleased', data: { at, holder, agents: [] } }];
  }
  if (former !== undefined && sameJson(former.wanted, missing) && former.priority === priority) return [];
  const waits: AgentPoolEvent = {
    type: 'AgentsAwaited',
    data: { at, holder, wanted: missing, have: haveOf(state, missing), priority },
  };
  if (former !== undefined) return [waits];
  // What can be had at once was never waited for.
  const key = holderKey(holder);
  const now = grants(evolveAgents(state, waits), at).find((each) => holderKey(each.waiting.holder) === key);
  if (now === undefined) return [waits];
  const generation = state.generation + 1;
  return [{ type: 'AgentsReserved', data: { at, holder, generation, agents: now.agents, priority } }];
};

const release = (
  state: AgentPoolState,
  {
    at,
    holder,
    keep = {},
    generation = state.generation,
  }: Extract<AgentPoolCommand, { type: 'ReleaseAgents' }>,
): Decision<AgentPoolEvent> => {
  const bad = badCount(keep);
  if (bad !== undefined) return bad;
  const kept = new Map(Object.entries(keep));
  const agents = agentsOf(state, holder)
    .filter((agent) => {
      const left = kept.get(agent.hostClass) ?? 0;
      kept.set(agent.hostClass, left - 1);
      return left <= 0 && (agent.generation ?? 0) <= generation;
    })
    .map(({ id }) => id);
  const waits = waitingOf(state, holder) !== undefined;
  return agents.length === 0 && !waits ? [] : [{ type: 'AgentsReleased', data: { at, holder, agents } }];
};

const observe = (
  state: AgentPoolState,
  { at, agents, discoveries, hardware }: Extract<AgentPoolCommand, { type: 'ObserveSite' }>,
): readonly AgentPoolEvent[] => {
  const shown = new Map(discoveries.map((each) => [each.id, each]));
  const asked = Object.entries(state.discoveries).filter(([, { failedAt }]) => failedAt === undefined);
  const shownOf = (id: string, attempt: number) => shown.get(discoveryId(id, attempt));
  const foundBy = new Map(asked.map(([id, { attempt }]) => [shownOf(id, attempt)?.agent, id]));
  const seen = new Set(agents.map(({ id }) => id));
  const ofAgents = agents.flatMap((agent) => observeAgent(state, agent, at, foundBy.get(agent.id)));
  const gone = agentsIn(state).filter(
    (agent) => !seen.has(agent.id) && ['free', 'cleaning', 'failed'].includes(agent.state),
  );
  const found = new Set(ofAgents.map(({ data }) => ('discovery' in data ? data.discovery : undefined)));
  const failures = asked.flatMap(([discovery, { attempt, deadline }]): readonly AgentPoolEvent[] => {
    if (found.has(discovery)) return [];
    const { state: now, agent = '' } = shownOf(discovery, attempt) ?? {};
    const isOthers = now === 'found' && agentOf(state, agent) !== undefined;
    const reason =
      now === 'failed'
        ? 'the site could not make an agent of the host'
        : isOthers
          ? `the host is agent ${agent}, which is known`
          : deadline <= at
            ? `no agent appeared until ${deadline}`
            : undefined;
    return reason === undefined ? [] : [{ type: 'DiscoveryFailed', data: { at, discovery, reason } }];
  });
  const events: readonly AgentPoolEvent[] = [
    ...ofAgents,
    ...gone.map(
      ({ id }): AgentPoolEvent => ({
        type: 'AgentRetired',
        data: { at, agent: id, reason: GONE },
      }),
    ),
    ...failures,
  ];
  const after = events.reduce(evolveAgents, state);
  return [...events, ...Object.entries(hardware).flatMap((each) => countHardware(after, at, ...each))];
};

const observeAgent = (
  state: AgentPoolState,
  seen: SeenAgent,
  at: string,
  discovery: string | undefined,
): readonly AgentPoolEvent[] => {
  const { id: agent, hostClass, links, cleaned, owner } = seen;
  const known = agentOf(state, agent);
  if (known === undefined) {
    // Whatever it is in the middle of, it is an agent of ours once it is free.
    if (seen.state !== 'free') return [];
    const more = { ...(discovery === undefined ? {} : { discovery }), ...(cleaned && { cleaned }) };
    return [{ type: 'AgentDiscovered', data: { at, agent, hostClass, links, ...more } }];
  }
  const failed = (reason: string): AgentPoolEvent => ({ type: 'AgentFailed', data: { at, agent, reason } });
  const begun = wipe(state, known, at);
  const isClean = seen.state === 'free' && cleaned !== undefined && !sameJson(cleaned, known.cleaned);
  const clean = isClean ? [{ type: 'AgentCleaned' as const, data: { at, agent, cleaned } }] : [];
  switch (known.state) {
    case 'free':
      if (seen.state === 'failed') return [failed('the site shows it as failed')];
      return owner === undefined ? [] : [failed(`the site has it marked for order ${owner}`)];
    case 'cleaning':
      if (seen.state === 'failed') return [failed('it could not be wiped')];
      return owner === undefined || owner === known.holder?.id
        ? clean
        : [failed(`the site has it marked for order ${owner}`)];
    case 'failed':
      return isClean || seen.state === 'cleaning' ? [begun, ...clean] : [];
    case 'retired':
      return known.reason === GONE ? [begun] : [];
    default:
      return [];
  }
};

/** One without a holder is wiped under a mark of the pool's own, which no former wipe had. */
const wipe = (state: AgentPoolState, { id: agent, holder }: PooledAgent, at: string): AgentPoolEvent => ({
  type: 'AgentCleaningStarted',
  data: { at, agent, ...(holder === undefined ? { generation: state.generation + 1 } : {}) },
});

/** Hosts that nobody found or looks for. Those that failed are asked for by the number that they have. */
const countHardware = (
  state: AgentPoolState,
  at: string,
  hostClass: string,
  remaining: number | undefined,
): readonly AgentPoolEvent[] => {
  const failed = Object.values(state.discoveries).filter(
    (each) => each.hostClass === hostClass && each.failedAt !== undefined,
  ).length;
  const known = remaining === undefined ? undefined : Math.max(0, remaining - failed);
  const before = own(state.classes, hostClass);
  // A class of which the hub has nothing, and that nobody wants, is none of its pool.
  if (before === undefined ? known === 0 : known === before.known) return [];
  return [{ type: 'HardwareCounted', data: { at, hostClass, ...(known === undefined ? {} : { known }) } }];
};

const review = (
  state: AgentPoolState,
  { at, hostClass, serviceLevel, leadHours, floor }: Extract<AgentPoolCommand, { type: 'ReviewTarget' }>,
): readonly AgentPoolEvent[] => {
  const { target: former, demand } = stockOf(state, hostClass);
  const inputs = { ...expected(demand, at, floor), leadHours, serviceLevel };
  const target = baseStock(inputs);
  const minFree = target === 0 ? 0 : floorFor(demand?.largestHigh ?? 0, inputs.meanSize);
  const isSame =
    !isNewTarget(former?.target ?? 0, target) &&
    minFree <= (former?.minFree ?? 0) &&
    (former === undefined || (former.serviceLevel === serviceLevel && former.leadHours === leadHours));
  return isSame
    ? []
    : [{ type: 'HotPoolTargetChanged', data: { at, hostClass, target, minFree, ...inputs } }];
};

/**
 * The next hosts of a class to ask for: others first, then those that failed. What failed three times in a row rests.
 */
export const nextDiscoveries = (
  state: AgentPoolState,
  hostClass: string,
  wanted: number,
  at: string,
): readonly { readonly discovery: string; readonly attempt: number }[] => {
  const { known = Infinity } = stockOf(state, hostClass);
  const others = Array.from({ length: Math.min(wanted, known) }, (_, index) => ({
    discovery: `${hostClass}-${state.asked + index + 1}`,
    attempt: 1,
  }));
  const again = triable(state, hostClass, at).slice(0, wanted - others.length);
  return [...others, ...again];
};

/** Hosts whose last attempt failed, and that may be asked for again. */
export const triable = (state: AgentPoolState, hostClass: string, at: string) =>
  Object.entries(state.discoveries).flatMap(([discovery, each]) => {
    const { failedAt, attempt } = each;
    if (each.hostClass !== hostClass || failedAt === undefined) return [];
    const rests = attempt % ATTEMPTS === 0 && at < later(failedAt, REST_MS);
    return rests ? [] : [{ discovery, attempt: attempt + 1 }];
  });

const GONE = 'the site shows it no longer';

const later = (at: string, ms: number): string => new Date(Date.parse(at) + ms).toISOString();
const named = ({ kind, id }: Holder): string => `${kind} '${id}'`;

const refuse = (code: string, message: string): Rejection => reject('failed-precondition', code, message);
const unknownAgent = (id: string): Rejection =>
  reject('not-found', 'NO_SUCH_AGENT', `agent '${id}' not found`);
const inUse = ({ id, state, holder }: PooledAgent, needed: string): Rejection =>
  refuse(
    'AGENT_IN_USE',
    `agent '${id}' is ${state}${holder === undefined ? '' : ` for ${named(holder)}`}: it has to be ${needed}`,
  );

const badCount = (wanted: Wanted): Rejection | undefined => {
  const bad = Object.entries(wanted).find(([, size]) => !Number.isSafeInteger(size) || size < 0);
  return (
    bad &&
    reject(
      'invalid',
      'INVALID_AGENT_COUNT',
      `${bad[1]} agents of class '${bad[0]}': the count must be a whole number from 0 on`,
    )
  );
};
