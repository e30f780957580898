import type { PlacementDecision } from '../hubs/capacity-events.ts';
import type { ActingKind } from '../acting-kind.ts';
import { type PlaceResult, ZONE_ANNOTATION } from '../hubs/placement.ts';
import type { JsonObject } from '../json.ts';
import { listAt, objectAt, stringAt } from '../json-tools.ts';
import type { Place } from '../placed-document.ts';
import {
  annotationOf,
  asking,
  documentOf,
  placedWords,
  placedWorkflow,
  type PlacedRun,
} from '../placed-workflow.ts';
import type { Call } from '../process/declaration.ts';
import { OWN_BACKOFF } from '../process/effects.ts';
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

/** What the place of an object is, as the scheduler says it. */
const placeOf = (answer: JsonObject, objectName: string): Place & { decision: PlacementDecision } => {
  // The scheduler's own result type; it came through JSON.
  const { hub, namespace, simulated, controller, decision, tenantNamespace } = answer as unknown as Extract<
    PlaceResult,
    { placed: true }
  >;
  return {
    hub,
    namespace,
    objectName,
    simulated,
    controller,
    decision,
    ...(tenantNamespace === undefined ? {} : { tenantNamespace }),
  };
};

const onScheduler = ({ id }: PlacedRun<PoolState>, operation: string, more: JsonObject): Call => ({
  port: 'scheduler',
  operation,
  lane: 'scheduler',
  args: { holder: { kind, id }, ...more },
});

const placeCall = (run: PlacedRun<PoolState>): Call => {
  const zone = annotationOf(run, ZONE_ANNOTATION);
  return onScheduler(run, 'place', {
    tenant: run.tenant,
    // There are no webhooks and jobs for pools.
    withoutAutomation: true,
    // Its addresses are on its hub.
    objects: [EXTERNAL_IP_POOL.kind, EXTERNAL_IP.kind],
    ...(zone === undefined || zone === '' ? {} : { zone }),
  });
};

const releaseCall = (run: PlacedRun<PoolState>): Call => {
  const hub = run.subject.place?.hub ?? stringAt(run.done['place']?.result, 'hub');
  return onScheduler(run, 'release', hub === '' ? {} : { hub });
};

const NO_HUB = 'no hub can take it at the moment';

/** From the ordered pool to its object on a hub, and back. */
export const poolWorkflow = placedWorkflow<PoolState, PoolCommand>({
  kind,
  prefix,
  words,
  types: typesOfKind(kind),
  decider: poolDecider,
  object: EXTERNAL_IP_POOL,
  mayWait: 'place',
  wakes: [
    'HubRegistered',
    'HubRevised',
    'HubBecameReachable',
    'HubCredentialsAccepted',
    'HubIdentified',
    'HubDrivingResumed',
    'HubFoundComplete',
    'HubKindsSeen',
  ],
  first: [
    asking('place', placeCall, {
      done: ({ subject }) => subject.place !== undefined,
      record: ({ id }, answer, at) =>
        answer['placed'] === true
          ? { type: 'PlaceOnHub', at, ...placeOf(answer, EXTERNAL_IP_POOL.nameOf(id)) }
          : undefined,
      keep: (_run, answer) =>
        answer['placed'] === true
          ? { hub: stringAt(answer, 'hub') }
          : { waiting: stringAt(answer, 'message') || NO_HUB },
      // A look that gives back whatever was reserved leaves no doubt either.
      undo: {
        call: releaseCall,
        look: releaseCall,
        absent: (_run, answer) => answer['placed'] !== true,
        rules: { backoff: OWN_BACKOFF },
      },
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
