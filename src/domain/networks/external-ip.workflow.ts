import type { JsonObject } from '../json.ts';
import { isObject, objectAt, own, stringAt } from '../json-tools.ts';
import { placeIn } from '../placed-document.ts';
import { placedMeter } from '../placed-meter.ts';
import { asking, documentOf, type PlacedRun } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import type { Call } from '../process/declaration.ts';
import { OWN_BACKOFF } from '../process/effects.ts';
import { userText } from '../exclusive-use.ts';
import { networkEventTypes } from './event-types.ts';
import {
  ADDRESS_ANNOTATION,
  externalIp,
  wantedAddress,
  type ExternalIpCommand,
  type ExternalIpEvent,
  type ExternalIpState,
} from './external-ip.resource.ts';
import { EXTERNAL_IP } from './hub-objects.ts';
import { addressText, parseAddress } from '../ranges.ts';

type IpRun = PlacedRun<ExternalIpState>;

const poolOf = (run: IpRun): string => stringAt(objectAt(objectAt(documentOf(run), 'spec'), 'pool'), 'id');

const toPool = (run: IpRun, operation: string, more: JsonObject = {}): Call => ({
  port: 'addresses',
  operation,
  lane: 'addresses',
  args: { pool: poolOf(run), holder: { kind: externalIp.kind, id: run.id }, ...more },
});

/** What it was given, as the claim was answered. */
const givenGeneration = (run: IpRun): JsonObject => {
  const { generation } = run.done['claim']?.result ?? {};
  return generation === undefined ? {} : { generation };
};

/** The address that was given to it here; absent where the hub's operator chooses. */
const givenAddress = (run: IpRun): string => stringAt(run.done['claim']?.result, 'address');

const userIn = (data: JsonObject): string => {
  const holder = objectAt(data, 'holder');
  return userText({ kind: stringAt(holder, 'kind'), id: stringAt(holder, 'id') });
};

/** From the ordered IP to its object on the hub of its pool, and back. Its address is claimed from the pool's own stream. */
export const actingExternalIp = placedKind<ExternalIpState, ExternalIpCommand, ExternalIpEvent>(externalIp, {
  eventTypes: networkEventTypes,
  object: EXTERNAL_IP,
  wakes: {
    types: ['AddressReleased', 'AddressObserved'],
    of: poolOf,
    // It may have another quarantine since.
    all: ['ExternalIPPoolPlaced', 'ExternalIPPoolRevised'],
  },
  passing: { step: 'register', reason: 'AddressShownTwice' },
  first: [
    asking('place', (run: IpRun) => toPool(run, 'place'), {
      done: ({ subject }) => subject.place !== undefined,
      record: ({ id }, { place }, at) =>
        isObject(place) ? { type: 'PlaceOnHub', at, ...placeIn(place, EXTERNAL_IP.nameOf(id)) } : undefined,
      keep: () => ({ waiting: 'its pool is on no hub yet' }),
    }),
    asking(
      'claim',
      (run: IpRun) => {
        const wanted = wantedAddress(documentOf(run));
        return toPool(run, 'claim', wanted === undefined ? {} : { wanted });
      },
      {
        after: ['place'],
        undo: {
          // Its own: after another claim the holder may have one that is to stay.
          call: (run) => toPool(run, 'release', givenGeneration(run)),
          look: (run) => toPool(run, 'look'),
          absent: (_run, answer) => answer['generation'] === undefined,
          rules: { backoff: OWN_BACKOFF },
        },
      },
    ),
  ],
  following: [
    {
      // The operator of its hub chose: what it shows is the holder's only once the pool says so.
      name: 'register',
      after: ['apply'],
      needed: ({ subject }) => subject.shown !== undefined,
      work: (run) => {
        const { address = '', changes = 0 } = run.subject.shown ?? {};
        // The hub may show an address again that was registered before: the pool is asked once for each change, and again
        // when it may have passed the address on.
        const asked = own(run.memo.answers, 'register') ?? 0;
        return { call: toPool(run, 'observe', { address }), instance: `${changes}.${asked}.${run.cycle}` };
      },
      record: (_run, answer, at) => {
        const [reason, message] = [stringAt(answer, 'reason'), stringAt(answer, 'message')];
        return reason === ''
          ? { type: 'RecordAllocated', at, address: stringAt(answer, 'address') }
          : { type: 'RecordFailure', at, reason, message };
      },
    },
  ],
  wanted: (run) => {
    const address = givenAddress(run);
    return {
      spec: { pool: poolOf(run) },
      ...(address === '' ? {} : { annotations: { [ADDRESS_ANNOTATION]: address } }),
    };
  },
  ready: (run, object, at) => {
    const given = givenAddress(run);
    if (given !== '') return { type: 'RecordAllocated', at, address: given };
    const shown = stringAt(object, 'address');
    const parsed = parseAddress(shown);
    const address = parsed === undefined ? shown : addressText(parsed);
    return address === '' ? undefined : { type: 'RecordShown', at, address };
  },
  states: ['accepted', 'pending', 'allocated', 'failed', 'deleting'],
  deeds: {
    place: 'find the hub of its pool',
    claim: 'claim an address',
    'undo-claim': 'give its address back',
    register: 'record its address',
  },
  sentences: {
    ExternalIPAddressShown: (data) => `The hub shows address ${stringAt(data, 'address')}.`,
    ExternalIPAllocated: (data) => `Address ${stringAt(data, 'address')} is allocated.`,
    ExternalIPAttached: (data) => `It was attached: ${userIn(data)} uses it.`,
    ExternalIPDetached: (data) => `It was detached: ${userIn(data)} uses it no longer.`,
  },
  /** Billed while it is allocated. */
  meter: placedMeter(externalIp, {
    version: 1,
    resourceType: 'external_ip',
    templateKind: 'externalIpPool',
    part: 'address',
    billedState: 'EXTERNAL_IP_STATE_ALLOCATED',
    billed: (document) => {
      const pool = objectAt(objectAt(document, 'spec'), 'pool');
      const id = stringAt(pool, 'id');
      return { template: { id, name: stringAt(pool, 'name') }, dimensions: { external_ip_pool: id } };
    },
  }),
});
