import type { GovernedKind } from '../catalog/field-governance.ts';
import { governedSpecOf, LEAF, PARAMETERS } from '../catalog/spec-shape.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, stringAt } from '../json-tools.ts';

/** What the specs of bare-metal instances and of their templates have in common (OSAC). */
const IMAGE = { source_type: LEAF, source_ref: LEAF };

/** The fields of a bare-metal instance's spec that a catalogue item may govern. A test compares this with the message. */
export const BARE_METAL_SPEC: GovernedKind = governedSpecOf({
  message: 'BareMetalInstance',
  words: 'bare metal instance',
  secrets: ['user_data'],
  templateParts: {},
  shape: {
    [PARAMETERS]: { '*': LEAF },
    ssh_public_key: LEAF,
    user_data: LEAF,
    run_strategy: LEAF,
    restart_trigger: LEAF,
    image: IMAGE,
    network_attachments: LEAF,
    auto_external_ip_attachment: LEAF,
  },
});

const STRATEGY = 'BARE_METAL_INSTANCE_RUN_STRATEGY_';
export const ALWAYS = `${STRATEGY}ALWAYS`;
export const HALTED = `${STRATEGY}HALTED`;

export const strategyRejection = (spec: JsonObject): Rejection | undefined => {
  const field = 'spec.run_strategy';
  return [ALWAYS, HALTED].includes(stringAt(spec, 'run_strategy'))
    ? undefined
    : invalid('INVALID_RUN_STRATEGY', field, `field '${field}' must be one of ${ALWAYS}, ${HALTED}`);
};

const MAX_IMAGE = 512;

/** `field`: its path; it may be left out. */
export const imageRejection = (spec: JsonObject, field: string): Rejection | undefined => {
  const { image } = spec;
  if (!isObject(image)) return undefined;
  for (const part of ['source_type', 'source_ref']) {
    const length = stringAt(image, part).length;
    if (length < 1 || length > MAX_IMAGE)
      return invalid(
        'INVALID_IMAGE',
        `${field}.${part}`,
        `field '${field}.${part}' must have from 1 to ${MAX_IMAGE} characters (got ${length})`,
      );
  }
  return undefined;
};

/** A 64-bit number as JSON has it. */
export const triggerOf = (document: JsonObject): string => stringAt(document, 'restart_trigger') || '0';

/** What a number of JavaScript cannot hold, a hub would be told wrong. */
export const triggerRejection = (spec: JsonObject): Rejection | undefined => {
  const field = 'spec.restart_trigger';
  const most = Number.MAX_SAFE_INTEGER;
  return Number.isSafeInteger(Number(triggerOf(spec)))
    ? undefined
    : invalid('INVALID_TRIGGER', field, `field '${field}' must be from ${-most} to ${most}`);
};
