import { HubError, type HubErrorKind } from '../../../app/hubs/management-cluster.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { faultDecider, type CountedFaults, type Fault } from '../../simulation/faults.ts';
import { callSettings, type GivenSettings } from './settings.ts';

/** Settings from one source (an object's annotation, or the hub) with the calls counted for that source. */
export type FaultSource = Omit<CountedFaults<unknown>, 'settings'> & { readonly given: GivenSettings };

export type HubFault = Fault<HubError>;

type RefusalKey = 'unavailable' | 'unauthorized' | 'forbidden' | 'throttle' | 'conflict' | 'invalid';
/** Answers of a hub that carries nothing out; of several the first one counts. */
const REFUSALS: {
  readonly [Key in RefusalKey]: readonly [kind: HubErrorKind, message: string, facts?: JsonObject];
} = {
  unavailable: ['unavailable', '503, the hub is down'],
  unauthorized: ['unauthorized', '401, the hub refuses our credential', { status: 401 }],
  forbidden: ['unauthorized', '403, the hub denies us this', { status: 403 }],
  throttle: ['throttled', '429, too many requests'],
  conflict: ['conflict', '409, the object has been modified; read it again'],
  invalid: [
    'invalid',
    '422, a rule of the hub refuses this object',
    { causes: [{ field: 'spec', reason: 'FieldValueInvalid', message: 'simulated' }] },
  ],
};

const refusalOf = (refusing: RefusalKey, retryAfterMs: number): HubError => {
  const [kind, message, facts = {}] = REFUSALS[refusing];
  const later = refusing === 'unavailable' || refusing === 'throttle' ? { retryAfterMs } : {};
  return new HubError(kind, `simulated: ${message}`, { facts, ...later });
};

const decide = faultDecider({
  refusing: Object.keys(REFUSALS) as readonly RefusalKey[],
  ofWrites: ['late', 'lostAnswer', 'conflict', 'invalid'],
  refusalOf,
  whenDead: 'unavailable',
});

export const decideFault = (sources: readonly FaultSource[], now: number, isWrite: boolean): HubFault =>
  decide(
    sources.map(({ given, ...counted }) => ({ ...counted, settings: callSettings(given) })),
    now,
    isWrite,
  );
