import type { ObjectPlace } from '../../../domain/hubs/hub-object.ts';
import type { Condition } from '../../../domain/hubs/hub-codecs.ts';
import type { GivenSettings, LifeSettings } from './settings.ts';

/**
 * What is stored of one object: its beginning, how it is to live, and every later write with its time. Everything a read
 * shows is computed from this and the present time (its kind's behaviour).
 */
export type ObjectRecord<Spec extends object = object> = ObjectPlace & {
  readonly kind: string;
  readonly uid: string;
  /** Number of the object on its hub; base of job ids. */
  readonly sequence: number;
  readonly id?: string;
  readonly labels: { readonly [key: string]: string };
  readonly annotations: { readonly [key: string]: string };
  /** Hub time in milliseconds since 1970, like every `at`. */
  readonly createdAt: number;
  readonly spec: Spec;
  /** Of the spec: equal texts mean that nothing changed. */
  readonly configVersion: string;
  readonly life: LifeSettings;
  /** Faults of single calls about this object. */
  readonly faults: GivenSettings;
  /** By subnet; one that is given stays. */
  readonly addresses?: { readonly [subnet: string]: string };
  readonly baseDomain: string;
  readonly writes: readonly Write<Spec>[];
};

export type Write<Spec extends object = object> = { readonly at: number } & (
  | { readonly kind: 'patch'; readonly spec: Spec; readonly configVersion: string }
  /** By whoever made it, not by its operator. */
  | { readonly kind: 'status'; readonly status: object }
  | { readonly kind: 'delete' }
  | { readonly kind: 'remove-finalizer'; readonly finalizer: string }
  /** It gets this host; a later moment is a promise. */
  | { readonly kind: 'host'; readonly host: string }
  /** Kind of what disappears: the object, or one beside it. */
  | { readonly kind: 'vanish'; readonly what: string }
);

/** Time in which the operator reacts to a change. */
export const REACTION_MS = 10;

/** Kubernetes times have whole seconds. */
export const kubernetesTime = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** Sets one condition; the transition time moves only when the status changes, as in Kubernetes. */
export const withCondition = (
  conditions: readonly Condition[],
  at: number,
  type: string,
  status: Condition['status'],
  reason: string,
  message = '',
): readonly Condition[] => {
  const before = conditions.find((condition) => condition.type === type);
  const lastTransitionTime =
    before?.status === status && before.lastTransitionTime !== undefined
      ? before.lastTransitionTime
      : kubernetesTime(at);
  const next: Condition = { type, status, reason, message, lastTransitionTime };
  return before === undefined
    ? [...conditions, next]
    : conditions.map((condition) => (condition === before ? next : condition));
};
