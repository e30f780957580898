import type { JsonValue } from '../../../domain/json.ts';

/** The value itself, which nobody can change any more: several readers get the same object. */
export const frozen = <Value extends JsonValue>(value: Value): Value => {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
};
