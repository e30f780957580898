import { entriesOf, entryOf, withEntry, type Buckets } from '../buckets.ts';
import { holderKey, type Holder } from '../holder.ts';
import { withOrder, type Demand } from '../hot-pool/forecast.ts';
import { isLow } from '../hot-pool/refill.ts';
import { own } from '../json-tools.ts';
import type { DataOf } from '../decider.ts';
import type { AgentPoolEvent } from './event-types.ts';

export type AgentState = 'free' | 'reserved' | 'bound' | 'cleaning' | 'failed' | 'retired';
export const AGENT_STATES: readonly AgentState[] = [
  'free',
  'reserved',
  'bound',
  'cleaning',
  'failed',
  'retired',
];

type Discovered = DataOf<AgentPoolEvent, 'AgentDiscovered'>;
type Awaited = DataOf<AgentPoolEvent, 'AgentsAwaited'>;
type Started = DataOf<AgentPoolEvent, 'DiscoveryStarted'>;
export type Priority = Awaited['priority'];
export type Wanted = { readonly [hostClass: string]: number };

export type PooledAgent = {
  readonly id: string;
  readonly hostClass: string;
  readonly links: Discovered['links'];
  readonly state: AgentState;
  readonly since: string;
  /** Of its holder, and until it is clean of the one before: the site knows the mark by it. */
  readonly holder?: Holder;
  readonly generation?: number;
  /** Evidence of the last wipe that counted: another one has to follow the next release. */
  readonly cleaned?: Discovered['cleaned'];
  /** Why it failed or was retired. */
  readonly reason?: string;
};

export type Waiting = Pick<Awaited, 'holder' | 'wanted' | 'priority'> & { readonly since: string };

export type HostDiscovery = Pick<Started, 'hostClass' | 'attempt' | 'deadline'> & {
  readonly startedAt: string;
  /** Its last attempt failed then. */
  readonly failedAt?: string;
};

/** What is known of one class. Absent numbers are 0. */
export type ClassStock = {
  readonly counts: { readonly [State in AgentState]?: number };
  /** The free ones; the one that is free for the longest time goes first. */
  readonly free: readonly string[];
  /** Hosts that nobody asked for yet. Absent: nobody knows. */
  readonly known?: number;
  readonly demand?: Demand;
  readonly target?: Omit<DataOf<AgentPoolEvent, 'HotPoolTargetChanged'>, 'hostClass'>;
  /** Since when fewer than the target are free or on their way. */
  readonly lowSince?: string;
};

export type AgentPoolState = {
  /** The last one that was given. */
  readonly generation: number;
  readonly agents: Buckets<PooledAgent>;
  /** Ids of agents by holder. */
  readonly held: Buckets<readonly string[]>;
  /** In the order in which they began to wait. */
  readonly waiting: readonly Waiting[];
  readonly classes: { readonly [hostClass: string]: ClassStock };
  readonly discoveries: { readonly [id: string]: HostDiscovery };
  /** How many hosts were ever asked for. */
  readonly asked: number;
};

const EMPTY: ClassStock = { counts: {}, free: [] };

export const stockOf = ({ classes }: AgentPoolState, hostClass: string): ClassStock =>
  own(classes, hostClass) ?? EMPTY;
export const agentOf = ({ agents }: AgentPoolState, id: string): PooledAgent | undefined =>
  entryOf(agents, id);
/** What a holder has, oldest first. */
export const agentsOf = (state: AgentPoolState, holder: Holder): readonly PooledAgent[] =>
  (entryOf(state.held, holderKey(holder)) ?? []).flatMap((id) => entryOf(state.agents, id) ?? []);
export const waitingOf = ({ waiting }: AgentPoolState, holder: Holder): Waiting | undefined =>
  waiting.find((each) => holderKey(each.holder) === holderKey(holder));
/** Keys of all that hold agents or wait for some. */
export const holdersIn = ({ held, waiting }: AgentPoolState): readonly string[] => [
  ...new Set([...entriesOf(held).map(([key]) => key), ...waiting.map(({ holder }) => holderKey(holder))]),
];
/** Hosts of a class that were asked for and are on their way. */
export const discoveringIn = ({ discoveries }: AgentPoolState, hostClass: string): number =>
  Object.values(discoveries).filter((each) => each.hostClass === hostClass && each.failedAt === undefined)
    .length;
/** What waiting orders want of a class. */
export const awaitedIn = ({ waiting }: AgentPoolState, hostClass: string): number =>
  waiting.reduce((sum, { wanted }) => sum + (own(wanted, hostClass) ?? 0), 0);
/**
 * Nodes that a hub can have of each class: its agents, and hosts that can still become some. Undefined: nobody knows how
 * many hosts it has, so nothing is limited by it.
 */
export const nodesOf = (state: AgentPoolState): Wanted | undefined => {
  const classes = Object.entries(state.classes);
  if (classes.length === 0 || classes.some(([, { known }]) => known === undefined)) return undefined;
  const nodes = classes.map(([hostClass, { counts, known = 0 }]) => {
    const usable = (['free', 'reserved', 'bound', 'cleaning'] as const).map((each) => counts[each] ?? 0);
    const there = usable.reduce((sum, each) => sum + each, 0);
    const asked = Object.values(state.discoveries).filter((each) => each.hostClass === hostClass).length;
    return [hostClass, there + asked + known] as const;
  });
  return Object.fromEntries(nodes);
};

export const countByClass = (agents: readonly PooledAgent[]): Wanted => {
  const counts = new Map<string, number>();
  for (const { hostClass } of agents) counts.set(hostClass, (counts.get(hostClass) ?? 0) + 1);
  return Object.fromEntries(counts);
};

export const EMPTY_POOL: AgentPoolState = {
  generation: 0,
  agents: {},
  held: {},
  waiting: [],
  classes: {},
  discoveries: {},
  asked: 0,
};

export const evolveAgents = (state: AgentPoolState, event: AgentPoolEvent): AgentPoolState =>
  withLows(fold(state, event), event.data.at);

const fold = (state: AgentPoolState, event: AgentPoolEvent): AgentPoolState => {
  const { at } = event.data;
  switch (event.type) {
    case 'HardwareCounted': {
      const { hostClass, known } = event.data;
      const { known: _before, ...stock } = stockOf(state, hostClass);
      return withStock(state, hostClass, known === undefined ? stock : { ...stock, known });
    }
    case 'DiscoveryStarted':
      return started(state, event.data);
    case 'DiscoveryFailed': {
      const { discovery } = event.data;
      const former = own(state.discoveries, discovery);
      if (former === undefined) return state;
      return { ...state, discoveries: { ...state.discoveries, [discovery]: { ...former, failedAt: at } } };
    }
    case 'AgentDiscovered': {
      const { agent: id, hostClass, links, discovery = '', cleaned } = event.data;
      const { [discovery]: _found, ...discoveries } = state.discoveries;
      const agent = { id, hostClass, links, state: 'free', since: at } as const;
      return withAgent({ ...state, discoveries }, cleaned === undefined ? agent : { ...agent, cleaned });
    }
    case 'AgentsAwaited': {
      const { holder, wanted, priority } = event.data;
      const former = waitingOf(state, holder);
      const waiting = { holder, wanted, priority, since: former?.since ?? at };
      if (former !== undefined)
        return { ...state, waiting: state.waiting.map((each) => (each === former ? waiting : each)) };
      return { ...counted(state, at, wanted, priority), waiting: [...state.waiting, waiting] };
    }
    case 'AgentsReserved':
      return reserved(state, event.data);
    case 'AgentsBound': {
      const { holder, generation } = event.data;
      return agentsOf(state, holder)
        .filter((agent) => agent.generation === generation)
        .reduce((now, agent) => withAgent(now, { ...agent, state: 'bound', since: at }), state);
    }
    case 'AgentsReleased':
      return released(state, event.data);
    case 'AgentCleaned': {
      const { agent: id, cleaned } = event.data;
      return changed(state, id, ({ holder: _holder, generation: _generation, ...agent }) => ({
        ...agent,
        state: 'free',
        since: at,
        cleaned,
      }));
    }
    case 'AgentFailed':
    case 'AgentRetired': {
      const { agent: id, reason } = event.data;
      const now = event.type === 'AgentFailed' ? 'failed' : 'retired';
      return changed(state, id, (agent) => ({ ...agent, state: now, since: at, reason }));
    }
    case 'AgentCleaningStarted': {
      const { agent: id, generation } = event.data;
      const marked = generation === undefined ? {} : { generation };
      const begun = changed(state, id, ({ reason: _reason, ...agent }) => ({
        ...agent,
        ...marked,
        state: 'cleaning',
        since: at,
      }));
      return { ...begun, generation: Math.max(begun.generation, generation ?? 0) };
    }
    case 'HotPoolTargetChanged': {
      const { hostClass, ...target } = event.data;
      return withStock(state, hostClass, { ...stockOf(state, hostClass), target });
    }
    default:
      return state;
  }
};

const started = (state: AgentPoolState, data: Started): AgentPoolState => {
  const { at, discovery, hostClass, attempt, deadline } = data;
  const isNew = own(state.discoveries, discovery) === undefined;
  const discoveries = {
    ...state.discoveries,
    [discovery]: { hostClass, attempt, deadline, startedAt: at },
  };
  if (!isNew) return { ...state, discoveries };
  const stock = stockOf(state, hostClass);
  const left = stock.known === undefined ? stock : { ...stock, known: Math.max(0, stock.known - 1) };
  return { ...withStock(state, hostClass, left), discoveries, asked: state.asked + 1 };
};

const reserved = (
  state: AgentPoolState,
  { at, holder, generation, agents: ids, priority }: DataOf<AgentPoolEvent, 'AgentsReserved'>,
): AgentPoolState => {
  const key = holderKey(holder);
  const waited = waitingOf(state, holder);
  const agents = ids.flatMap((id) => agentOf(state, id) ?? []);
  const known = waited === undefined ? counted(state, at, countByClass(agents), priority) : state;
  const taken = agents.reduce(
    (now, agent) => withAgent(now, { ...agent, state: 'reserved', since: at, holder, generation }),
    known,
  );
  return {
    ...taken,
    generation,
    held: withEntry(taken.held, key, [...(entryOf(taken.held, key) ?? []), ...ids]),
    waiting: taken.waiting.filter((each) => each !== waited),
  };
};

const released = (
  state: AgentPoolState,
  { at, holder, agents: ids }: DataOf<AgentPoolEvent, 'AgentsReleased'>,
): AgentPoolState => {
  const key = holderKey(holder);
  const left = (entryOf(state.held, key) ?? []).filter((id) => !ids.includes(id));
  const cleaning = ids.reduce(
    (now, id) => changed(now, id, (agent) => ({ ...agent, state: 'cleaning', since: at })),
    state,
  );
  return {
    ...cleaning,
    held: withEntry(cleaning.held, key, left.length === 0 ? undefined : left),
    waiting: cleaning.waiting.filter((each) => holderKey(each.holder) !== key),
  };
};

/** An order for agents, once for each class that it wants. */
const counted = (state: AgentPoolState, at: string, wanted: Wanted, priority: Priority): AgentPoolState =>
  Object.entries(wanted).reduce((now, [hostClass, agents]) => {
    const stock = stockOf(now, hostClass);
    const demand = withOrder(stock.demand, { at, agents, isHigh: priority === 'high' });
    return withStock(now, hostClass, { ...stock, demand });
  }, state);

const changed = (
  state: AgentPoolState,
  id: string,
  change: (agent: PooledAgent) => PooledAgent,
): AgentPoolState => {
  const agent = agentOf(state, id);
  return agent === undefined ? state : withAgent(state, change(agent));
};

const withStock = (state: AgentPoolState, hostClass: string, stock: ClassStock): AgentPoolState => ({
  ...state,
  classes: { ...state.classes, [hostClass]: stock },
});

/** The agent as it is now, counted in its class by its state. */
const withAgent = (state: AgentPoolState, agent: PooledAgent): AgentPoolState => {
  const { id, hostClass } = agent;
  const former = agentOf(state, id);
  const stock = stockOf(state, hostClass);
  const counts = { ...stock.counts };
  if (former !== undefined) counts[former.state] = (counts[former.state] ?? 0) - 1;
  counts[agent.state] = (counts[agent.state] ?? 0) + 1;
  const others = former?.state === 'free' ? stock.free.filter((each) => each !== id) : stock.free;
  const free = agent.state === 'free' ? [...others, id] : others;
  return {
    ...withStock(state, hostClass, { ...stock, counts, free }),
    agents: withEntry(state.agents, id, agent),
  };
};

const withLows = (state: AgentPoolState, at: string): AgentPoolState =>
  Object.entries(state.classes).reduce((now, [hostClass, stock]) => {
    const { target, free, lowSince } = stock;
    if (target === undefined) return now;
    const discovering = discoveringIn(now, hostClass);
    const low = isLow({ target: target.target, free: free.length, discovering });
    if (low === (lowSince !== undefined)) return now;
    const { lowSince: _over, ...well } = stock;
    return withStock(now, hostClass, low ? { ...stock, lowSince: at } : well);
  }, state);
