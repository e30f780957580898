import { HubError } from '../../../../app/hubs/management-cluster.ts';
import type {
  HubObject,
  Manifest,
  ObjectPlace,
  OwnedObject,
  OwnedShown,
} from '../../../../domain/hubs/hub-object.ts';
import type { Labels } from '../rack.ts';
import type { ObjectRecord } from '../record.ts';
import type { OnVersion } from '../stored-object.ts';

export type Life<Shown extends OwnedShown = OwnedShown> = {
  /** The object as it is at that moment; undefined: gone. */
  readonly object: Shown | undefined;
  readonly goneAt: number | undefined;
  /** Hub time of the next change by itself, if there will be one. */
  readonly nextAt: number | undefined;
  /** What its kind's `beside` is shown from. */
  readonly beside?: unknown;
};

/** An object's life, carried on to each later moment that is asked for: nothing of its past is gone through twice. */
export type Living<One extends Life = Life> = (until: number) => One;

/** An object of another kind that the life of one brings with it. It is found by the name of the first. */
export type Beside = {
  readonly kind: HubObject;
  /** Name of the object that brings it, by its own. */
  readonly recordName: (name: string) => string;
  readonly isOf: (record: ObjectRecord, place: ObjectPlace) => boolean;
  /** `hubSecret`: what values are derived from that nobody may guess. Undefined: it is not there. */
  readonly shown: (
    record: ObjectRecord,
    life: Life,
    read: { readonly name: string; readonly key: string; readonly hubSecret: string },
  ) => unknown;
};

/** How a simulated hub treats objects of one kind: what its API server refuses, and what becomes of them with time. */
export type Behaviour = {
  readonly kind: OwnedObject;
  /** Throws HubError `invalid` as an API server answers 422. */
  readonly check: (manifest: Manifest) => void;
  /** Merge patch. Throws HubError `invalid`. */
  readonly merge: (name: string, current: object, change: object) => object;
  readonly versionOf: (spec: object) => string;
  /** A function of record and time: a write at time t changes nothing that happened up to t. */
  readonly live: (record: ObjectRecord, onVersion?: OnVersion) => Living;
  readonly beside: readonly Beside[];
  /** Labels of the host that an object needs; absent: it needs none. */
  readonly hosts?: (spec: object) => Labels;
  /** Subnets that an object has addresses in, by name or id; absent: in none. */
  readonly subnets?: (spec: object) => readonly string[];
};

export type Cause = { field: string; reason: string; message: string };

export const invalidObject = (kind: string, name: string, causes: readonly Cause[]): HubError => {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  const text = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  return new HubError('invalid', `${kind}.osac.openshift.io "${name}" is invalid: ${text}`, {
    facts: { name, causes: causes.map((one) => ({ ...one })) },
  });
};
