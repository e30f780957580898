import { entriesOf, entryOf, withEntry, type Buckets } from '../buckets.ts';
import { reject, type Decision, type DomainEvent, type Rejection } from '../decider.ts';
import { addressText, holds, lowestFrom, parseAddress, sizeOf, type Range } from './ranges.ts';

/**
 * Who has which address of a pool: part of the pool's own stream, so that an address has one owner whatever
 * happens at the same time. What is stored grows with what is given out, not with the pool.
 *
 * Where we choose, the lowest free address is given out. A released one rests first: caches, allow-lists and
 * DNS still lead to its former owner. Where the hub's operator chooses, a holder takes up room with
 * `AddressRequested`, and what the hub shows is recorded.
 */
export type Holder = { readonly kind: string; readonly id: string };
export type Holding = {
  readonly holder: Holder;
  /** A release names it: one that comes late frees nothing of a later holding. */
  readonly generation: number;
  /** Absent until the operator's choice was seen. */
  readonly address?: string;
};

type Held = { readonly at: string; readonly holder: Holder; readonly generation: number };
export type AddressEvent =
  | DomainEvent<'AddressAssigned', Held & { readonly address: string }>
  | DomainEvent<'AddressRequested', Held>
  /** What the hub shows, by its operator's choice. */
  | DomainEvent<'AddressObserved', Held & { readonly address: string }>
  /** The hub shows an address for two holders: the first one keeps it here, and somebody has to look. */
  | DomainEvent<
      'AddressShownTwice',
      { readonly at: string; readonly address: string; readonly holder: Holder; readonly other: Holder }
    >
  | DomainEvent<'AddressReleased', Held & { readonly address?: string; readonly restsUntil?: string }>;

export type AddressCommand =
  /** `wanted`: this address and no other. Given again to a holder that has one: nothing changes. */
  | {
      readonly type: 'ClaimAddress';
      readonly at: string;
      readonly holder: Holder;
      readonly wanted?: string;
    }
  | {
      readonly type: 'ObserveAddress';
      readonly at: string;
      readonly holder: Holder;
      readonly address: string;
    }
  | {
      readonly type: 'ReleaseAddress';
      readonly at: string;
      readonly holder: Holder;
      readonly generation: number;
    };

export type AddressBook = {
  /** The last one that was given. */
  readonly generation: number;
  readonly count: number;
  readonly holdings: Buckets<Holding>;
  /** Holder by address. */
  readonly owners: Buckets<Holder>;
  /** Until when, by address. One whose time has come stays until it is given out again. */
  readonly resting: Buckets<string>;
  /** Number of the lowest address that neither has an owner nor rests, as decimal text. */
  readonly lowest: string;
  /** Addresses that the hub shows for a holder although another one owns them, by holder. */
  readonly shownTwice: { readonly [holder: string]: string };
};

export const emptyBook = (): AddressBook => ({
  generation: 0,
  count: 0,
  holdings: {},
  owners: {},
  resting: {},
  lowest: '0',
  shownTwice: {},
});

/** What the pool says of its addresses. */
export type AddressRules = {
  readonly ranges: readonly Range[];
  readonly restMs: number;
  /** The hub's operator chooses. */
  readonly observed: boolean;
};

const keyOf = ({ kind, id }: Holder): string => `${kind}/${id}`;

export const holdingOf = (book: AddressBook, holder: Holder): Holding | undefined =>
  entryOf(book.holdings, keyOf(holder));

export const isAddressEvent = (event: DomainEvent): event is AddressEvent => event.type.startsWith('Address');

/**
 * An address for the next claim, or until when it waits because only resting ones are left, or why there is
 * none.
 */
export const claimable = (
  book: AddressBook,
  { ranges, observed }: AddressRules,
  at: string,
  wanted?: string,
): { readonly address: string } | { readonly waitUntil: string } | Rejection => {
  if (wanted !== undefined)
    return observed
      ? refuseWanted('ADDRESS_NOT_CHOSEN_HERE', "the operator of the pool's hub chooses its addresses")
      : wantedAddress(book, ranges, at, wanted);
  if (observed) return BigInt(book.count) < sizeOf(ranges) ? { address: '' } : exhausted();
  const now = Date.parse(at);
  const resting = entriesOf(book.resting);
  const rested = resting.filter(([, until]) => Date.parse(until) <= now);
  const candidates = [
    lowestFrom(ranges, BigInt(book.lowest), () => false),
    ...rested.map(([text]) => parseAddress(text)),
  ].filter((address) => address !== undefined);
  const [first, ...others] = candidates;
  if (first !== undefined)
    return {
      address: addressText(others.reduce((low, next) => (next.value < low.value ? next : low), first)),
    };
  const waitUntil = resting.map(([, until]) => until).sort()[0];
  return waitUntil === undefined ? exhausted() : { waitUntil };
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
  const until = entryOf(book.resting, address);
  return until !== undefined && Date.parse(until) > Date.parse(at)
    ? refuseWanted('ADDRESS_RESTING', `address '${address}' was released and rests until ${until}`)
    : { address };
};

const refuseWanted = (code: string, message: string): Rejection =>
  reject('invalid', code, message, { field: 'metadata.annotations' });

const exhausted = (): Rejection =>
  reject('failed-precondition', 'POOL_EXHAUSTED', 'the pool has no free address');

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
      if ('waitUntil' in found) return allRest(found.waitUntil);
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
      return [{ type: 'AddressReleased', data: { ...released, ...(rests ? { restsUntil } : {}) } }];
    }
    case 'ObserveAddress':
      if (rules.observed) return observe(book, command);
      return held?.address === command.address
        ? []
        : reject(
            'failed-precondition',
            'ADDRESS_CHOSEN_HERE',
            `the hub shows '${command.address}', which it was not given`,
          );
  }
};

/** Not refused: whoever claims comes again then. */
const allRest = (until: string): Rejection =>
  reject(
    'failed-precondition',
    'ADDRESSES_RESTING',
    `only addresses that were released are left in the pool, and they rest until ${until}`,
    { facts: { until } },
  );

const observe = (
  book: AddressBook,
  { at, holder, address: shown }: Extract<AddressCommand, { type: 'ObserveAddress' }>,
): readonly AddressEvent[] => {
  const parsed = parseAddress(shown);
  const address = parsed === undefined ? shown : addressText(parsed);
  const held = holdingOf(book, holder);
  const key = keyOf(holder);
  const owner = entryOf(book.owners, address);
  if (owner !== undefined && keyOf(owner) !== key)
    return book.shownTwice[key] === address
      ? []
      : [{ type: 'AddressShownTwice', data: { at, address, holder, other: owner } }];
  if (held?.address === address && book.shownTwice[key] === undefined) return [];
  const generation = held?.generation ?? book.generation + 1;
  return [{ type: 'AddressObserved', data: { at, holder, generation, address } }];
};

/** `ranges`: those of the pool, which never change. */
export const evolveAddress = (
  book: AddressBook,
  { type, data }: AddressEvent,
  ranges: readonly Range[],
): AddressBook => {
  const key = keyOf(data.holder);
  if (type === 'AddressShownTwice')
    return { ...book, shownTwice: { ...book.shownTwice, [key]: data.address } };
  const former = entryOf(book.holdings, key);
  const { holder, generation } = data;
  const address = 'address' in data ? data.address : undefined;
  const holding =
    type === 'AddressReleased'
      ? undefined
      : { holder, generation, ...(address === undefined ? {} : { address }) };
  const { [key]: _settled, ...shownTwice } = book.shownTwice;
  let { owners, resting } = book;
  if (former?.address !== undefined) owners = withEntry(owners, former.address, undefined);
  if (address !== undefined) {
    const restsUntil = type === 'AddressReleased' ? data.restsUntil : undefined;
    owners = withEntry(owners, address, holding === undefined ? undefined : holder);
    resting = withEntry(resting, address, restsUntil);
  }
  const change = Number(holding !== undefined) - Number(former !== undefined);
  const next = {
    ...book,
    generation: Math.max(book.generation, generation),
    count: book.count + change,
    holdings: withEntry(book.holdings, key, holding),
    owners,
    resting,
    shownTwice,
  };
  return { ...next, lowest: lowestOf(next, ranges, former?.address) };
};

/** Moves up over what is busy; what was given back may lie below. */
const lowestOf = (book: AddressBook, ranges: readonly Range[], given: string | undefined): string => {
  const isBusy = (text: string): boolean =>
    entryOf(book.owners, text) !== undefined || entryOf(book.resting, text) !== undefined;
  const back = given === undefined || isBusy(given) ? undefined : parseAddress(given);
  const from = BigInt(book.lowest);
  const start = back !== undefined && back.value < from ? back.value : from;
  const lowest = lowestFrom(ranges, start, isBusy)?.value ?? (ranges.at(-1)?.last ?? 0n) + 1n;
  return String(lowest);
};
