import {
  documentDecider,
  documentView,
  type DocumentCommand,
  type DocumentState,
} from '../catalog/document.ts';
import { staged } from '../catalog/life-stages.ts';
import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, numberAt, objectAt, stringAt } from '../json-tools.ts';
import type { ResourceKind } from '../resource.ts';
import type { InstanceTypeEvent } from './events.ts';

/** Sizes of compute instances (osac-api-more.md Instance types): the provider's, the same for every tenant. */
const STAGES = {
  field: 'state',
  active: 'INSTANCE_TYPE_STATE_ACTIVE',
  deprecated: 'INSTANCE_TYPE_STATE_DEPRECATED',
  obsolete: 'INSTANCE_TYPE_STATE_OBSOLETE',
  clears: false,
} as const;
const STATES: readonly unknown[] = [STAGES.active, STAGES.deprecated, STAGES.obsolete];
const IMMUTABLE = ['spec.cores', 'spec.memory_gib', 'spec.gpu'];
const MAX_GPUS = 16;
const SHARED = 'shared';

export const instanceTypeDecider = documentDecider({
  words: 'instance type',
  events: {
    created: 'InstanceTypeDefined',
    revised: 'InstanceTypeRevised',
    deletionRequested: 'InstanceTypeRetirementRequested',
    retired: 'InstanceTypeRetired',
  },
  immutable: IMMUTABLE,
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
    tenantRejection(tenant) ??
    sizesRejection(objectAt(document, 'spec')) ??
    stateRejection(objectAt(document, 'spec'), previous === undefined) ??
    replacementRejection(objectAt(document, 'spec'), name),
});

export const instanceType: ResourceKind<DocumentState, DocumentCommand, InstanceTypeEvent> = {
  kind: 'instanceType',
  collection: 'instance_types',
  words: 'instance type',
  message: 'InstanceType',
  service: 'InstanceTypes',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  ids: 'equals-name',
  nameScope: 'global',
  event: { field: 'instance_type', public: true },
  publicList: [
    {
      filter: `this.spec.state == ${STAGES.active} || this.spec.state == ${STAGES.deprecated}`,
      when: { unlessMentioned: 'spec.state' },
    },
  ],
  listed: (document) => {
    const { state } = objectAt(document, 'spec');
    return state === STAGES.active || state === STAGES.deprecated;
  },
  outsideProjectsForAll: true,
  defaultTenant: SHARED,
  privateOnly: ['metadata.finalizers'],
  secrets: [],
  immutable: IMMUTABLE,
  references: [{ path: 'spec.deprecation.replacement', kind: 'instanceType', scope: 'local' }],
  pointsAt: (document) => {
    const id = stringAt(objectAt(objectAt(objectAt(document, 'spec'), 'deprecation'), 'replacement'), 'id');
    return id === '' ? [] : [{ kind: 'instanceType', id }];
  },
  protectedWhileReferenced: true,
  decider: instanceTypeDecider,
  stateVersion: 1,
  view: (state) => {
    const view = documentView(state);
    return view.exists ? { ...view, state: stringAt(objectAt(view.document, 'spec'), 'state') } : view;
  },
};

const tenantRejection = (tenant: string): Rejection | undefined =>
  tenant === SHARED
    ? undefined
    : reject(
        'invalid',
        'NOT_SHARED',
        `instance types belong to tenant '${SHARED}': leave 'metadata.tenant' out`,
        {
          field: 'metadata.tenant',
        },
      );

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
