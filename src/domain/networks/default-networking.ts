import type { JsonObject } from '../json.ts';
import { listAt, objectAt, stringAt, withoutEmpty } from '../json-tools.ts';
import { defaultPrefix } from './default-ids.ts';
import { HUB_ANNOTATION } from './external-ip-pool.resource.ts';
import { defaultRange, networkDefaults } from './network-class.resource.ts';
import { FAMILIES, fieldOf } from './ranges-of-spec.ts';
import { withClass } from './virtual-network.resource.ts';
import { isRefused, type Rejection } from '../decider.ts';

/**
 * What a tenant has from the start (OSAC): settled when the tenant is made, kept in its document, made and removed by the
 * service itself (`app/tenancy/default-networking.ts`).
 */
export const PROVISION = 'default_networking';
const LABELS: JsonObject = { 'osac.openshift.io/default': 'true' };
const SUBNET_NAME = 'default-';
export const DEFAULT_GROUP = 'default';
/** IPv4 first. */
export const DEFAULT_SUBNETS: readonly string[] = FAMILIES.map(
  (family) => SUBNET_NAME + fieldOf(family).replace('_cidr', ''),
);

type Named = { readonly id: string; readonly name: string };
export type DefaultPart = {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  readonly document: JsonObject;
};

/** As its document keeps it, what a tenant gets by a network class; undefined: nothing. `pool`: where one is needed. */
export const provisionOf = (
  found: Named & { readonly document: JsonObject },
  pool: (Named & { readonly hub: string }) | undefined,
): JsonObject | Rejection | undefined => {
  const defaults = networkDefaults(found.document);
  if (defaults === undefined) return undefined;
  const ranges = (of: 'virtual_network' | 'subnet'): JsonObject =>
    withoutEmpty(
      Object.fromEntries(FAMILIES.map((family) => [fieldOf(family), defaultRange(defaults, of, family)])),
    );
  const network = withClass({ spec: ranges('virtual_network') }, found, true);
  if (isRefused(network)) return network;
  return {
    network: objectAt(network, 'spec'),
    subnets: ranges('subnet'),
    ingress: [...listAt(defaults, 'ingress_rules')],
    egress: [...listAt(defaults, 'egress_rules')],
    ...(pool === undefined ? {} : { pool: { id: pool.id, name: pool.name }, hub: pool.hub }),
  };
};

export const needsAddress = (found: JsonObject): boolean =>
  networkDefaults(found)?.['enable_nat_gateway'] === true;

/** The one list of what a tenant gets, each after what it refers to. */
export const defaultParts = (
  tenant: string,
  createdAt: string,
  provision: JsonObject,
): readonly DefaultPart[] => {
  const part = (kind: string, name: string, spec: JsonObject, annotations: JsonObject = {}): DefaultPart => ({
    kind,
    id: defaultPrefix(tenant, createdAt) + kind + name.replace('default', ''),
    name,
    document: { metadata: withoutEmpty({ labels: LABELS, annotations }), spec },
  });
  // Where its address will be: the NAT gateway needs both on one hub.
  const hub = stringAt(provision, 'hub');
  const network = part(
    'virtualNetwork',
    'default',
    objectAt(provision, 'network'),
    hub === '' ? {} : { [HUB_ANNOTATION]: hub },
  );
  const inNetwork = { virtual_network: { id: network.id, name: network.name } };
  const subnets = Object.entries(objectAt(provision, 'subnets')).map(([field, range]) =>
    part('subnet', SUBNET_NAME + field.replace('_cidr', ''), { ...inNetwork, [field]: range }),
  );
  const { pool } = provision;
  const address = pool === undefined ? undefined : part('externalIp', 'default-nat', { pool });
  const gateway =
    address === undefined
      ? []
      : [
          address,
          part('natGateway', 'default-nat', {
            ...inNetwork,
            external_ip: { id: address.id, name: address.name },
          }),
        ];
  const { ingress = [], egress = [] } = provision;
  const group = part('securityGroup', DEFAULT_GROUP, { ...inNetwork, ingress, egress });
  return [network, ...subnets, ...gateway, group];
};

/** The last one that is made: where it is there, all are. */
export const lastPart = (tenant: string, createdAt: string): Pick<DefaultPart, 'kind' | 'id'> => ({
  kind: 'securityGroup',
  id: `${defaultPrefix(tenant, createdAt)}securityGroup`,
});

/** What it is made of. */
export const DEFAULT_KINDS = ['virtualNetwork', 'subnet', 'externalIp', 'natGateway', 'securityGroup'];
