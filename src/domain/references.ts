import { reject, type Rejection } from './decider.ts';
import type { JsonValue } from './json.ts';
import { isObject, stringAt } from './json-tools.ts';

/**
 * References to other objects (OSAC): `{id}`, `{name}` or both. Full references may say
 * where a name is to be looked for: in a project of the own tenant, or among what is shared.
 */
export type Reference = {
  readonly id?: string;
  readonly name?: string;
  readonly project?: string;
  readonly shared?: boolean;
};

export const referenceOf = (value: JsonValue | undefined): Reference | undefined => {
  if (!isObject(value)) return undefined;
  const id = stringAt(value, 'id');
  const name = stringAt(value, 'name');
  const project = stringAt(value, 'project');
  return {
    ...(id === '' ? {} : { id }),
    ...(name === '' ? {} : { name }),
    ...(project === '' ? {} : { project }),
    ...(value['shared'] === true ? { shared: true } : {}),
  };
};

/** How a reference is named in texts: by its id, else by its name. */
export const referenceText = (reference: Reference): string =>
  (reference.id ?? reference.name ?? '').slice(0, MAX_SHOWN);

/** Characters of a caller's text that an answer repeats. */
const MAX_SHOWN = 253;

/** True when the object is the one that the reference speaks of. */
export const refersTo = (reference: Reference, object: { id: string; name: string }): boolean =>
  (reference.id !== undefined || reference.name !== undefined) &&
  (reference.id === undefined || reference.id === object.id) &&
  (reference.name === undefined || reference.name === object.name);

/** `field` as the caller sees it in the violation, for example `object.spec.template`. */
export const emptyReference = (message: string, field: string): Rejection =>
  referenceRejection(field, `${message} reference must specify id or name`, 'REFERENCE_EMPTY');

/** `hint` goes on after the text: what to do about it. */
export const unknownReference = (
  message: string,
  field: string,
  reference: Reference,
  hint = '',
): Rejection =>
  referenceRejection(
    field,
    `${message} "${referenceText(reference)}" not found${hint}`,
    'REFERENCE_NOT_FOUND',
  );

/** `facts.description` is the text of the field violation that accompanies the message. */
const referenceRejection = (field: string, description: string, code: string): Rejection =>
  reject('invalid', code, `reference validation failed: ${field}: ${description}`, {
    field,
    facts: { description },
  });
