import {
  bareMetalInstance,
  type BareMetalCommand,
} from '../../../domain/bare-metal/bare-metal-instance.resource.ts';
import { hostTypeOf } from '../../../domain/bare-metal/bare-metal-instance-template.resource.ts';
import {
  bareMetalInstanceType,
  hostLabels,
} from '../../../domain/bare-metal/bare-metal-instance-type.resource.ts';
import { BARE_METAL_SPEC } from '../../../domain/bare-metal/bare-metal-spec.ts';
import type { ResolvedBareMetal } from '../../../domain/bare-metal/event-shapes.ts';
import { withInterfaces } from '../../../domain/bare-metal/interfaces.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { governedSpec } from '../../../domain/catalog/field-governance.ts';
import { hostType } from '../../../domain/catalog/host-type.resource.ts';
import { itemGovernance } from '../../../domain/catalog/item-governance.ts';
import { PARAMETERS } from '../../../domain/catalog/spec-shape.ts';
import { parametersOf } from '../../../domain/catalog/templates.ts';
import type { CatalogueObject } from '../../../domain/clusters/catalogue.ts';
import { sshKeyRejection } from '../../../domain/clusters/revise.ts';
import { reject } from '../../../domain/decider.ts';
import { ZONE_ANNOTATION } from '../../../domain/hubs/placement.ts';
import type { JsonObject } from '../../../domain/json.ts';
import {
  defined,
  objectAt,
  own,
  sameJson,
  stringAt,
  textsAt,
  withoutValueAt,
} from '../../../domain/json-tools.ts';
import { attachmentsOf } from '../../../domain/machines/attachments.ts';
import { factsOf, itemRejection, templateRejection } from '../../../domain/machines/order.ts';
import { invalid } from '../../errors.ts';
import { refused, type Creation, type CreateServices } from '../creates.ts';
import { createDocument, documentCreation, documentRevision } from '../documents.ts';
import { resolveReferences } from '../references.ts';
import type { Revision } from '../updates.ts';
import type { Offered } from './catalog-item.ts';
import type { PartServices } from './kind-parts.ts';
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

/** Bare-metal instances: from a catalogue item, with interfaces of the host type, in subnets that are ready. */
const TEMPLATE = 'bareMetalInstanceTemplate';
const ITEM = 'bareMetalInstanceCatalogItem';
const { words: WORDS } = bareMetalInstance;

export const OFFERED_BARE_METAL: Offered = {
  governed: BARE_METAL_SPEC,
  templateKind: TEMPLATE,
  references: {},
};

const specOf = (document: JsonObject): JsonObject => objectAt(document, 'spec');

/** The spec with the defaults of the item, then those of the template. Throws ApiError 400. */
const filledSpec = (
  asked: JsonObject,
  item: CatalogueObject,
  template: CatalogueObject,
  { schemas }: Pick<MachineServices, 'schemas'>,
): JsonObject => {
  const governance = itemGovernance(BARE_METAL_SPEC, item, template, schemas.judge());
  const spec: JsonObject = orThrow(governedSpec(asked, governance));
  const parameters: JsonObject = orThrow(parametersOf(template, objectAt(spec, PARAMETERS)));
  return {
    ...objectAt(template.document, 'spec_defaults'),
    ...spec,
    ...(Object.keys(parameters).length === 0 ? {} : { [PARAMETERS]: parameters }),
  };
};

/** The host type that a template names, and the type of hosts of the same name. */
const hostsOf = (
  template: CatalogueObject,
  { resources }: Pick<MachineServices, 'resources'>,
): {
  readonly host: CatalogueObject | undefined;
  readonly facts: Pick<ResolvedBareMetal, 'hostType' | 'instanceType'>;
} => {
  const id = hostTypeOf(template.document);
  if (id === '') return { host: undefined, facts: {} };
  const type = parsed(resources.get(bareMetalInstanceType.kind, id, ALL));
  return {
    host: parsed(resources.get(hostType.kind, id, ALL)),
    facts: {
      hostType: id,
      ...(type === undefined
        ? {}
        : { instanceType: { ...factsOf(type), selector: hostLabels(type.document) } }),
    },
  };
};

export const bareMetalCreation = (
  services: MachineServices & Pick<PartServices, 'room'>,
): Creation<BareMetalCommand> => ({
  resolve: async (object) => {
    const { document, sent, found } = object;
    const item = parsed(found.get('spec.catalog_item'));
    if (item === undefined)
      throw invalid("field 'spec.catalog_item' is required: name a catalog item", 'spec.catalog_item');
    throwIf(itemRejection(item));
    const template = templateOf(item, TEMPLATE, services);
    if (template === undefined) throw new TypeError('a published item has a template');
    throwIf(templateRejection(template));
    const filled = filledSpec(withUserData(specOf(document), sent), item, template, services);
    const order = {
      ...document,
      spec: canonicalSpec(bareMetalInstance.message, withoutValueAt(filled, 'user_data')),
    };
    const whole = resolveReferences(
      { references: bareMetalInstance.references, messageOf: services.messageOf },
      order,
      object,
      services.resources,
      object.principal.visibility,
    );
    const { host, facts } = hostsOf(template, services);
    const zone = own(textsAt(objectAt(document, 'metadata'), 'annotations'), ZONE_ANNOTATION);
    services.room.host({
      hostType: facts.hostType ?? '',
      labels: facts.instanceType?.selector ?? {},
      ...defined({ zone }),
    });
    const attachments = orThrow(withInterfaces(attachmentsOf(whole.document), host));
    const spec = specOf(whole.document);
    if (attachments.length === 0 && spec['auto_external_ip_attachment'] === true)
      throw refused(
        reject(
          'invalid',
          'FIELD_REQUIRED',
          'at least one network attachment is required for an external IP: give spec.network_attachments, or leave spec.auto_external_ip_attachment out',
          { field: 'spec.network_attachments' },
        ),
      );
    const ordered: JsonObject = {
      ...whole.document,
      spec: { ...spec, ...(attachments.length === 0 ? {} : { network_attachments: [...attachments] }) },
    };
    throwIf(sshKeyRejection({ sshPublicKey: stringAt(spec, 'ssh_public_key') }));
    await checkAttachments(ordered, WORDS, services);
    const resolved: ResolvedBareMetal = {
      template: factsOf(template),
      catalogItem: factsOf(item),
      ...facts,
      ...(await addressFor(object, ordered, WORDS, services)),
    };
    const creation = { ...object, document: ordered };
    return {
      command: (secrets, abandonedBefore) =>
        ({ ...createDocument(creation, secrets, abandonedBefore), resolved }) as BareMetalCommand,
    };
  },
});

/** What may change: power, restart and groups. An item governs what its customers set whenever they set it. */
export const bareMetalRevision = (services: MachineServices): Revision<BareMetalCommand> => ({
  command: async (change) => {
    const { before, after, principal } = change;
    if (!principal.admin)
      throwIf(outsideItem(change, BARE_METAL_SPEC, { item: ITEM, template: TEMPLATE }, services));
    if (!sameJson(attachmentsOf(before), attachmentsOf(after)))
      await checkAttachments(after, WORDS, services, before);
    return (await documentRevision.command(change)) as BareMetalCommand;
  },
});

/** A host type is named by its id (OSAC). Throws ApiError 400. */
const checkHostType = (
  document: JsonObject,
  { resources }: Pick<CreateServices, 'resources'>,
  before?: JsonObject,
): void => {
  const id = hostTypeOf(document);
  if (id === '' || (before !== undefined && hostTypeOf(before) === id)) return;
  const row = resources.get(hostType.kind, id, ALL);
  if (row === undefined || row.deleting)
    throw invalid(
      row === undefined
        ? `host type '${id}' not found: name one by its id`
        : `host type '${id}' is being deleted: name another one`,
      'host_type',
    );
};

export const bareMetalTemplateCreation = (
  services: Pick<CreateServices, 'resources'>,
): Creation<DocumentCommand> => ({
  resolve: (object) => {
    checkHostType(object.document, services);
    return documentCreation.resolve(object);
  },
});

export const bareMetalTemplateRevision = (
  services: Pick<CreateServices, 'resources'>,
): Revision<DocumentCommand> => ({
  command: (change) => {
    checkHostType(change.after, services, change.before);
    return documentRevision.command(change);
  },
});
