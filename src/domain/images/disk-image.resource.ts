import { documentKind } from '../catalog/document-kind.ts';
import { staged } from '../catalog/life-stages.ts';
import type { Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { listAt, objectAt, stringAt } from '../json-tools.ts';
import { validationFailed } from '../metadata-rules.ts';

/**
 * Images that disks are made from (OSAC): tenants keep their own, those of `shared` are offered
 * to everybody.
 */
const AVAILABLE = 'DISK_IMAGE_LIFECYCLE_AVAILABLE';
const STAGES = {
  field: 'lifecycle',
  active: AVAILABLE,
  deprecated: 'DISK_IMAGE_LIFECYCLE_DEPRECATED',
  obsolete: 'DISK_IMAGE_LIFECYCLE_OBSOLETE',
  clears: true,
} as const;
const SOURCE_TYPES = ['SOURCE_TYPE_REGISTRY'];
const OS_FAMILIES = ['GUEST_OS_FAMILY_LINUX', 'GUEST_OS_FAMILY_WINDOWS'];
const ARCHITECTURES = ['ARCHITECTURE_AMD64', 'ARCHITECTURE_ARM64', 'ARCHITECTURE_S390X'];
const LIFECYCLES = [STAGES.active, STAGES.deprecated, STAGES.obsolete];

export const diskImage = documentKind({
  kind: 'diskImage',
  context: 'catalog',
  events: {
    created: 'DiskImageRegistered',
    revised: 'DiskImageRevised',
    deletionRequested: 'DiskImageRetirementRequested',
    retired: 'DiskImageRetired',
  },
  rights: 'owned',
  inCatalogue: true,
  state: 'spec.lifecycle',
  publicList: [{ path: 'spec.lifecycle', is: [STAGES.active, STAGES.deprecated] }],
  immutable: ['spec.source_type', 'spec.source_ref', 'spec.guest_os_family'],
  normalize: (document, { at, previous }) => {
    const { spec, stamps } = staged(objectAt(document, 'spec'), objectAt(previous, 'spec'), STAGES, at);
    return {
      ...document,
      spec: {
        ...spec,
        guest_os_family: spec['guest_os_family'] ?? 'GUEST_OS_FAMILY_LINUX',
        ...(Object.keys(stamps).length === 0 ? {} : { deprecation: stamps }),
      },
    };
  },
  check: (document, { previous }) => imageRejection(objectAt(document, 'spec'), previous === undefined),
});

type Violation = { readonly field: string; readonly problem: string };

const imageRejection = (spec: JsonObject, isNew: boolean): Rejection | undefined => {
  const violations: Violation[] = [
    ...oneOf('source_type', spec['source_type'], SOURCE_TYPES),
    ...(stringAt(spec, 'source_ref') === ''
      ? [{ field: 'object.spec.source_ref', problem: 'must be at least 1 characters' }]
      : []),
    ...oneOf('guest_os_family', spec['guest_os_family'], OS_FAMILIES),
    ...architectureViolations(listAt(spec, 'architecture')),
    ...oneOf('lifecycle', spec['lifecycle'], isNew ? [AVAILABLE] : LIFECYCLES),
  ];
  return violations.length === 0 ? undefined : validationFailed(violations);
};

/** Numbers that no value of the enum has stay numbers in a document. */
const oneOf = (name: string, value: JsonValue | undefined, known: readonly string[]): Violation[] =>
  typeof value === 'string' && known.includes(value)
    ? []
    : [
        {
          field: `object.spec.${name}`,
          problem: value === undefined ? 'is required' : `must be one of ${known.join(', ')}`,
        },
      ];

const architectureViolations = (architectures: readonly JsonValue[]): Violation[] => {
  const field = 'object.spec.architecture';
  if (architectures.length === 0) return [{ field, problem: 'must contain at least 1 item(s)' }];
  const unknown = architectures.findIndex((value) => !ARCHITECTURES.includes(value as string));
  if (unknown >= 0)
    return [{ field: `${field}[${unknown}]`, problem: `must be one of ${ARCHITECTURES.join(', ')}` }];
  return new Set(architectures).size === architectures.length
    ? []
    : [{ field, problem: 'must name each architecture once' }];
};
