import { isStored } from '../catalog/document.ts';
import { invalid, reject, type Decider, type DomainEvent, type Rejection } from '../decider.ts';
import { durationMs } from '../iso-duration.ts';
import type { JsonObject } from '../json.ts';
import { defined, listAt, objectAt, own, stringAt, textsAt } from '../json-tools.ts';
import { placedResource } from '../placed-resource.ts';
import { addressSpace } from './address-space.ts';
import { rangeRejection } from './ranges-of-spec.ts';
import type { ResourceKind } from '../resource.ts';
import {
  ADDRESS_EVENTS,
  bookFrom,
  decideAddress,
  emptyBook,
  evolveAddress,
  isAddressEvent,
  partsOfBook,
  withoutParts,
  withRest,
  type AddressBook,
  type AddressCommand,
  type AddressEvent,
  type AddressRules,
} from './address-book.ts';
import {
  isAborted,
  messageOf,
  PLACED,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { isPrivate, parseRange, parseRanges, sizeOf, type Range } from '../ranges.ts';

/** Ranges of addresses on a hub that external IPs are taken from (OSAC). */
/** The hub that it is to be on: its addresses serve what is on the same hub. */
export const HUB_ANNOTATION = 'fulfillment-ledger/hub';
export const QUARANTINE_ANNOTATION = 'fulfillment-ledger/quarantine';
const FAMILIES: { readonly [name: string]: Range['family'] } = {
  IP_FAMILY_IPV4: 'ipv4',
  IP_FAMILY_IPV6: 'ipv6',
};
export const SHOWN_TWICE = 'address-shown-twice';
const READY = 'EXTERNAL_IP_POOL_STATE_READY';
const IMMUTABLE = ['spec.cidrs', 'spec.ip_family', 'spec.implementation_strategy'];
export const POOL_PRIVATE_ONLY = [
  'metadata.finalizers',
  'spec.cidrs',
  'spec.implementation_strategy',
  ...['state', 'message', 'hub', 'total', 'allocated'].map((field) => `status.${field}`),
];

export type PoolState = PlacedState & { readonly book?: AddressBook };

export const bookOf = ({ book }: Pick<PoolState, 'book'>): AddressBook => book ?? emptyBook();
export type PoolCommand = PlacedCommand | AddressCommand;
export type PoolEvent =
  | PlacedEvent<'ExternalIPPool', DomainEvent<'ExternalIPPoolBecameReady', { readonly at: string }>>
  | AddressEvent;

const textsIn = (document: JsonObject): readonly string[] =>
  listAt(objectAt(document, 'spec'), 'cidrs').filter((cidr) => typeof cidr === 'string');

/** Milliseconds that a released address rests; undefined: the annotation says nothing that can be read. */
const restMsOf = (document: JsonObject): number | undefined => {
  const text = stringAt(objectAt(objectAt(document, 'metadata'), 'annotations'), QUARANTINE_ANNOTATION);
  if (text === '') return parseRanges(textsIn(document)).every(isPrivate) ? PRIVATE_REST_MS : PUBLIC_REST_MS;
  return text === 'PT0S' ? 0 : durationMs(text);
};
const PUBLIC_REST_MS = 24 * 60 * 60_000;
const PRIVATE_REST_MS = 10 * 60_000;

/** What the pool says of its addresses. */
export const addressRules = ({ id, name, document, place }: Placed): AddressRules => ({
  pool: name || id,
  ranges: parseRanges(textsIn(document)),
  restMs: restMsOf(document) ?? PUBLIC_REST_MS,
  observed: place?.simulated === false,
});

/** The counters of OSAC are 64 bits wide. */
const MOST = 2n ** 63n - 1n;

const stateOf = ({ status, place, waiting, failure, done }: Placed): string => {
  if (status === 'deleting') return failure === undefined ? 'DELETING' : 'DELETE_FAILED';
  if (failure !== undefined) return 'FAILED';
  if (done === true) return 'READY';
  return place === undefined && waiting === undefined ? '' : 'PENDING';
};

/** As its message begins then. */
const SHOWN_FOR_TWO = 'the hub shows an address for two holders';

const statusOf = (state: Placed): JsonObject => {
  const { count, shownTwice } = bookOf(state as Placed & PoolState);
  const total = sizeOf(parseRanges(textsIn(state.document)));
  const most = total < MOST ? total : MOST;
  const counter = (value: bigint): string => (value <= 0n ? '' : String(value));
  const [twice] = Object.values(shownTwice);
  const shown = stateOf(state);
  return {
    state: shown && `EXTERNAL_IP_POOL_STATE_${shown}`,
    message: twice === undefined ? messageOf(state) : `${SHOWN_FOR_TWO}: ${twice}`,
    hub: state.place?.hub ?? '',
    total: counter(most),
    allocated: counter(BigInt(count)),
    available: counter(most - BigInt(count)),
  };
};

const plainDocument = (document: JsonObject): JsonObject => ({
  ...document,
  spec: {
    ...objectAt(document, 'spec'),
    cidrs: textsIn(document).map((cidr) => parseRange(cidr)?.text ?? cidr),
  },
});

const documents = placedDocument({
  words: 'external IP pool',
  prefix: 'ExternalIPPool',
  done: 'BecameReady',
  immutable: [...IMMUTABLE, `metadata.annotations.${HUB_ANNOTATION}`],
  reportable: ['state', 'message', 'hub'],
  status: statusOf,
  normalize: (document, { previous }) => {
    const { implementation_strategy: _set, ...spec } = objectAt(plainDocument(document), 'spec');
    const strategy = stringAt(objectAt(previous, 'spec'), 'implementation_strategy');
    return {
      ...document,
      spec: { ...spec, ...(strategy === '' ? {} : { implementation_strategy: strategy }) },
    };
  },
  check: (document) => poolRejection(document),
  inUse: (state) => {
    const { count } = bookOf(state as Placed & PoolState);
    return count === 0
      ? undefined
      : reject(
          'failed-precondition',
          'STILL_IN_USE',
          `cannot delete external IP pool '${state.name}': ${count} external IP(s) are still allocated from it`,
        );
  },
});

/** All of them are looked at with each change of the pool. */
const MAX_RANGES = 64;

const refused = (field: string, message: string): Rejection => invalid('INVALID_POOL', field, message);

const poolRejection = (document: JsonObject): Rejection | undefined => {
  const family = FAMILIES[stringAt(objectAt(document, 'spec'), 'ip_family')];
  if (family === undefined)
    return refused(
      'spec.ip_family',
      `field 'spec.ip_family' must be one of ${Object.keys(FAMILIES).join(', ')}`,
    );
  const texts = textsIn(document);
  if (texts.length === 0 || texts.length > MAX_RANGES)
    return refused(
      'spec.cidrs',
      `field 'spec.cidrs' must name 1 to ${MAX_RANGES} ranges (got ${texts.length})`,
    );
  const wrong = texts.find((text) => parseRange(text)?.family !== family);
  if (wrong !== undefined)
    return refused('spec.cidrs', `field 'spec.cidrs': '${wrong}' is not a range of the pool's family`);
  const unfit = texts.map((text) => rangeRejection(text, family, 'spec.cidrs')).find(Boolean);
  if (unfit !== undefined) return unfit;
  const ranges = parseRanges(texts);
  for (const [i, { text, from }] of ranges.entries()) {
    const before = ranges[i - 1];
    if (before !== undefined && before.to >= from)
      return refused('spec.cidrs', `field 'spec.cidrs': '${before.text}' and '${text}' overlap`);
  }
  return restMsOf(document) === undefined
    ? invalid(
        'INVALID_QUARANTINE',
        'metadata.annotations',
        `annotation '${QUARANTINE_ANNOTATION}' must be an ISO 8601 duration such as PT12H or PT0S`,
      )
    : undefined;
};

export const poolDecider: Decider<PoolState, PoolCommand, PoolEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    if (!isAddressEvent(event)) {
      const next = documents.evolve(state, event);
      const isRevised = event.type === 'ExternalIPPoolRevised' && isStored(next) && next.book !== undefined;
      return isRevised ? { ...next, book: withRest(bookOf(next), addressRules(next).restMs) } : next;
    }
    if (!isStored(state)) return state;
    return {
      ...state,
      book: evolveAddress(bookOf(state), event, () => parseRanges(textsIn(state.document))),
    };
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'ClaimAddress':
      case 'ObserveAddress':
      case 'ReleaseAddress':
        if (!isStored(state) || state.status === 'retired' || isAborted(state))
          return command.type === 'ReleaseAddress'
            ? []
            : reject('failed-precondition', 'POOL_GONE', 'the pool is gone');
        if (command.type === 'ClaimAddress' && state.status === 'deleting')
          return reject('failed-precondition', 'DELETION_REQUESTED', 'the pool is being deleted');
        return decideAddress(bookOf(state), command, addressRules(state));
      default:
        return documents.decide(state, command) as readonly PoolEvent[] | Rejection;
    }
  },
};

/** Public reads show no other pool (OSAC). */
export const isOffered = (document: JsonObject): boolean => {
  const status = objectAt(document, 'status');
  return stringAt(status, 'state') === READY && stringAt(status, 'available') !== '';
};

export const isReady = (document: JsonObject): boolean =>
  stringAt(objectAt(document, 'status'), 'state') === READY;

export const externalIpPool: ResourceKind<PoolState, PoolCommand, PoolEvent> = {
  ...placedResource({
    kind: 'externalIpPool',
    message: 'ExternalIPPool',
    words: 'external IP pool',
    privateOnly: POOL_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [],
  }),
  plain: plainDocument,
  takes: (document) => [
    {
      kind: addressSpace.kind,
      id: addressSpace.onlyId,
      wanted: {
        ranges: [...textsIn(plainDocument(document))],
        ...defined({ hub: own(textsAt(objectAt(document, 'metadata'), 'annotations'), HUB_ANNOTATION) }),
      },
    },
  ],
  methods: { public: ['List', 'Get'], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  publicList: [{ filter: 'has(this.status.available)', when: 'always' }],
  listed: isOffered,
  outsideProjectsForAll: true,
  marks: (document) => [
    ...PLACED.marks(document),
    ...(stringAt(objectAt(document, 'status'), 'message').startsWith(SHOWN_FOR_TWO) ? [SHOWN_TWICE] : []),
  ],
  apart: {
    events: Object.keys(ADDRESS_EVENTS),
    split: ({ book, ...state }) => ({
      rest: { ...state, ...(book === undefined ? {} : { book: withoutParts(book) }) },
      parts: book === undefined ? {} : partsOfBook(book),
    }),
    join: (stored, parts) => {
      const { book, ...rest } = stored as PoolState;
      return book === undefined ? rest : { ...rest, book: bookFrom(book, parts) };
    },
  },
  decider: poolDecider,
  stateVersion: 2,
  view: documents.view,
};
