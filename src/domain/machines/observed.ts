import type { DomainEvent } from '../decider.ts';
import type { OwnedObject } from '../hubs/hub-object.ts';
import type { JsonObject } from '../json.ts';
import { defined, numberAt, objectAt, sameJson } from '../json-tools.ts';
import { isSettled, isUnderWay, type PlacedState } from '../placed-document.ts';
import type { PlacedRun } from '../placed-run.ts';
import { timeOf } from './moment.ts';

/** What hubs show of machines, virtual and bare metal. */
type Machine = { readonly prefix: string; readonly words: string };
type Seen = object & { readonly message?: string };

/** `moment`: when what is seen came about. */
export const observedEvents = <One extends Seen>(
  state: PlacedState & { readonly observed?: One },
  observed: One,
  told: { readonly isFailed: boolean; readonly isAsWanted: boolean; readonly moment: string },
  { prefix, words }: Machine,
): readonly DomainEvent[] => {
  if (!isUnderWay(state)) return [];
  const isTold = told.isFailed
    ? state.failure !== undefined
    : isSettled(state) || (state.failure === undefined && !told.isAsWanted);
  const { reported, observed: before } = state;
  if (isTold && reported === undefined && sameJson(before, observed)) return [];
  const seen = { type: `${prefix}Observed`, data: { at: told.moment, ...observed } };
  if (!told.isFailed) return [seen];
  const why = { reason: 'ProvisioningFailed', message: `the hub shows the ${words} as failed` };
  const data = { at: told.moment, ...why, ...defined({ detail: observed.message }) };
  return [seen, { type: `${prefix}Failed`, data }];
};

/** Of what somebody changes again and again. */
const DRIFT_AGAIN_MS = 60_000;

export type Drifted = { readonly drift?: { readonly at: string; readonly fields: readonly string[] } };

export const driftEvents = (
  state: PlacedState & Drifted,
  { at, fields }: { readonly at: string; readonly fields: readonly string[] },
  { prefix }: Machine,
): readonly DomainEvent[] => {
  const isEarly = state.drift !== undefined && timeOf(at) - timeOf(state.drift.at) < DRIFT_AGAIN_MS;
  return !isUnderWay(state) || isEarly ? [] : [{ type: `${prefix}DriftSeen`, data: { at, fields } }];
};

/** Fields that somebody else changed since it was sent. What is older than that says nothing. */
export const driftIn = (
  run: PlacedRun,
  object: JsonObject,
  kind: OwnedObject,
  wanted: JsonObject,
): readonly string[] => {
  const sent = numberAt(run.done['apply']?.result, 'generation');
  if (numberAt(object, 'generation') < sent) return [];
  const drift = kind.drift?.(objectAt(object, 'spec'), wanted);
  return drift !== undefined && 'patch' in drift ? Object.keys(drift.patch ?? {}) : [];
};

/** A change of what it shows begins what is wanted of it anew. */
export const undone = <State extends PlacedState>(state: State): State => {
  const { done: _done, ...begun } = state;
  return begun as State;
};
