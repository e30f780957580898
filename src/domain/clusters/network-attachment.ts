import { reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, listAt, objectAt, stringAt } from '../json-tools.ts';
import { networkIn } from '../networks/virtual-network.resource.ts';
import { emptyReference, referenceOf, referenceText, unknownReference } from '../references.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import type { NodeSet } from './state.ts';

type Named = { readonly id: string; readonly name: string };
/** Where the nodes of a cluster are attached; `hub`: where its subnet is, if it is on one. */
export type NetworkAttachment = {
  readonly subnet: Named;
  readonly securityGroups: readonly Named[];
  readonly hub?: string;
};
type NodeSets = { readonly [name: string]: Pick<NodeSet, 'hostType' | 'fabricInterface'> };

const FIELD = 'spec.network_attachment';

/**
 * The subnet and the security groups that an order names, or those that its tenant has by default (OSAC). Without an interface
 * for a fabric in every host type there is nothing to attach.
 */
export const orderedAttachment = (
  spec: JsonObject,
  nodeSets: NodeSets,
  catalogue: Pick<Catalogue, 'subnet' | 'securityGroup' | 'defaultNetwork'>,
): { readonly networkAttachment?: NetworkAttachment } | Rejection => {
  const without = Object.values(nodeSets).find(({ fabricInterface }) => fabricInterface === undefined);
  const asked = spec['network_attachment'];
  if (!isObject(asked)) {
    const found = without === undefined ? catalogue.defaultNetwork() : undefined;
    if (found === undefined) return {};
    return attachment(found.subnet, found.securityGroup === undefined ? [] : [found.securityGroup]);
  }
  const subnet = referred('Subnet', 'subnet', asked['subnet'], catalogue.subnet);
  if ('rejected' in subnet) return subnet;
  const groups: CatalogueObject[] = [];
  for (const reference of listAt(asked, 'security_groups')) {
    const group = referred('SecurityGroup', 'security_groups', reference, catalogue.securityGroup);
    if ('rejected' in group) return group;
    groups.push(group);
  }
  if (without !== undefined)
    return reject(
      'invalid',
      'NO_FABRIC_INTERFACE',
      `host type '${without.hostType.id}' has no interface with role 'fabric', which field '${FIELD}' needs`,
      { field: FIELD },
    );
  return attachment(subnet, groups);
};

const referred = (
  message: string,
  part: string,
  value: JsonObject[string] | undefined,
  lookUp: Catalogue['subnet'],
): CatalogueObject | Rejection => {
  const field = `object.${FIELD}.${part}`;
  const reference = referenceOf(value);
  if (reference !== undefined && referenceText(reference) === '') return emptyReference(message, field);
  return (reference && lookUp(reference)) ?? unknownReference(message, field, reference ?? {});
};

const attachment = (
  subnet: CatalogueObject,
  groups: readonly CatalogueObject[],
): { readonly networkAttachment: NetworkAttachment } | Rejection => {
  for (const [words, one] of [
    ['subnet', subnet] as const,
    ...groups.map((each) => ['security group', each] as const),
  ])
    if (one.deleting || !stringAt(objectAt(one.document, 'status'), 'state').endsWith('_STATE_READY'))
      return unmet('NOT_READY', `${words} '${one.id}' is not in READY state`);
  const foreign = groups.find(({ document }) => networkIn(document) !== networkIn(subnet.document));
  if (foreign !== undefined)
    return unmet(
      'OTHER_NETWORK',
      `security group '${foreign.id}' is of another virtual network than subnet '${subnet.id}'`,
    );
  const hub = stringAt(objectAt(subnet.document, 'status'), 'hub');
  const named = ({ id, name }: CatalogueObject): Named => ({ id, name });
  return {
    networkAttachment: {
      subnet: named(subnet),
      securityGroups: groups.map(named),
      ...(hub === '' ? {} : { hub }),
    },
  };
};

const unmet = (code: string, message: string): Rejection =>
  reject('failed-precondition', code, message, { field: FIELD });
