import type { GovernedKind } from '../catalog/field-governance.ts';
import { FULL_REFERENCE, governedSpecOf, LEAF, PARAMETERS } from '../catalog/spec-shape.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, listAt, numberAt, objectAt, stringAt } from '../json-tools.ts';

/** What the specs of compute instances and of their templates have in common (OSAC). */
const DISK = { size_gib: LEAF, storage_tier: LEAF };

/** The fields of a compute instance's spec that a catalogue item may govern. A test compares this with the message. */
export const INSTANCE_SPEC: GovernedKind = governedSpecOf({
  message: 'ComputeInstance',
  words: 'compute instance',
  secrets: ['user_data'],
  templateParts: {},
  shape: {
    [PARAMETERS]: { '*': LEAF },
    restart_requested_at: LEAF,
    ssh_public_key: LEAF,
    boot_disk: DISK,
    additional_disks: LEAF,
    run_strategy: LEAF,
    user_data: LEAF,
    network_attachments: LEAF,
    instance_type: FULL_REFERENCE,
    auto_external_ip_attachment: LEAF,
    disk_image: FULL_REFERENCE,
  },
});

export const specOf = (document: JsonObject): JsonObject => objectAt(document, 'spec');

export const ALWAYS = 'Always';
const RUN_STRATEGIES: readonly string[] = [ALWAYS, 'Halted'];
/** `field`: its path; an absent one is said elsewhere. */
export const runStrategyRejection = (spec: JsonObject, field: string): Rejection | undefined => {
  const strategy = stringAt(spec, 'run_strategy');
  return strategy === '' || RUN_STRATEGIES.includes(strategy)
    ? undefined
    : invalid(
        'INVALID_RUN_STRATEGY',
        field,
        `field '${field}' must be one of ${RUN_STRATEGIES.join(', ')}, but it is '${strategy.slice(0, 64)}'`,
      );
};

/** Where no setting says otherwise. */
export const MAX_DISK_GIB = 65_536;
const MAX_ADDITIONAL_DISKS = 32;
const TIER = /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/;
const MAX_TIER = 63;

const diskRejection = (disk: JsonObject, field: string, mostGib: number): Rejection | undefined => {
  const size = numberAt(disk, 'size_gib');
  if (size < 1 || size > mostGib)
    return invalid(
      'INVALID_SIZE',
      `${field}.size_gib`,
      `field '${field}.size_gib' must be from 1 to ${mostGib}, but it is ${size}`,
    );
  const tier = stringAt(disk, 'storage_tier');
  return tier === '' || (tier.length <= MAX_TIER && TIER.test(tier))
    ? undefined
    : invalid(
        'INVALID_STORAGE_TIER',
        `${field}.storage_tier`,
        `field '${field}.storage_tier' must be the name of a storage tier`,
      );
};

/** Sizes of all disks that are given; a boot disk without a size counts as none (OSAC). */
export const disksRejection = (spec: JsonObject, mostGib: number): Rejection | undefined => {
  const boot = objectAt(spec, 'boot_disk');
  const wrong = numberAt(boot, 'size_gib') === 0 ? undefined : diskRejection(boot, 'spec.boot_disk', mostGib);
  if (wrong !== undefined) return wrong;
  const disks = listAt(spec, 'additional_disks');
  if (disks.length > MAX_ADDITIONAL_DISKS)
    return invalid(
      'TOO_MANY_DISKS',
      'spec.additional_disks',
      `field 'spec.additional_disks' may hold at most ${MAX_ADDITIONAL_DISKS} disks`,
    );
  for (const [index, disk] of disks.entries()) {
    const bad = diskRejection(isObject(disk) ? disk : {}, `spec.additional_disks.${index}`, mostGib);
    if (bad !== undefined) return bad;
  }
  return undefined;
};
