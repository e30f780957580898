import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import type { CompiledSchema } from './schema/compile.ts';

export type { JsonObject, JsonValue };

export type OwnerReference = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
};

export type ManagedFields = {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly time: string;
  readonly fieldsType: 'FieldsV1';
  readonly fieldsV1: JsonObject;
  readonly subresource?: string;
};

export type ObjectMeta = {
  readonly name: string;
  readonly namespace?: string;
  readonly generateName?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: { readonly [key: string]: string };
  readonly annotations?: { readonly [key: string]: string };
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly ManagedFields[];
};

/** A stored object. Never changed in place: watchers, pages and the history share it. */
export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: JsonValue | undefined | ObjectMeta;
};

/** One kind that the server serves, in one version. */
export type Kind = {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  /** Spec and status are written by different requests. */
  readonly statusSubresource: boolean;
  /** The server counts spec changes in `metadata.generation`. */
  readonly counted: boolean;
  /** PUT without a resourceVersion is accepted (most kinds of the core, no custom resource). */
  readonly unconditionalUpdate: boolean;
  /** Defined by a CustomResourceDefinition. */
  readonly custom: boolean;
  readonly schema?: CompiledSchema;
};

export type User = {
  readonly name: string;
  readonly groups: readonly string[];
};

/** `clusterorders.osac.openshift.io`, as it is called in error texts; core kinds have no group. */
export const resourceName = ({ plural, group }: { plural: string; group: string }): string =>
  group === '' ? plural : `${plural}.${group}`;

export const apiVersionOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? version : `${group}/${version}`;
