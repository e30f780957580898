import { bucketsIn, entriesOf, entryOf, partsOf, withEntry, type Buckets, type Parts } from '../buckets.ts';
import { reject, type Decision, type DomainEvent, type Rejection } from '../decider.ts';
import { holderKey, type Holder } from '../holder.ts';
import { own } from '../json-tools.ts';
import { count, mayBe, text, time, type EventOf } from '../schemas.ts';
import { z } from 'zod';
import {
  addressText,
  firstNot,
  gapsOf,
  holds,
  isWithin,
  parseAddress,
  sizeOf,
  withAddress,
  withoutAddress,
  type Address,
  type Gaps,
  type Range,
} from '../ranges.ts';

/**
 * Who has which address of a pool: part of the pool's own stream, so that an address has one owner whatever
 * happens at the same time. What is stored grows with what is given out, not with the pool.
 *
 * Where we choose, the lowest free address is given out. A released one rests first: caches, allow-lists and
 * DNS still lead to its former owner. Where the hub's operator chooses, a holder takes up room with
 * `AddressRequested`, and what the hub shows is recorded.
 */
export type Holding = {
  readonly holder: Holder;
  /** A release names it: one that comes late frees nothing of a later holding. */
  readonly generation: number;
  /** Absent until the operator's choice was seen. */
  readonly address?: string;
};

const holder = z.strictObject({ kind: text, id: text });
const held = { holder, generation: count };
export const ADDRESS_EVENTS = {
  AddressAssigned: { ...held, address: text },
  AddressRequested: held,
  /** What the hub shows, by its operator's choice. */
  AddressObserved: { ...held, address: text },
  /** The hub shows an address for two holders: the first one keeps it here, and somebody has to look. */
  AddressShownTwice: { holder, other: holder, address: text },
  AddressReleased: { ...held, address: mayBe, restsUntil: time.exactOptional() },
};
export type AddressEvent = EventOf<typeof ADDRESS_EVENTS>;

type Asked = { readonly at: string; readonly holder: Holder };
export type AddressCommand =
  /** `wanted`: this address and no other. Given again to a holder that has one: nothing changes. */
  | ({ readonly type: 'ClaimAddress'; readonly wanted?: string } & Asked)
  | ({ readonly type: 'ObserveAddress'; readonly address: string } & Asked)
  | ({ readonly type: 'ReleaseAddress'; readonly generation: number } & Asked);

type Rest = readonly [until: string, address: Address, since: string];

export type AddressBook = {
  /** The last one that was given. */
  readonly generation: number;
  readonly count: number;
  readonly holdings: Buckets<Holding>;
  /** Holder by address. */
  readonly owners: Buckets<Holder>;
  /** What neither has an owner nor rests; absent: all of the pool. */
  readonly free?: Gaps;
  /** Until when, in that order. */
  readonly resting: readonly Rest[];
  /** In the order of addresses: those whose time had come by the last event, until they are given out again. */
  readonly rested: readonly Rest[];
  /** Addresses that the hub shows for a holder although another one owns them, by holder. */
  readonly shownTwice: { readonly [holder: string]: string };
};

export const emptyBook = (): AddressBook => ({
  generation: 0,
  count: 0,
  holdings: {},
  owners: {},
  resting: [],
  rested: [],
  shownTwice: {},
});

export const partsOfBook = ({ holdings, owners }: AddressBook): Parts => partsOf({ holdings, owners });
export const withoutParts = (book: AddressBook): AddressBook => ({ ...book, holdings: {}, owners: {} });
export const bookFrom = (book: AddressBook, parts: Parts): AddressBook => ({
  ...book,
  holdings: bucketsIn(parts, 'holdings'),
  owners: bucketsIn(parts, 'owners'),
});

/** What the pool says of its addresses. */
export type AddressRules = {
  /** Whoever is refused asked it for an address by this name. */
  readonly pool: string;
  readonly ranges: readonly Range[];
  readonly restMs: number;
  /** The hub's operator chooses. */
  readonly observed: boolean;
};

export const holdingOf = (book: AddressBook, holder: Holder): Holding | undefined =>
  entryOf(book.holdings, holderKey(holder));

export const holdingsOf = ({ holdings }: AddressBook): readonly Holding[] =>
  entriesOf(holdings).map(([, holding]) => holding);

export const isAddressEvent = (event: DomainEvent): event is AddressEvent =>
  own(ADDRESS_EVENTS, event.type) !== undefined;

/**
 * An address for the next claim, or until when it waits because only resting ones are left, or why there is
 * none.
 */
export const claimable = (
  book: AddressBook,
  { pool, ranges, observed }: AddressRules,
  at: string,
  wanted?: string,
): { readonly address: string } | { readonly waitUntil: string } | Rejection => {
  if (wanted !== undefined)
    return observed
      ? refuseWanted('ADDRESS_NOT_CHOSEN_HERE', "the operator of the pool's hub chooses its addresses")
      : wantedAddress(book, ranges, at, wanted);
  if (observed) return BigInt(book.count) < sizeOf(ranges) ? { address: '' } : exhausted(pool);
  const { free = gapsOf(ranges), resting, rested } = book;
  const over = resting.slice(
    0,
    firstNot(resting, ([until]) => until <= at),
  );
  const candidates = [
    free[0]?.[0],
    // Only where the clock was set back is the first one not over.
    rested.find(([until]) => until <= at)?.[1],
    ...over.map(([, address]) => address),
  ].filter((address) => address !== undefined);
  const [first, ...others] = candidates;
  if (first !== undefined)
    return { address: addressText(others.reduce((low, next) => (next < low ? next : low), first)) };
  const [waitUntil] = [...resting.slice(0, 1), ...rested].map(([until]) => until).sort();
  return waitUntil === undefined ? exhausted(pool) : { waitUntil };
};

const wantedAddress = (
  book: AddressBook,
  ranges: readonly Range[],
  at: string,
  wanted: string,
): { readonly address: string } | Rejection => {
  const parsed = parseAddress(wanted);
  if (parsed === undefined || !holds(ranges, parsed))
    return refuseWanted('ADDRESS_OUTSIDE_POOL', `the pool has no address '${wanted}' to give out`);
  const address = addressText(parsed);
  if (entryOf(book.owners, address) !== undefined)
    return refuseWanted('ADDRESS_TAKEN', `address '${address}' is taken`);
  const [until] = [...book.resting, ...book.rested].find((rest) => rest[1] === parsed) ?? [];
  return until !== undefined && until > at
    ? {
        ...refuseWanted('ADDRESS_RESTING', `address '${address}' was released and rests until ${until}`),
        facts: { until },
      }
    : { address };
};

const refuse = (code: string, message: string, more: Pick<Rejection, 'facts'> = {}): Rejection =>
  reject('failed-precondition', code, message, more);

const refuseWanted = (code: string, message: string): Rejection =>
  reject('invalid', code, message, { field: 'metadata.annotations' });

const exhausted = (pool: string): Rejection =>
  refuse('POOL_EXHAUSTED', `external IP pool '${pool}' has no free address`);

export const decideAddress = (
  book: AddressBook,
  command: AddressCommand,
  rules: AddressRules,
): Decision<AddressEvent> => {
  const { at, holder } = command;
  const held = holdingOf(book, holder);
  switch (command.type) {
    case 'ClaimAddress': {
      if (held !== undefined) return [];
      const generation = book.generation + 1;
      const found = claimable(book, rules, at, command.wanted);
      if ('rejected' in found) return found;
      if ('waitUntil' in found) return allRest(rules.pool, found.waitUntil);
      return rules.observed
        ? [{ type: 'AddressRequested', data: { at, holder, generation } }]
        : [{ type: 'AddressAssigned', data: { at, holder, generation, address: found.address } }];
    }
    case 'ReleaseAddress': {
      if (held === undefined || held.generation !== command.generation) return [];
      const { generation, address } = held;
      const released = { at, holder, generation, ...(address === undefined ? {} : { address }) };
      const rests = address !== undefined && !rules.observed && rules.restMs > 0;
      const restsUntil = new Date(Date.parse(at) + rules.restMs).toISOString();
      const data = { ...released, ...(rests ? { restsUntil } : {}) };
      return andPassedOn(book, { type: 'AddressReleased', data }, rules.ranges);
    }
    case 'ObserveAddress':
      if (rules.observed) return observe(book, command, rules.ranges);
      return held?.address === command.address
        ? []
        : refuse('ADDRESS_CHOSEN_HERE', `the hub shows '${command.address}', which it was not given`);
  }
};

/** Not refused: whoever claims comes again then. */
const allRest = (pool: string, until: string): Rejection =>
  refuse(
    'ADDRESSES_RESTING',
    `external IP pool '${pool}' has only addresses that were released and rest until ${until}`,
    { facts: { until } },
  );

const observe = (
  book: AddressBook,
  { at, holder, address: shown }: Extract<AddressCommand, { type: 'ObserveAddress' }>,
  ranges: readonly Range[],
): Decision<AddressEvent> => {
  const held = holdingOf(book, holder);
  // It was released, or has no room yet: a look that comes late must not hold anything.
  if (held === undefined)
    return refuse('NO_ADDRESS_HELD', `${holder.kind} '${holder.id}' holds no address of the pool`);
  const parsed = parseAddress(shown);
  // Operators also give out the first and the last address of a range.
  if (parsed === undefined || !ranges.some(({ from, to }) => isWithin(parsed, from, to)))
    return refuse('ADDRESS_OUTSIDE_POOL', `the hub shows address '${shown}', which is not one of the pool's`);
  const address = addressText(parsed);
  const twice = book.shownTwice[holderKey(holder)];
  const other = entryOf(book.owners, address);
  const isOthers = other !== undefined && holderKey(other) !== holderKey(holder);
  // An owner for which the hub shows another one by now has lost it.
  if (isOthers && book.shownTwice[holderKey(other)] === undefined)
    return twice === address ? [] : [{ type: 'AddressShownTwice', data: { at, address, holder, other } }];
  if (held.address === address && twice === undefined) return [];
  const data = { at, holder, generation: held.generation, address };
  return andPassedOn(book, { type: 'AddressObserved', data }, ranges);
};

/**
 * The event, and who has the address that it frees: another holder for which the hub shows it. That one may free one too.
 */
const andPassedOn = (
  book: AddressBook,
  event: AddressEvent,
  ranges: readonly Range[],
): readonly AddressEvent[] => {
  const after = evolveAddress(book, event, () => ranges);
  const [key = '', address] =
    Object.entries(after.shownTwice).find(([, shown]) => entryOf(after.owners, shown) === undefined) ?? [];
  const next = entryOf(after.holdings, key);
  if (next === undefined || address === undefined) return [event];
  const { holder, generation } = next;
  const data = { at: event.data.at, holder, generation, address };
  return [event, ...andPassedOn(after, { type: 'AddressObserved', data }, ranges)];
};

/** A shorter rest also ends that of addresses which rest already. */
export const withRest = (book: AddressBook, restMs: number): AddressBook => {
  const shorter = ([until, address, since]: Rest): Rest => {
    const now = new Date(Date.parse(since) + restMs).toISOString();
    return [now < until ? now : until, address, since];
  };
  const resting = book.resting.map(shorter);
  return { ...book, resting: resting.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)) };
};

/** `rangesOf`: those of the pool, which never change. */
export const evolveAddress = (
  book: AddressBook,
  { type, data }: AddressEvent,
  rangesOf: () => readonly Range[],
): AddressBook => {
  const key = holderKey(data.holder);
  if (type === 'AddressShownTwice')
    return { ...book, shownTwice: { ...book.shownTwice, [key]: data.address } };
  const { holder, generation } = data;
  const address = type === 'AddressAssigned' || type === 'AddressObserved' ? data.address : undefined;
  const restsUntil = type === 'AddressReleased' ? data.restsUntil : undefined;
  const former = entryOf(book.holdings, key);
  const holding =
    type === 'AddressReleased'
      ? undefined
      : { holder, generation, ...(address === undefined ? {} : { address }) };
  const { [key]: _settled, ...shownTwice } = book.shownTwice;
  const over = firstNot(book.resting, ([until]) => until <= data.at);
  let { free = gapsOf(rangesOf()), owners, holdings } = book;
  let resting = over === 0 ? book.resting : book.resting.slice(over);
  let rested = over === 0 ? book.rested : withRested(book.rested, book.resting.slice(0, over));
  if (former?.address !== undefined) {
    const left = parseAddress(former.address) ?? '';
    owners = withEntry(owners, former.address, undefined);
    // An operator's choice may be one that is not given out, like the first of a range.
    if (restsUntil === undefined) free = holds(rangesOf(), left) ? withAddress(free, left) : free;
    else {
      const behind = firstNot(resting, ([until]) => until <= restsUntil);
      resting = resting.toSpliced(behind, 0, [restsUntil, left, data.at]);
    }
  }
  if (address !== undefined) {
    const taken = parseAddress(address) ?? '';
    const others = withoutAddress(free, taken);
    const loser = entryOf(owners, address);
    const lost = loser && entryOf(holdings, holderKey(loser));
    if (lost !== undefined) {
      const { address: _lost, ...left } = lost;
      holdings = withEntry(holdings, holderKey(lost.holder), left);
    }
    owners = withEntry(owners, address, holder);
    if (others === free) rested = withoutRested(rested, taken);
    free = others;
  }
  return {
    generation: Math.max(book.generation, generation),
    count: book.count + Number(holding !== undefined) - Number(former !== undefined),
    holdings: withEntry(holdings, key, holding),
    owners,
    free,
    resting,
    rested,
    shownTwice,
  };
};

const placeOf = (rested: readonly Rest[], address: Address): number =>
  firstNot(rested, ([, other]) => other < address);

const withRested = (rested: readonly Rest[], over: readonly Rest[]): readonly Rest[] => {
  const all = [...rested];
  for (const rest of over) all.splice(placeOf(all, rest[1]), 0, rest);
  return all;
};

const withoutRested = (rested: readonly Rest[], address: Address): readonly Rest[] => {
  const at = placeOf(rested, address);
  return rested[at]?.[1] === address ? rested.toSpliced(at, 1) : rested;
};
