import { computeInstance, type InstanceCommand } from '../../../domain/compute/compute-instance.resource.ts';
import {
  filledSpec,
  resolvedInstance,
  sourceRejection,
  specRejection,
  tierRejection,
} from '../../../domain/compute/instance-order.ts';
import { INSTANCE_SPEC, MAX_DISK_GIB, specOf } from '../../../domain/compute/instance-spec.ts';
import { sshKeyRejection } from '../../../domain/clusters/revise.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { sameJson, stringAt, withoutValueAt } from '../../../domain/json-tools.ts';
import { attachmentsOf } from '../../../domain/machines/attachments.ts';
import { DEFAULT_GROUP, DEFAULT_SUBNETS } from '../../../domain/networks/default-networking.ts';
import { securityGroup } from '../../../domain/networks/security-group.resource.ts';
import { subnet } from '../../../domain/networks/subnet.resource.ts';
import { storageTier } from '../../../domain/storage/storage-tier.resource.ts';
import { invalid } from '../../errors.ts';
import type { Creation, NewObject } from '../creates.ts';
import { defaultPart } from '../default-parts.ts';
import { createDocument, documentRevision } from '../documents.ts';
import { resolveReferences } from '../references.ts';
import type { Revision } from '../updates.ts';
import {
  addressFor,
  ALL,
  canonicalSpec,
  checkAttachments,
  orThrow,
  outsideItem,
  parsed,
  templateOf,
  throwIf,
  withUserData,
  type MachineServices,
} from './machines.ts';
import type { PartServices } from './kind-parts.ts';

/** Compute instances: resolved against the catalogue, in subnets that are ready. */
type Services = MachineServices & Pick<PartServices, 'maxDiskGib'>;

const TEMPLATE = 'computeInstanceTemplate';
const ITEM = 'computeInstanceCatalogItem';
const { words: WORDS } = computeInstance;

export const instanceCreation = (services: Services): Creation<InstanceCommand> => ({
  resolve: async (object) => {
    const { document, sent, found } = object;
    const asked = specOf(document);
    const fromItem = asked['catalog_item'] !== undefined;
    const spec = fromItem ? asked : withAttachments(asked, object, services);
    const item = parsed(found.get('spec.catalog_item'));
    const template = parsed(found.get('spec.template')) ?? templateOf(item, TEMPLATE, services);
    throwIf(sourceRejection(spec, { ...(item && { item }), template }));
    if (template === undefined) throw new TypeError('an order has a template');
    const source = { ...(item && { item }), template };
    const filled = orThrow(filledSpec(withUserData(spec, sent), source, services.schemas.judge()));
    const complete = withAttachments(
      canonicalSpec(computeInstance.message, withoutValueAt(filled as JsonObject, 'user_data')),
      object,
      services,
    );
    const order = { ...document, spec: complete };
    const whole = resolveReferences(
      { references: computeInstance.references, messageOf: services.messageOf },
      order,
      object,
      services.resources,
      object.principal.visibility,
    );
    const ordered = specOf(whole.document);
    throwIf(specRejection(ordered, services.maxDiskGib ?? MAX_DISK_GIB));
    throwIf(
      tierRejection(ordered, (name) => services.resources.get(storageTier.kind, name, ALL) !== undefined),
    );
    const [type, image] = ['instance_type', 'disk_image'].map((field) =>
      parsed(whole.found.get(`spec.${field}`)),
    );
    if (type === undefined || image === undefined)
      throw new TypeError('an order has an instance type and a disk image');
    const facts = orThrow(resolvedInstance({ ...source, type, image }));
    await checkAttachments(whole.document, WORDS, services);
    const resolved = { ...facts, ...(await addressFor(object, whole.document, WORDS, services)) };
    const creation = { ...object, document: whole.document };
    return {
      command: (secrets, abandonedBefore) =>
        ({ ...createDocument(creation, secrets, abandonedBefore), resolved }) as InstanceCommand,
    };
  },
});

const NO_ATTACHMENT =
  'at least one network attachment is required: give spec.network_attachments, for the tenant has no default subnet';

/** Where nothing is said, the default subnet and group of the tenant (OSAC). Throws ApiError 400 where it has none. */
const withAttachments = (
  spec: JsonObject,
  { tenant }: Pick<NewObject, 'tenant'>,
  { resources }: Pick<Services, 'resources'>,
): JsonObject => {
  if (attachmentsOf({ spec }).length > 0) return spec;
  const defaultOf = (kind: string, names: readonly string[]): JsonObject | undefined => {
    const row = defaultPart(resources, tenant, kind, names);
    return row === undefined || row.deleting ? undefined : { id: row.id, name: row.name };
  };
  const found = defaultOf(subnet.kind, DEFAULT_SUBNETS);
  if (found === undefined) throw invalid(NO_ATTACHMENT, 'spec.network_attachments');
  const group = defaultOf(securityGroup.kind, [DEFAULT_GROUP]);
  const attachment = { subnet: found, ...(group === undefined ? {} : { security_groups: [group] }) };
  return { ...spec, network_attachments: [attachment] };
};

/** What may change: power, restart, groups, key and user data. An item governs what its customers set whenever they set it. */
export const instanceRevision = (services: Services): Revision<InstanceCommand> => ({
  command: async (change) => {
    const { before, after, principal } = change;
    if (!principal.admin)
      throwIf(outsideItem(change, INSTANCE_SPEC, { item: ITEM, template: TEMPLATE }, services));
    throwIf(sshKeyRejection({ sshPublicKey: stringAt(specOf(after), 'ssh_public_key') }));
    if (!sameJson(attachmentsOf(before), attachmentsOf(after)))
      await checkAttachments(after, WORDS, services, before);
    return (await documentRevision.command(change)) as InstanceCommand;
  },
});
