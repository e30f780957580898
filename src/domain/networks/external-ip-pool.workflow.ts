import type { PlaceResult } from '../clusters/placement.ts';
import { ZONE_ANNOTATION } from '../clusters/resolve.ts';
import { HUB_NEWS } from '../hubs/health-events.ts';
import type { JsonObject } from '../json.ts';
import { listAt, objectAt, stringAt } from '../json-tools.ts';
import type { Place } from '../placed-document.ts';
import { annotationOf, asking, documentOf, placedKind, type PlacedRun } from '../placed-workflow.ts';
import { EXTERNAL_IP_POOL } from './hub-objects.ts';
import { networkEventTypes } from './event-types.ts';
import { externalIpPool, type PoolState } from './external-ip-pool.resource.ts';

/** What the place of an object is, as the scheduler says it. */
const placeOf = (answer: JsonObject, objectName: string): Place & { decision: JsonObject } => {
  // The scheduler's own result type; it came through JSON.
  const { hub, namespace, simulated, controller, tenantNamespace } = answer as unknown as Extract<
    PlaceResult,
    { placed: true }
  >;
  const decision = objectAt(answer, 'decision');
  const place = { hub, namespace, objectName, simulated, controller, decision };
  return tenantNamespace === undefined ? place : { ...place, tenantNamespace };
};

const placeCall = (run: PlacedRun<PoolState>) => {
  const zone = annotationOf(run, ZONE_ANNOTATION);
  return {
    port: 'scheduler',
    operation: 'place',
    lane: 'scheduler',
    args: {
      holder: { kind: externalIpPool.kind, id: run.id },
      tenant: run.tenant,
      // There are no webhooks and jobs for pools.
      withoutAutomation: true,
      ...(zone === undefined || zone === '' ? {} : { zone }),
    },
  };
};

const NO_HUB = 'no hub can take it at the moment';

const holderText = (data: JsonObject): string => {
  const holder = objectAt(data, 'holder');
  return `${stringAt(holder, 'kind')} ${stringAt(holder, 'id')}`;
};

/** From the ordered pool to its object on a hub, and back. */
export const actingExternalIpPool = placedKind(externalIpPool, {
  types: networkEventTypes,
  object: EXTERNAL_IP_POOL,
  wakes: { types: HUB_NEWS },
  first: [
    asking('place', placeCall, {
      done: ({ subject }) => subject.place !== undefined,
      record: ({ id }, answer, at) =>
        answer['placed'] === true
          ? { type: 'PlaceOnHub', at, ...placeOf(answer, EXTERNAL_IP_POOL.nameOf(id)) }
          : undefined,
      keep: (_run, answer) => ({ waiting: stringAt(answer, 'message') || NO_HUB }),
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
      `The hub shows address ${stringAt(data, 'address')} for two: somebody has to look.`,
    AddressReleased: (data) => `The address of ${holderText(data)} was given back.`,
  },
});
