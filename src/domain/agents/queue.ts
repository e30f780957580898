import { holderKey } from '../holder.ts';
import { own } from '../json-tools.ts';
import { MAX_CONCURRENT } from '../hot-pool/refill.ts';
import {
  awaitedIn,
  stockOf,
  type AgentPoolState,
  type PooledAgent,
  type Priority,
  type Waiting,
  type Wanted,
} from './pool-state.ts';

/** What waited longer gets what becomes free before anybody else. */
export const STARVES_AFTER_MS = 30 * 60_000;
/** What a host that is asked for may take until it is an agent. */
export const DISCOVERY_DEADLINE_MS = 15 * 60_000;
/** What a wipe takes, for estimates alone. */
const CLEANING_MS = 20 * 60_000;

const isStarved = ({ since }: Waiting, at: string): boolean =>
  Date.parse(at) - Date.parse(since) > STARVES_AFTER_MS;

const RANK: { readonly [Each in Priority]: number } = { high: 0, low: 1 };

/** Who is looked at first: what waited too long, then by priority; both in the order in which they came. */
export const inTurn = (waiting: readonly Waiting[], at: string): readonly Waiting[] => {
  const rank = (each: Waiting): number => (isStarved(each, at) ? -1 : RANK[each.priority]);
  return waiting.toSorted((left, right) => rank(left) - rank(right));
};

type Grant = { readonly waiting: Waiting; readonly agents: readonly string[] };

/**
 * Who gets agents now: everybody in turn whose whole wish is free. Who has to wait holds nothing, and a smaller order
 * behind it may go first. What waited too long keeps what is free of its classes from all behind it.
 */
export const grants = (state: AgentPoolState, at: string): readonly Grant[] => {
  const free = new Map<string, readonly string[]>();
  const freeOf = (hostClass: string): readonly string[] =>
    free.get(hostClass) ?? stockOf(state, hostClass).free;
  const roomFor = (hostClass: string, priority: Priority): number => {
    const floor = priority === 'low' ? (stockOf(state, hostClass).target?.minFree ?? 0) : 0;
    return Math.max(0, freeOf(hostClass).length - floor);
  };
  const take = (hostClass: string, size: number): readonly string[] => {
    const all = freeOf(hostClass);
    free.set(hostClass, all.slice(size));
    return all.slice(0, size);
  };
  const granted: Grant[] = [];
  for (const waiting of inTurn(state.waiting, at)) {
    const { wanted, priority } = waiting;
    const wishes = Object.entries(wanted);
    if (wishes.every(([hostClass, size]) => size <= roomFor(hostClass, priority))) {
      granted.push({ waiting, agents: wishes.flatMap(([hostClass, size]) => take(hostClass, size)) });
    } else if (isStarved(waiting, at)) {
      for (const [hostClass, size] of wishes) take(hostClass, Math.min(size, roomFor(hostClass, priority)));
    }
  }
  return granted;
};

/** 1 for the first; undefined: it does not wait. */
export const positionOf = (
  state: AgentPoolState,
  holder: Waiting['holder'],
  at: string,
): number | undefined => {
  const place = inTurn(state.waiting, at).findIndex((each) => holderKey(each.holder) === holderKey(holder));
  return place < 0 ? undefined : place + 1;
};

/**
 * When it probably has its agents. Null: more are wanted than can come. What is wiped and what is on its way comes first,
 * then what can still be asked for, as many at once as the hub's provisioning carries.
 */
export const etaOf = (state: AgentPoolState, holder: Waiting['holder'], at: string): string | null => {
  const place = positionOf(state, holder, at);
  if (place === undefined) return null;
  const ahead = inTurn(state.waiting, at).slice(0, place);
  const wanted = Object.keys(ahead.at(-1)?.wanted ?? {});
  const times = wanted.map((hostClass) =>
    availableAt(state, hostClass, awaitedIn({ ...state, waiting: ahead }, hostClass), at),
  );
  const latest = Math.max(Date.parse(at), ...times);
  return Number.isFinite(latest) ? new Date(latest).toISOString() : null;
};

/** Milliseconds since 1970 when so many of a class can be had; infinite: never. */
const availableAt = (state: AgentPoolState, hostClass: string, wanted: number, at: string): number => {
  const { free, known = Infinity } = stockOf(state, hostClass);
  const short = wanted - free.length;
  if (short <= 0) return Date.parse(at);
  const cleaning = agentsIn(state)
    .filter((agent) => agent.hostClass === hostClass && agent.state === 'cleaning')
    .map(({ since }) => Date.parse(since) + CLEANING_MS);
  const discovering = Object.values(state.discoveries)
    .filter((each) => each.hostClass === hostClass && each.failedAt === undefined)
    .map(({ deadline }) => Date.parse(deadline));
  const coming = [...cleaning, ...discovering].sort((left, right) => left - right);
  const last = coming[short - 1];
  if (last !== undefined) return Math.max(last, Date.parse(at));
  const missing = short - coming.length;
  if (missing > known) return Infinity;
  const rounds = Math.ceil((missing + discovering.length) / MAX_CONCURRENT);
  return Date.parse(at) + rounds * DISCOVERY_DEADLINE_MS;
};

export const agentsIn = ({ agents }: AgentPoolState): readonly PooledAgent[] =>
  Object.values(agents).flatMap((bucket) => Object.values(bucket));

/** Of each class that is wanted, how many are free. */
export const haveOf = (state: AgentPoolState, wanted: Wanted): Wanted =>
  Object.fromEntries(
    Object.keys(wanted).map((hostClass) => [hostClass, stockOf(state, hostClass).free.length]),
  );

/** Of each class, how many more are wanted than these agents. */
export const shortOf = (wanted: Wanted, held: Wanted): Wanted =>
  Object.fromEntries(
    Object.entries(wanted).flatMap(([hostClass, size]) => {
      const missing = size - (own(held, hostClass) ?? 0);
      return missing > 0 ? [[hostClass, missing]] : [];
    }),
  );
