import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';

/** How one kind names the stages of its life: in use, to be replaced, no longer to be used. */
export type LifeStages = {
  /** Field of the spec that holds the stage: `lifecycle` or `state`. */
  readonly field: string;
  readonly active: string;
  readonly deprecated: string;
  readonly obsolete: string;
  /** True: going back to active forgets when the other stages were entered. */
  readonly clears: boolean;
};

/**
 * A spec whose stage is filled in and whose stamps say when a stage was entered (OSAC). Stamps are the service's:
 * sent ones are ignored. `before` is the spec as stored.
 */
export const staged = (
  spec: JsonObject,
  before: JsonObject,
  { field, active, deprecated, obsolete, clears }: LifeStages,
  at: string,
): { readonly spec: JsonObject; readonly stamps: JsonObject } => {
  const { deprecation: _sent, ...rest } = spec;
  const stage = rest[field] ?? active;
  const stamps: JsonObject = clears && stage === active ? {} : stampsOf(before);
  if (stage !== (stringAt(before, field) || active)) {
    if (stage === deprecated) stamps['deprecation_timestamp'] = at;
    if (stage === obsolete) stamps['obsolescence_timestamp'] = at;
  }
  return { spec: { ...rest, [field]: stage }, stamps };
};

const STAMPS = ['deprecation_timestamp', 'obsolescence_timestamp'];

const stampsOf = (spec: JsonObject): JsonObject => {
  const stored = objectAt(spec, 'deprecation');
  return Object.fromEntries(
    STAMPS.flatMap((stamp) => (stored[stamp] === undefined ? [] : [[stamp, stored[stamp]]])),
  );
};
