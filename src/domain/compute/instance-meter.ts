import { numberAt, objectAt, stringAt, withoutEmpty } from '../json-tools.ts';
import { placedMeter } from '../placed-meter.ts';
import { computeInstance } from './compute-instance.resource.ts';
import { specOf } from './instance-spec.ts';

/** Metered by OSAC's rules: billed while it runs, by type, image and boot disk. */
export const instanceMeter = placedMeter(computeInstance, {
  version: 3,
  resourceType: 'compute_instance',
  isOsacs: true,
  timesAreTold: true,
  templateKind: 'computeInstanceTemplate',
  part: '',
  billedState: 'COMPUTE_INSTANCE_STATE_RUNNING',
  billed: (document) => {
    const spec = specOf(document);
    const template = objectAt(spec, 'template');
    const name = stringAt(template, 'name');
    const item = stringAt(objectAt(spec, 'catalog_item'), 'name');
    const size = numberAt(objectAt(spec, 'boot_disk'), 'size_gib');
    return {
      template: { id: stringAt(template, 'id'), name },
      // OSAC's records name both, where those of clusters have ids.
      templateRecord: name,
      ...(item === '' ? {} : { catalogItem: item }),
      dimensions: {
        ...withoutEmpty({
          instance_type: stringAt(objectAt(spec, 'instance_type'), 'name'),
          image_ref: stringAt(objectAt(spec, 'disk_image'), 'name'),
        }),
        ...(size === 0 ? {} : { boot_disk_size_gib: size }),
      },
    };
  },
});
