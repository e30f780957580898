import { derivedCommandId } from '../../../app/log/identifiers.ts';
import type { CatalogueObject } from '../../../domain/clusters/catalogue.ts';
import {
  attachmentsOf,
  computeInstance,
  groupsIn,
  subnetIn,
  USER_DATA,
  type InstanceCommand,
} from '../../../domain/compute/compute-instance.resource.ts';
import {
  filledSpec,
  notReady,
  otherNetwork,
  poolFor,
  resolvedInstance,
  sourceRejection,
  specRejection,
  tierRejection,
} from '../../../domain/compute/instance-order.ts';
import type { ResolvedInstance } from '../../../domain/compute/event-shapes.ts';
import { INSTANCE_SPEC, MAX_DISK_GIB, specOf } from '../../../domain/compute/instance-spec.ts';
import { changeRejection } from '../../../domain/catalog/field-governance.ts';
import { itemGovernance } from '../../../domain/catalog/item-governance.ts';
import { sshKeyRejection } from '../../../domain/clusters/revise.ts';
import { isRefused, type Rejection } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, sameJson, stringAt, valueAt, withoutValueAt } from '../../../domain/json-tools.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import { DEFAULT_GROUP, DEFAULT_SUBNETS } from '../../../domain/networks/default-networking.ts';
import { securityGroup } from '../../../domain/networks/security-group.resource.ts';
import { subnet } from '../../../domain/networks/subnet.resource.ts';
import { networkIn } from '../../../domain/networks/virtual-network.resource.ts';
import { storageTier } from '../../../domain/storage/storage-tier.resource.ts';
import type { ResourceView } from '../../../domain/resource.ts';
import type { ResourceRow } from '../../../projections/read-models.ts';
import { invalid } from '../../errors.ts';
import { addressPools } from '../catalogue.ts';
import { refused, type Creation, type NewObject } from '../creates.ts';
import { defaultPart } from '../default-parts.ts';
import { createDocument, documentRevision } from '../documents.ts';
import { resolveReferences } from '../references.ts';
import type { Change, Revision } from '../updates.ts';
import { objectOf } from './catalog-item.ts';
import type { PartServices } from './kind-parts.ts';

/** Compute instances: resolved against the catalogue, in subnets that are ready. */
type Services = Pick<PartServices, 'resources' | 'runner' | 'messageOf' | 'schemas' | 'maxDiskGib'>;

const ALL = { all: true } as const;
const TEMPLATE = 'computeInstanceTemplate';
const ITEM = 'computeInstanceCatalogItem';

const orThrow = <T extends object>(value: T | Rejection): T => {
  if (isRefused(value)) throw refused(value);
  return value as T;
};
const throwIf = (rejection: Rejection | undefined): void => {
  if (rejection !== undefined) throw refused(rejection);
};

export const instanceCreation = (services: Services): Creation<InstanceCommand> => ({
  resolve: async (object) => {
    const { document, sent, found } = object;
    const asked = specOf(document);
    const fromItem = asked['catalog_item'] !== undefined;
    const spec = fromItem ? asked : withAttachments(asked, object, services);
    const item = parsed(found.get('spec.catalog_item'));
    const template = parsed(found.get('spec.template')) ?? ofItem(item, services);
    throwIf(sourceRejection(spec, { ...(item && { item }), template }));
    if (template === undefined) throw new TypeError('an order has a template');
    const source = { ...(item && { item }), template };
    const filled = orThrow(filledSpec(withUserData(spec, sent), source, services.schemas.judge()));
    const complete = withAttachments(withoutValueAt(filled as JsonObject, 'user_data'), object, services);
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
    await checkAttachments(whole.document, services);
    const resolved = { ...facts, ...(await addressFor(object, whole.document, services)) };
    const creation = { ...object, document: whole.document };
    return {
      command: (secrets, abandonedBefore) =>
        ({ ...createDocument(creation, secrets, abandonedBefore), resolved }) as InstanceCommand,
    };
  },
});

const parsed = (row: ResourceRow | undefined): CatalogueObject | undefined =>
  row === undefined ? undefined : objectOf(row);

const ofItem = (
  item: CatalogueObject | undefined,
  { resources }: Pick<Services, 'resources'>,
): CatalogueObject | undefined =>
  item === undefined
    ? undefined
    : parsed(resources.get(TEMPLATE, stringAt(objectAt(item.document, 'template'), 'id'), ALL));

/** An item governs what was sent, secrets included. */
const withUserData = (spec: JsonObject, sent: JsonObject): JsonObject => {
  const data = valueAt(sent, USER_DATA);
  return data === undefined ? spec : { ...spec, user_data: data };
};

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

/** Subnets and groups must be ready, and all of one network (OSAC). Throws ApiError 400. */
const checkAttachments = async (
  document: JsonObject,
  { runner }: Pick<Services, 'runner'>,
  before: JsonObject = {},
): Promise<void> => {
  const groupsBefore = attachmentsOf(before).flatMap(groupsIn);
  const networks = new Set<string>();
  const look = (words: string, id: string, view: ResourceView, isNew: boolean): void => {
    const state = (view.exists && view.state) || '';
    if (isNew && !state.endsWith('_STATE_READY')) throw refused(notReady(words, id, state));
    networks.add(view.exists ? networkIn(view.document) : '');
  };
  for (const attachment of attachmentsOf(document)) {
    const id = subnetIn(attachment);
    const { state } = await runner.load(aggregateOf(subnet), id);
    look(subnet.words, id, subnet.view(state), before['spec'] === undefined);
    for (const group of groupsIn(attachment)) {
      const loaded = await runner.load(aggregateOf(securityGroup), group);
      look(securityGroup.words, group, securityGroup.view(loaded.state), !groupsBefore.includes(group));
    }
  }
  if (networks.size > 1) throw refused(otherNetwork());
};

/** Its ids are derived from the machine's, so that nobody can take them beforehand. Throws ApiError 400 without a pool. */
const addressFor = async (
  { id, tenant, principal }: Pick<NewObject, 'id' | 'tenant' | 'principal'>,
  document: JsonObject,
  { resources, runner }: Pick<Services, 'resources' | 'runner'>,
): Promise<Pick<ResolvedInstance, 'externalIp'>> => {
  if (specOf(document)['auto_external_ip_attachment'] !== true) return {};
  const [first = {}] = attachmentsOf(document);
  const view = subnet.view((await runner.load(aggregateOf(subnet), subnetIn(first))).state);
  const hub = view.exists ? stringAt(objectAt(view.document, 'status'), 'hub') : '';
  const { pool } = orThrow(poolFor(addressPools(objectOf, resources, 1n, tenant, principal.visibility), hub));
  const [ip, attachment] = [derivedCommandId(id, 'external-ip'), derivedCommandId(id, 'attachment')];
  return { externalIp: { pool, ip, attachment } };
};

/** What may change: power, restart, groups, key and user data. An item governs what its customers set whenever they set it. */
export const instanceRevision = (services: Services): Revision<InstanceCommand> => ({
  command: async (change) => {
    const { before, after, principal } = change;
    if (!principal.admin) throwIf(outsideItem(change, services));
    throwIf(sshKeyRejection({ sshPublicKey: stringAt(specOf(after), 'ssh_public_key') }));
    if (!sameJson(attachmentsOf(before), attachmentsOf(after)))
      await checkAttachments(after, services, before);
    return (await documentRevision.command(change)) as InstanceCommand;
  },
});

const outsideItem = (
  { before, after, message, secrets }: Change,
  { resources, schemas }: Services,
): Rejection | undefined => {
  const spec = specOf(before);
  const of = (kind: string, field: string): CatalogueObject | undefined =>
    parsed(resources.get(kind, stringAt(objectAt(spec, field), 'id'), ALL));
  const [item, template] = [of(ITEM, 'catalog_item'), of(TEMPLATE, 'template')];
  if (item === undefined || template === undefined) return undefined;
  // What reads show of the user data says nothing; what was sent of it is judged.
  const [former, wanted] = [spec, specOf(after)].map((one) => withoutValueAt(one, 'user_data'));
  const given = secrets[USER_DATA] ? { user_data: valueAt(message.object, USER_DATA) ?? '' } : {};
  const governance = itemGovernance(INSTANCE_SPEC, item, template, schemas.judge());
  return changeRejection(former ?? {}, { ...wanted, ...given }, governance);
};
