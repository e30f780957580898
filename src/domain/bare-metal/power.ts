import type { Condition } from '../hubs/hub-codecs.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import { HALTED } from './bare-metal-spec.ts';
import type { ObservedBareMetal } from './event-shapes.ts';

/** What the operator's words for a machine and its power come to (OSAC). */
export type Shown = 'PROVISIONING' | 'RUNNING' | 'FAILED' | 'DELETING' | 'STARTING' | 'STOPPING' | 'STOPPED';

export const conditionOf = (
  observed: Pick<ObservedBareMetal, 'conditions'> | undefined,
  type: string,
): Condition | undefined => observed?.conditions.find((one) => one.type === type);

export const powerOf = (observed: Pick<ObservedBareMetal, 'conditions'> | undefined): Condition | undefined =>
  conditionOf(observed, 'PowerSynced');

export const isHalted = (document: JsonObject): boolean =>
  stringAt(objectAt(document, 'spec'), 'run_strategy') === HALTED;

/** On its way: it was seen that power has to change, or it changes. */
const CHANGING: readonly unknown[] = ['Progressing', 'PowerSyncRequired'];

/** What of an observation says it. */
type Seen = Pick<ObservedBareMetal, 'phase' | 'conditions'>;

export const shownBy = (document: JsonObject, observed: Seen): Shown => {
  const { phase } = observed;
  if (phase === 'Failed') return 'FAILED';
  if (phase === 'Deleting') return 'DELETING';
  const power = powerOf(observed);
  if (power === undefined || power.status === 'Unknown') return 'PROVISIONING';
  if (power.status === 'True') return power.reason === 'PowerOff' ? 'STOPPED' : 'RUNNING';
  if (!CHANGING.includes(power.reason)) return 'FAILED';
  return isHalted(document) ? 'STOPPING' : 'STARTING';
};

/** It has a host, for which somebody pays; what nobody says stays as it was. */
export const hasHost = (observed: ObservedBareMetal, had: boolean): boolean => {
  const { phase } = observed;
  if (phase === 'Progressing' || phase === 'Ready') return true;
  const status = conditionOf(observed, 'Allocated')?.status;
  return status === 'True' || (had && status !== 'False' && phase !== '' && phase !== 'Allocating');
};
