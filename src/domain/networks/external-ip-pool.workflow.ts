import type { ActingKind } from '../acting-kind.ts';
import type { JsonObject } from '../json.ts';
import { listAt, objectAt, stringAt } from '../json-tools.ts';
import { HUB_NEWS, placeByScheduler } from '../placed-by-scheduler.ts';
import { documentOf, placedWords, placedWorkflow } from '../placed-workflow.ts';
import { EXTERNAL_IP, EXTERNAL_IP_POOL } from './hub-objects.ts';
import { networkEventTypes } from './event-types.ts';
import {
  externalIpPool,
  poolDecider,
  type PoolCommand,
  type PoolEvent,
  type PoolState,
} from './external-ip-pool.resource.ts';

const { kind, words } = externalIpPool;
const prefix = 'ExternalIPPool';

/** Kinds with events of both are in one list; those of one are told apart by their resource. */
export const typesOfKind = (resource: string): readonly string[] =>
  networkEventTypes.filter((type) => type.resource === resource).map(({ type }) => type);

/** From the ordered pool to its object on a hub, and back. */
export const poolWorkflow = placedWorkflow<PoolState, PoolCommand>({
  kind,
  prefix,
  words,
  types: typesOfKind(kind),
  decider: poolDecider,
  object: EXTERNAL_IP_POOL,
  wakes: { types: HUB_NEWS },
  // Its addresses are on its hub.
  first: [placeByScheduler(kind, EXTERNAL_IP_POOL, [EXTERNAL_IP_POOL.kind, EXTERNAL_IP.kind])],
  wanted: (run) => {
    const spec = objectAt(documentOf(run), 'spec');
    const strategy = stringAt(spec, 'implementation_strategy');
    return {
      spec: {
        cidrs: [...listAt(spec, 'cidrs')],
        ipFamily: stringAt(spec, 'ip_family') === 'IP_FAMILY_IPV6' ? 'IPv6' : 'IPv4',
        ...(strategy === '' ? {} : { implementationStrategy: strategy }),
      },
    };
  },
  ready: (_run, _object, at) => ({ type: 'RecordReady', at }),
});

const holderText = (data: JsonObject): string => {
  const holder = objectAt(data, 'holder');
  return `${stringAt(holder, 'kind')} ${stringAt(holder, 'id')}`;
};

export const actingExternalIpPool: ActingKind<PoolState, PoolCommand, PoolEvent> = {
  ...externalIpPool,
  workflow: poolWorkflow,
  hubObjects: [EXTERNAL_IP_POOL],
  ...placedWords(
    { prefix, words },
    {
      enumPrefix: 'EXTERNAL_IP_POOL',
      states: ['accepted', 'pending', 'ready', 'failed', 'deleting', 'delete_failed'],
      deeds: { place: 'find a hub for it' },
      sentences: {
        ExternalIPPoolBecameReady: 'The pool is ready.',
        AddressAssigned: (data) => `Address ${stringAt(data, 'address')} was given to ${holderText(data)}.`,
        AddressRequested: (data) => `Room for an address was given to ${holderText(data)}.`,
        AddressObserved: (data) =>
          `The hub gave address ${stringAt(data, 'address')} to ${holderText(data)}.`,
        AddressShownTwice: (data) =>
          `The hub shows address ${stringAt(data, 'address')} for two: somebody has to look.`,
        AddressReleased: (data) => `The address of ${holderText(data)} was given back.`,
      },
    },
  ),
};
