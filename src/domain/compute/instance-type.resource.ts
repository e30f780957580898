import { documentKind } from '../catalog/document-kind.ts';
import { staged } from '../catalog/life-stages.ts';
import { sharedRejection } from '../catalog/shared-only.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, numberAt, objectAt, stringAt } from '../json-tools.ts';

/** Sizes of compute instances (OSAC): the provider's, the same for every tenant. */
const STAGES = {
  field: 'state',
  active: 'INSTANCE_TYPE_STATE_ACTIVE',
  deprecated: 'INSTANCE_TYPE_STATE_DEPRECATED',
  obsolete: 'INSTANCE_TYPE_STATE_OBSOLETE',
  clears: false,
} as const;
const STATES: readonly unknown[] = [STAGES.active, STAGES.deprecated, STAGES.obsolete];
const MAX_GPUS = 16;

export const instanceType = documentKind({
  kind: 'instanceType',
  context: 'catalog',
  events: {
    created: 'InstanceTypeDefined',
    revised: 'InstanceTypeRevised',
    deletionRequested: 'InstanceTypeRetirementRequested',
    retired: 'InstanceTypeRetired',
  },
  rights: 'offered',
  inCatalogue: true,
  outsideProjectsForAll: true,
  ids: 'equals-name',
  nameScope: 'global',
  state: 'spec.state',
  publicList: [{ path: 'spec.state', is: [STAGES.active, STAGES.deprecated] }],
  immutable: ['spec.cores', 'spec.memory_gib', 'spec.gpu'],
  references: [{ path: 'spec.deprecation.replacement', kind: 'instanceType', scope: 'local' }],
  normalize: (document, { at, previous }) => {
    const sent = objectAt(document, 'spec');
    const { spec, stamps } = staged(sent, objectAt(previous, 'spec'), STAGES, at);
    const replacement = objectAt(objectAt(sent, 'deprecation'), 'replacement');
    const deprecation = { ...stamps, ...(Object.keys(replacement).length === 0 ? {} : { replacement }) };
    return {
      ...document,
      spec: { ...spec, ...(Object.keys(deprecation).length === 0 ? {} : { deprecation }) },
    };
  },
  check: (document, { name, tenant, previous }) =>
    sharedRejection(tenant, 'instance types') ??
    sizesRejection(objectAt(document, 'spec')) ??
    stateRejection(objectAt(document, 'spec'), previous === undefined) ??
    replacementRejection(objectAt(document, 'spec'), name),
});

const sizesRejection = (spec: JsonObject): Rejection | undefined => {
  for (const field of ['cores', 'memory_gib'])
    if (numberAt(spec, field) <= 0)
      return invalid(
        `spec.${field}`,
        'INVALID_SIZE',
        `field 'spec.${field}' must be greater than zero, but it is ${numberAt(spec, field)}`,
      );
  const { gpu } = spec;
  return isObject(gpu) ? gpuRejection(gpu) : undefined;
};

const gpuRejection = (gpu: JsonObject): Rejection | undefined => {
  for (const field of ['pci_device_selector', 'resource_name'])
    if (stringAt(gpu, field) === '')
      return invalid(`spec.gpu.${field}`, 'FIELD_REQUIRED', `field 'spec.gpu.${field}' is required`);
  const count = numberAt(gpu, 'count');
  return count >= 1 && count <= MAX_GPUS
    ? undefined
    : invalid(
        'spec.gpu.count',
        'INVALID_SIZE',
        `field 'spec.gpu.count' must be from 1 to ${MAX_GPUS}, but it is ${count}`,
      );
};

const stateRejection = (spec: JsonObject, isNew: boolean): Rejection | undefined => {
  const state = spec['state'];
  if (isNew && state !== STAGES.active)
    return invalid(
      'spec.state',
      'INVALID_STATE',
      `field 'spec.state' of a new instance type must be ${STAGES.active}`,
    );
  return STATES.includes(state)
    ? undefined
    : invalid('spec.state', 'INVALID_STATE', `field 'spec.state' must be one of ${STATES.join(', ')}`);
};

const replacementRejection = (spec: JsonObject, name: string): Rejection | undefined =>
  stringAt(objectAt(objectAt(spec, 'deprecation'), 'replacement'), 'id') === name
    ? invalid(
        'spec.deprecation.replacement',
        'INVALID_REPLACEMENT',
        `instance type '${name}' cannot be its own replacement`,
      )
    : undefined;

const invalid = (field: string, code: string, message: string): Rejection =>
  reject('invalid', code, message, { field });
