import type { JsonValue } from '../types.ts';

/** One `x-kubernetes-validations` entry. A rule that names `oldSelf` only applies to changes. */
export type Rule = {
  readonly rule: string;
  readonly message?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
};

/** The part of the structural schema of a CustomResourceDefinition that our CRDs use. */
export type Schema = {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly enum?: readonly JsonValue[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly nullable?: boolean;
  readonly default?: JsonValue;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-validations'?: readonly Rule[];
};

export const keepsUnknown = (schema: Schema): boolean =>
  schema['x-kubernetes-preserve-unknown-fields'] === true;

/** The identity of an element of a `map` list: the values of its keys as one text. */
export const listKey = (schema: Schema, element: JsonValue): string | undefined => {
  if (schema['x-kubernetes-list-type'] !== 'map') return undefined;
  if (typeof element !== 'object' || element === null || Array.isArray(element)) return undefined;
  const record = element as { readonly [key: string]: JsonValue };
  return JSON.stringify((schema['x-kubernetes-list-map-keys'] ?? []).map((key) => record[key] ?? null));
};
