import { obsoleteReason } from '../../../domain/compute/instance-order.ts';
import { INSTANCE_SPEC } from '../../../domain/compute/instance-spec.ts';
import type { Offered } from './catalog-item.ts';

/** Compute instances as they are offered. */
export const OFFERED_INSTANCES: Offered = {
  governed: INSTANCE_SPEC,
  templateKind: 'computeInstanceTemplate',
  references: {
    instance_type: { kind: 'instanceType', words: 'instance type', unusable: obsoleteReason },
    disk_image: { kind: 'diskImage', words: 'disk image', unusable: obsoleteReason },
  },
};
