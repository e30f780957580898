import { HUB_NEWS } from '../hubs/health-events.ts';
import type { JsonObject } from '../json.ts';
import { listAt, objectAt, stringAt } from '../json-tools.ts';
import { placeByScheduler } from '../placed-by-scheduler.ts';
import { documentOf } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { EXTERNAL_IP, EXTERNAL_IP_POOL } from './hub-objects.ts';
import { networkEventTypes } from './event-types.ts';
import {
  externalIpPool,
  HUB_ANNOTATION,
  type PoolCommand,
  type PoolEvent,
  type PoolState,
} from './external-ip-pool.resource.ts';

const holderText = (data: JsonObject): string => {
  const holder = objectAt(data, 'holder');
  return `${stringAt(holder, 'kind')} ${stringAt(holder, 'id')}`;
};

/** From the ordered pool to its object on a hub, and back. */
export const actingExternalIpPool = placedKind<PoolState, PoolCommand, PoolEvent>(externalIpPool, {
  eventTypes: networkEventTypes,
  object: EXTERNAL_IP_POOL,
  wakes: { types: HUB_NEWS },
  // Its addresses are on its hub.
  first: [
    placeByScheduler(externalIpPool.kind, EXTERNAL_IP_POOL, [EXTERNAL_IP_POOL.kind, EXTERNAL_IP.kind], {
      hubAnnotation: HUB_ANNOTATION,
    }),
  ],
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
  states: ['accepted', 'pending', 'ready', 'failed', 'deleting', 'delete_failed'],
  deeds: { place: 'find a hub for it' },
  sentences: {
    ExternalIPPoolBecameReady: 'The pool is ready.',
    AddressAssigned: (data) => `Address ${stringAt(data, 'address')} was given to ${holderText(data)}.`,
    AddressRequested: (data) => `Room for an address was given to ${holderText(data)}.`,
    AddressObserved: (data) => `The hub gave address ${stringAt(data, 'address')} to ${holderText(data)}.`,
    AddressShownTwice: (data) =>
      `The hub shows address ${stringAt(data, 'address')} for two holders; an operator must look.`,
    AddressReleased: (data) => `The address of ${holderText(data)} was given back.`,
  },
});
