import { entriesOf, entryOf, withEntry, type Buckets } from '../buckets.ts';
import { reject, type Decider, type Decision, type DomainEvent, type Rejection } from '../decider.ts';
import { holderKey, holderOf, type Holder } from '../holder.ts';
import { sameJson } from '../json-tools.ts';

/**
 * A pool gives holders what no two may have: VLANs of a fabric, prefixes of a VRF. Its own stream decides. The two kinds
 * differ in their `StockRules`: what is free, what rests in quarantine, and what is given out next.
 */
export type PoolSize = {
  readonly ranges: readonly string[];
  readonly reserved: readonly string[];
  readonly quarantineSeconds: number;
};
export type Definition = PoolSize & { readonly zone: string };

export type Allocation<Item> = Item & {
  readonly purpose: string;
  /** A release names it: one that comes late frees nothing of a later allocation. */
  readonly generation: number;
};
export type Held<Item> = { readonly holder: Holder; readonly allocation: Allocation<Item> };

export type Pool<Own extends Definition, Item, Stock> = {
  readonly definition: Own;
  /** It gives out nothing more. */
  readonly retired: boolean;
  readonly stock: Stock;
  /** The last one that was given. */
  readonly generation: number;
  readonly count: number;
  /** By holder: one for each purpose. */
  readonly allocations: Buckets<readonly Allocation<Item>[]>;
  /** What nothing was left of, as long as none of it was given out again. */
  readonly exhausted: readonly string[];
};
/** No pool: nobody created it yet. */
export type PoolState<Own extends Definition, Item, Stock> = { readonly pool?: Pool<Own, Item, Stock> };

export type PoolCommand<Own extends Definition, Request> =
  | { readonly type: 'CreatePool'; readonly at: string; readonly reason: string; readonly definition: Own }
  | {
      readonly type: 'ResizePool';
      readonly at: string;
      readonly reason: string;
      readonly size: Partial<PoolSize>;
    }
  | { readonly type: 'RetirePool'; readonly at: string; readonly reason: string }
  /** Given again for the same purpose: nothing changes. */
  | {
      readonly type: 'AllocateFromPool';
      readonly at: string;
      readonly holder: Holder;
      readonly purpose: string;
      readonly request: Request;
    }
  | {
      readonly type: 'ReleaseToPool';
      readonly at: string;
      readonly holder: Holder;
      readonly generation: number;
    };

/** `wanted`: what nothing is left of; `until`: when something leaves quarantine. */
export type Short = { readonly wanted: readonly string[]; readonly until?: string };
export type Resting<Item> = readonly [until: string, item: Item];

export type StockRules<Own extends Definition, Request, Item, Stock> = {
  /** First word of the names of its events. */
  readonly word: 'Vlan' | 'Prefix';
  readonly definitionRejection: (definition: Own) => Rejection | undefined;
  readonly sizeRejection: (size: PoolSize) => Rejection | undefined;
  /** What no pool can serve. */
  readonly requestRejection: (request: Request) => Rejection | undefined;
  /** What a pool of this size could not serve even when it was empty. */
  readonly sizeShortage: (size: PoolSize, request: Request) => Rejection | undefined;
  /** What a pool of this size has while this is held and that rests. */
  readonly stockOf: (size: PoolSize, held: readonly Item[], resting: readonly Resting<Item>[]) => Stock;
  readonly restingOf: (stock: Stock) => readonly Resting<Item>[];
  readonly pick: (stock: Stock, request: Request, at: string) => Item | Short;
  /** True when what was given out shows that there was some of this again. */
  readonly refutes: (item: Item, wanted: string) => boolean;
  readonly taken: (stock: Stock, item: Item) => Stock;
  /** `until`: it rests until then; absent: it is free at once. */
  readonly released: (stock: Stock, item: Item, until: string | undefined) => Stock;
  readonly fits: (size: PoolSize, item: Item) => boolean;
  /** Without what events say besides. */
  readonly itemOf: (data: object) => Item;
  readonly textOf: (item: Item) => string;
};

export const allocationsOf = <Item>(
  { pool }: { readonly pool?: { readonly allocations: Buckets<readonly Allocation<Item>[]> } },
  holder: Holder,
): readonly Allocation<Item>[] =>
  (pool === undefined ? undefined : entryOf(pool.allocations, holderKey(holder))) ?? [];

export const heldIn = <Item>({
  allocations,
}: {
  readonly allocations: Buckets<readonly Allocation<Item>[]>;
}): readonly Held<Item>[] =>
  entriesOf(allocations).flatMap(([key, all]) =>
    all.map((allocation) => ({ holder: holderOf(key), allocation })),
  );

/** What no other pool of its fabric or VRF may have: all of it, until a retired one is empty and nothing rests. */
export const claimedRanges = <Own extends Definition, Item, Stock>(
  { restingOf }: Pick<StockRules<Own, never, Item, Stock>, 'restingOf'>,
  { pool }: PoolState<Own, Item, Stock>,
  at: string,
): readonly string[] => {
  if (pool === undefined) return [];
  const isOver = pool.retired && pool.count === 0 && restingOf(pool.stock).every(([until]) => until <= at);
  return isOver ? [] : pool.definition.ranges;
};

type Told = {
  readonly at: string;
  readonly holder: Holder;
  readonly generation: number;
  readonly purpose: string;
  readonly quarantinedUntil?: string;
  readonly wanted: readonly string[];
  readonly reason: string;
};

export const poolDecider = <
  Own extends Definition,
  Request,
  Item extends object,
  Stock,
  Event extends DomainEvent,
>(
  rules: StockRules<Own, Request, Item, Stock>,
): Decider<PoolState<Own, Item, Stock>, PoolCommand<Own, Request>, Event> => {
  type State = PoolState<Own, Item, Stock>;
  type Known = Pool<Own, Item, Stock>;
  type Command<Type> = Extract<PoolCommand<Own, Request>, { readonly type: Type }>;
  const { word } = rules;
  const event = (name: string, data: object): Event => ({ type: `${word}${name}`, data }) as Event;
  const itemsOf = (pool: Known): readonly Item[] =>
    heldIn(pool).map(({ allocation }) => rules.itemOf(allocation));

  const resized = (pool: Known, size: PoolSize): Known => ({
    ...pool,
    definition: { ...pool.definition, ...size },
    stock: rules.stockOf(size, itemsOf(pool), rules.restingOf(pool.stock)),
    exhausted: [],
  });

  const created = ({ at: _at, reason: _reason, ...definition }: Told & Own): Known => ({
    definition: definition as unknown as Own,
    retired: false,
    stock: rules.stockOf(definition, [], []),
    generation: 0,
    count: 0,
    allocations: {},
    exhausted: [],
  });

  const allocated = (pool: Known, data: Told): Known => {
    const { holder, purpose, generation } = data;
    const item = rules.itemOf(data);
    const held = [...allocationsOf({ pool }, holder), { ...item, purpose, generation }];
    return {
      ...pool,
      generation,
      count: pool.count + 1,
      stock: rules.taken(pool.stock, item),
      allocations: withEntry(pool.allocations, holderKey(holder), held),
      exhausted: pool.exhausted.filter((wanted) => !rules.refutes(item, wanted)),
    };
  };

  const released = (pool: Known, data: Told): Known => {
    const { holder, generation, quarantinedUntil } = data;
    const left = allocationsOf({ pool }, holder).filter((each) => each.generation !== generation);
    return {
      ...pool,
      count: pool.count - 1,
      stock: rules.released(pool.stock, rules.itemOf(data), quarantinedUntil),
      allocations: withEntry(pool.allocations, holderKey(holder), left.length === 0 ? undefined : left),
    };
  };

  const create = ({ pool }: State, { at, reason, definition }: Command<'CreatePool'>): Decision<Event> => {
    if (pool?.retired === true)
      return reject('already-exists', 'POOL_RETIRED', 'a pool of this id was retired: choose another id');
    if (pool !== undefined)
      return sameJson(pool.definition, definition)
        ? []
        : reject('already-exists', 'POOL_EXISTS', 'a pool of this id exists with other ranges or settings');
    const wrong = rules.definitionRejection(definition) ?? rules.sizeRejection(definition);
    return wrong ?? [event('PoolCreated', { at, ...definition, reason })];
  };

  const resize = (pool: Known, { at, reason, size: change }: Command<'ResizePool'>): Decision<Event> => {
    if (pool.retired) return isRetired();
    const { ranges, reserved, quarantineSeconds } = pool.definition;
    const now = { ranges, reserved, quarantineSeconds };
    const size = { ...now, ...change };
    const wrong = rules.sizeRejection(size);
    if (wrong !== undefined) return wrong;
    if (sameJson(now, size)) return [];
    const held = heldIn(pool).find(({ allocation }) => !rules.fits(size, rules.itemOf(allocation)));
    if (held !== undefined)
      return below(rules.textOf(held.allocation), `${held.holder.kind} '${held.holder.id}' holds it`, {
        owner: holderKey(held.holder),
      });
    const kept = rules
      .restingOf(pool.stock)
      .map(([until, item]) => ({ item, until: afterQuarantine(until) }))
      .find(({ until, item }) => until > at && !rules.fits(size, item));
    if (kept !== undefined)
      return below(rules.textOf(kept.item), `it was in use, and is kept until ${kept.until}`, {
        until: kept.until,
      });
    return [event('PoolResized', { at, ...size, reason })];
  };

  const allocate = (pool: Known, command: Command<'AllocateFromPool'>): Decision<Event> => {
    const { at, holder, purpose, request } = command;
    if (allocationsOf({ pool }, holder).some((each) => each.purpose === purpose)) return [];
    if (pool.retired) return isRetired();
    const wrong = rules.requestRejection(request);
    if (wrong !== undefined) return wrong;
    const found = rules.pick(pool.stock, request, at);
    if (!isShort(found)) {
      const data = { at, holder, generation: pool.generation + 1, purpose, ...found };
      return [event(`Allocated`, data)];
    }
    const tooLarge = rules.sizeShortage(pool.definition, request);
    if (tooLarge !== undefined) return tooLarge;
    const { wanted, until } = found;
    const news = wanted.filter((each) => !pool.exhausted.includes(each));
    return news.length > 0
      ? [event('PoolExhausted', { at, wanted: news, ...(until === undefined ? {} : { until }) })]
      : exhausted(until);
  };

  const release = (pool: Known, { at, holder, generation }: Command<'ReleaseToPool'>): Decision<Event> => {
    const held = allocationsOf({ pool }, holder).find((each) => each.generation === generation);
    if (held === undefined) return notHeld(pool, holder, generation);
    const { quarantineSeconds } = pool.definition;
    const until = new Date(Date.parse(at) + quarantineSeconds * 1_000).toISOString();
    const rest = quarantineSeconds > 0 ? { quarantinedUntil: until } : {};
    return [event('Released', { at, holder, generation, ...rules.itemOf(held), ...rest })];
  };

  return {
    initialState: () => ({}),
    evolve: (state, { type, data }) => {
      const told = data as Told;
      const { pool } = state;
      if (!type.startsWith(word)) return state;
      if (type === `${word}PoolCreated`) return { pool: created(told as Told & Own) };
      if (pool === undefined) return state;
      switch (type.slice(word.length)) {
        case 'PoolResized': {
          const { ranges, reserved, quarantineSeconds } = data as PoolSize;
          return { pool: resized(pool, { ranges, reserved, quarantineSeconds }) };
        }
        case 'PoolRetired':
          return { pool: { ...pool, retired: true } };
        case 'PoolExhausted':
          return { pool: { ...pool, exhausted: [...pool.exhausted, ...told.wanted] } };
        case 'Allocated':
          return { pool: allocated(pool, told) };
        case 'Released':
          return { pool: released(pool, told) };
        default:
          return state;
      }
    },
    decide: (state, command) => {
      if (command.type === 'CreatePool') return create(state, command);
      const { pool } = state;
      if (pool === undefined) return reject('not-found', 'NO_SUCH_POOL', 'the pool does not exist');
      switch (command.type) {
        case 'ResizePool':
          return resize(pool, command);
        case 'RetirePool': {
          const { at, reason } = command;
          return pool.retired ? [] : [event('PoolRetired', { at, reason })];
        }
        case 'AllocateFromPool':
          return allocate(pool, command);
        case 'ReleaseToPool':
          return release(pool, command);
      }
    },
  };
};

const DAY_MS = 86_400_000;

/** What leaves the pool is forgotten with its quarantine: it must be over also for a clock that is set back by hours. */
const afterQuarantine = (until: string): string => new Date(Date.parse(until) + DAY_MS).toISOString();

const isShort = (found: object): found is Short => 'wanted' in found;

const isRetired = (): Rejection =>
  reject('failed-precondition', 'POOL_RETIRED', 'the pool is retired and gives out nothing more');

/** Not refused: the holder comes again. */
const exhausted = (until: string | undefined): Rejection =>
  reject(
    'failed-precondition',
    'POOL_EXHAUSTED',
    until === undefined
      ? 'the pool is exhausted'
      : `the pool is exhausted; something leaves quarantine at ${until}`,
    until === undefined ? {} : { facts: { until } },
  );

const below = (item: string, why: string, facts: NonNullable<Rejection['facts']>): Rejection =>
  reject('failed-precondition', 'POOL_IN_USE', `field 'ranges' must keep ${item}: ${why}`, {
    field: 'ranges',
    facts,
  });

/** Why a release is refused; nothing changes. */
const notHeld = (
  pool: {
    readonly generation: number;
    readonly allocations: Buckets<readonly Allocation<object>[]>;
  },
  { kind, id }: Holder,
  generation: number,
): Rejection => {
  const other = heldIn(pool).find(({ allocation }) => allocation.generation === generation)?.holder;
  const refuse = (code: string, message: string): Rejection =>
    reject('failed-precondition', code, `field 'generation': ${message}`, {
      field: 'generation',
      ...(other === undefined ? {} : { facts: { owner: holderKey(other) } }),
    });
  if (other !== undefined)
    return refuse(
      'NOT_THE_HOLDER',
      `allocation ${generation} belongs to ${other.kind} '${other.id}', not to ${kind} '${id}'`,
    );
  return generation <= pool.generation
    ? refuse('ALREADY_RELEASED', `allocation ${generation} was released before`)
    : refuse('NO_SUCH_ALLOCATION', `the pool made no allocation ${generation}`);
};
