import { derivedCommandId } from '../../../app/log/identifiers.ts';
import { changeRejection, type GovernedKind } from '../../../domain/catalog/field-governance.ts';
import { itemGovernance } from '../../../domain/catalog/item-governance.ts';
import type { CatalogueObject } from '../../../domain/clusters/catalogue.ts';
import { isRefused, type Rejection } from '../../../domain/decider.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, stringAt, valueAt, withoutValueAt } from '../../../domain/json-tools.ts';
import { aggregateOf } from '../../../domain/kinds.ts';
import {
  attachmentsOf,
  groupsIn,
  notReady,
  otherNetwork,
  subnetIn,
} from '../../../domain/machines/attachments.ts';
import { poolFor } from '../../../domain/machines/order.ts';
import type { OwnAddress } from '../../../domain/machines/shapes.ts';
import { USER_DATA } from '../../../domain/machines/user-data.ts';
import { securityGroup } from '../../../domain/networks/security-group.resource.ts';
import { subnet } from '../../../domain/networks/subnet.resource.ts';
import { networkIn } from '../../../domain/networks/virtual-network.resource.ts';
import type { ResourceView } from '../../../domain/resource.ts';
import type { ResourceRow } from '../../../projections/read-models.ts';
import { addressPools } from '../catalogue.ts';
import { refused, type NewObject } from '../creates.ts';
import { canonicalDocument, MESSAGES } from '../messages.ts';
import type { Change } from '../updates.ts';
import { objectOf } from './catalog-item.ts';
import type { PartServices } from './kind-parts.ts';

/** Orders of machines, virtual and bare metal: what both take from the catalogue and from networks. */
export type MachineServices = Pick<PartServices, 'resources' | 'runner' | 'messageOf' | 'schemas'>;

export const ALL = { all: true } as const;

/** Throws ApiError. */
export const orThrow = <T extends object>(value: T | Rejection): T => {
  if (isRefused(value)) throw refused(value);
  return value as T;
};
/** Throws ApiError. */
export const throwIf = (rejection: Rejection | undefined): void => {
  if (rejection !== undefined) throw refused(rejection);
};

export const parsed = (row: ResourceRow | undefined): CatalogueObject | undefined =>
  row === undefined ? undefined : objectOf(row);

export const templateOf = (
  item: CatalogueObject | undefined,
  kind: string,
  { resources }: Pick<MachineServices, 'resources'>,
): CatalogueObject | undefined =>
  item === undefined
    ? undefined
    : parsed(resources.get(kind, stringAt(objectAt(item.document, 'template'), 'id'), ALL));

/** Defaults of an item as the message has them: what is empty there is left out. */
export const canonicalSpec = (message: string, spec: JsonObject): JsonObject => {
  const shape = MESSAGES[message]?.private;
  if (shape === undefined) throw new TypeError(`${message} has no message`);
  return objectAt(canonicalDocument(shape, { spec }), 'spec');
};

/** An item governs what was sent, secrets included. */
export const withUserData = (spec: JsonObject, sent: JsonObject): JsonObject => {
  const data = valueAt(sent, USER_DATA);
  return data === undefined ? spec : { ...spec, user_data: data };
};

/** Subnets and groups must be ready, and all of one network (OSAC). Throws ApiError 400. `words`: of the machine. */
export const checkAttachments = async (
  document: JsonObject,
  words: string,
  { runner }: Pick<MachineServices, 'runner'>,
  before: JsonObject = {},
): Promise<void> => {
  const groupsBefore = attachmentsOf(before).flatMap(groupsIn);
  const networks = new Set<string>();
  const look = (called: string, id: string, view: ResourceView, isNew: boolean): void => {
    const state = (view.exists && view.state) || '';
    if (isNew && !state.endsWith('_STATE_READY')) throw refused(notReady(called, id, state));
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
  if (networks.size > 1) throw refused(otherNetwork(words));
};

/** Its ids are derived from the machine's, so that nobody can take them beforehand. Throws ApiError 400 without a pool. */
export const addressFor = async (
  { id, tenant, principal }: Pick<NewObject, 'id' | 'tenant' | 'principal'>,
  document: JsonObject,
  words: string,
  { resources, runner }: Pick<MachineServices, 'resources' | 'runner'>,
): Promise<{ readonly externalIp?: OwnAddress }> => {
  if (objectAt(document, 'spec')['auto_external_ip_attachment'] !== true) return {};
  const [first = {}] = attachmentsOf(document);
  const view = subnet.view((await runner.load(aggregateOf(subnet), subnetIn(first))).state);
  const hub = view.exists ? stringAt(objectAt(view.document, 'status'), 'hub') : '';
  const pools = addressPools(objectOf, resources, 1n, tenant, principal.visibility);
  const { pool } = orThrow(poolFor(pools, hub, words));
  const [ip, attachment] = [derivedCommandId(id, 'external-ip'), derivedCommandId(id, 'attachment')];
  return { externalIp: { pool, ip, attachment } };
};

/** An item governs what its customers set whenever they set it. `kinds`: of its item and its template. */
export const outsideItem = (
  { before, after, message, secrets }: Change,
  governed: GovernedKind,
  kinds: { readonly item: string; readonly template: string },
  { resources, schemas }: Pick<MachineServices, 'resources' | 'schemas'>,
): Rejection | undefined => {
  const spec = objectAt(before, 'spec');
  const of = (kind: string, field: string): CatalogueObject | undefined =>
    parsed(resources.get(kind, stringAt(objectAt(spec, field), 'id'), ALL));
  const item = of(kinds.item, 'catalog_item');
  const template = of(kinds.template, 'template') ?? templateOf(item, kinds.template, { resources });
  if (item === undefined || template === undefined) return undefined;
  // What reads show of the user data says nothing; what was sent of it is judged.
  const [former, wanted] = [spec, objectAt(after, 'spec')].map((one) => withoutValueAt(one, 'user_data'));
  const given = secrets[USER_DATA] ? { user_data: valueAt(message.object, USER_DATA) ?? '' } : {};
  const governance = itemGovernance(governed, item, template, schemas.judge());
  return changeRejection(former ?? {}, { ...wanted, ...given }, governance);
};
