import { governedSpec, type CheckValue } from '../catalog/field-governance.ts';
import { itemGovernance } from '../catalog/item-governance.ts';
import { PARAMETERS } from '../catalog/spec-shape.ts';
import { parametersOf } from '../catalog/templates.ts';
import type { CatalogueObject } from '../clusters/catalogue.ts';
import { sshKeyRejection } from '../clusters/revise.ts';
import { invalid, isRefused, reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { defined, isObject, listAt, numberAt, objectAt, stringAt } from '../json-tools.ts';
import { factsOf, itemRejection, templateRejection, type Source } from '../machines/order.ts';
import type { ResolvedInstance } from './event-shapes.ts';
import { disksRejection, INSTANCE_SPEC, runStrategyRejection } from './instance-spec.ts';

/** From what a caller sent and the catalogue as it is now to the facts of an order (OSAC). Pure. */
/** Exactly one of template and catalogue item must be there, and may be ordered. */
export const sourceRejection = (asked: JsonObject, { item, template }: Source): Rejection | undefined => {
  const field = 'spec.catalog_item';
  if (asked['template'] !== undefined && asked['catalog_item'] !== undefined)
    return invalid('TEMPLATE_AND_ITEM', field, 'give either a template or a catalog item, not both');
  const unpublished = itemRejection(item);
  if (unpublished !== undefined) return unpublished;
  if (template === undefined)
    return invalid(
      'FIELD_REQUIRED',
      'spec.template',
      'template is mandatory: give a template or a catalog item',
    );
  return templateRejection(template);
};

/** The spec with the defaults of the item, then those of the template. */
export const filledSpec = (
  asked: JsonObject,
  { item, template }: Source & { readonly template: CatalogueObject },
  misfit: CheckValue,
): JsonObject | Rejection => {
  const governed =
    item === undefined ? asked : governedSpec(asked, itemGovernance(INSTANCE_SPEC, item, template, misfit));
  if (isRefused(governed)) return governed;
  const spec = governed as JsonObject;
  const defaults = objectAt(template.document, 'spec_defaults');
  const disk = { ...objectAt(defaults, 'boot_disk'), ...objectAt(spec, 'boot_disk') };
  const parameters = parametersOf(template, objectAt(spec, PARAMETERS));
  if (isRefused(parameters)) return parameters;
  const { id, name } = template;
  return {
    ...defaults,
    ...spec,
    template: { id, name },
    ...(Object.keys(disk).length === 0 ? {} : { boot_disk: disk }),
    ...(Object.keys(parameters).length === 0 ? {} : { [PARAMETERS]: parameters as JsonObject }),
  };
};

/** A boot disk without a size counts as none. */
const isGiven = (spec: JsonObject, field: string): boolean =>
  field === 'boot_disk' ? numberAt(objectAt(spec, field), 'size_gib') !== 0 : spec[field] !== undefined;
const REQUIRED = ['boot_disk', 'disk_image', 'instance_type', 'run_strategy'];

/** What is wrong with a spec that has all of its defaults; what is missing is said at once. */
export const specRejection = (spec: JsonObject, mostDiskGib: number): Rejection | undefined => {
  const missing = REQUIRED.filter((field) => !isGiven(spec, field));
  if (missing.length > 0)
    return invalid(
      'FIELD_REQUIRED',
      `spec.${missing[0]}`,
      `the following required spec fields are missing: ${missing.join(', ')}`,
    );
  return (
    runStrategyRejection(spec, 'spec.run_strategy') ??
    disksRejection(spec, mostDiskGib) ??
    sshKeyRejection({ sshPublicKey: stringAt(spec, 'ssh_public_key') })
  );
};

/** Tiers have their names as ids. */
export const tierRejection = (
  spec: JsonObject,
  isThere: (name: string) => boolean,
): Rejection | undefined => {
  const tiers = [objectAt(spec, 'boot_disk'), ...listAt(spec, 'additional_disks')].map((disk) =>
    stringAt(disk, 'storage_tier'),
  );
  const unknown = tiers.find((name) => name !== '' && !isThere(name));
  return unknown === undefined
    ? undefined
    : invalid(
        'STORAGE_TIER_MISSING',
        'spec.boot_disk.storage_tier',
        `storage tier '${unknown}' does not exist`,
      );
};

const OBSOLETE = /_OBSOLETE$/;
/** Why nothing new may use an instance type or a disk image. */
export const obsoleteReason = (document: JsonObject): string | undefined => {
  const spec = objectAt(document, 'spec');
  return [stringAt(spec, 'state'), stringAt(spec, 'lifecycle')].some((stage) => OBSOLETE.test(stage))
    ? 'it is obsolete'
    : undefined;
};
const OS = 'GUEST_OS_FAMILY_';

/** Facts of the order that outlive every change of the catalogue, or what of it nobody may use any more. */
export const resolvedInstance = ({
  item,
  template,
  type,
  image,
}: Source & {
  readonly template: CatalogueObject;
  readonly type: CatalogueObject;
  readonly image: CatalogueObject;
}): ResolvedInstance | Rejection => {
  const [size, source] = [objectAt(type.document, 'spec'), objectAt(image.document, 'spec')];
  if (obsoleteReason(type.document) !== undefined)
    return obsolete('instance type', type.name, 'instance_type');
  if (obsoleteReason(image.document) !== undefined) return obsolete('disk image', image.name, 'disk_image');
  const { gpu } = size;
  return {
    template: factsOf(template),
    ...defined({ catalogItem: item && factsOf(item) }),
    instanceType: {
      ...factsOf(type),
      cores: numberAt(size, 'cores'),
      memoryGib: numberAt(size, 'memory_gib'),
      ...(isObject(gpu)
        ? {
            gpu: {
              pciDeviceSelector: stringAt(gpu, 'pci_device_selector'),
              resourceName: stringAt(gpu, 'resource_name'),
              count: numberAt(gpu, 'count'),
            },
          }
        : {}),
    },
    diskImage: {
      ...factsOf(image),
      sourceRef: stringAt(source, 'source_ref'),
      guestOs: stringAt(source, 'guest_os_family').replace(OS, '').toLowerCase(),
    },
  };
};

const obsolete = (words: string, name: string, field: string): Rejection =>
  reject('failed-precondition', 'OBSOLETE', `${words} '${name}' is obsolete: choose another one`, {
    field: `spec.${field}`,
  });
