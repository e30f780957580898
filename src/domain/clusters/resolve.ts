import { isPublished } from '../catalog/catalog-item.ts';
import { isItemsOnly, allowedClasses } from '../catalog/cluster-template.resource.ts';
import { unusableReason } from '../catalog/cluster-version.resource.ts';
import { governedSpec } from '../catalog/field-governance.ts';
import { fabricInterfaceOf } from '../catalog/host-type.resource.ts';
import { parseCidr, type Cidr } from '../cidr.ts';
import { invalid, isRefused, reject, type Rejection } from '../decider.ts';
import { ZONE_ANNOTATION } from '../hubs/placement.ts';
import { own, stringAt, defined, numberAt, objectAt, textsAt } from '../json-tools.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { metadataRejection, nameRejection } from '../metadata-rules.ts';
import {
  referenceOf,
  unknownReference,
  type Reference,
  emptyReference,
  referenceText,
  refersTo,
} from '../references.ts';
import type { AddressPool, Catalogue, CatalogueObject } from './catalogue.ts';
import { CLUSTER_SPEC } from './spec-paths.ts';
import { itemGovernance } from '../catalog/item-governance.ts';
import { parametersOf } from '../catalog/templates.ts';
import { orderedAttachment } from './network-attachment.ts';
import { orderedPullSecret, classRejection, sizeRejection, sshKeyRejection } from './revise.ts';
import type { ClusterEvent, MutableSpec, NodeSet, OrderedTemplate, ResolvedVersion } from './state.ts';

/** Where an order comes from: a template, or a catalogue item with its template (OSAC). */
type OrderSource = {
  readonly template: CatalogueObject;
  readonly item?: CatalogueObject;
};

const ITEM = 'spec.catalog_item';

/** The template that an order speaks of, by itself or by its catalogue item. */
export const templateReference = (
  spec: JsonObject,
  catalogue: Pick<Catalogue, 'item'>,
): Reference | undefined => {
  const item = referenceOf(spec['catalog_item']);
  return item === undefined
    ? referenceOf(spec['template'])
    : referenceOf(catalogue.item(item)?.document['template']);
};

/** Exactly one of both must be there, and may be ordered. */
const orderSource = (
  spec: JsonObject,
  catalogue: Pick<Catalogue, 'item' | 'template'>,
): OrderSource | Rejection => {
  const reference = referenceOf(spec['catalog_item']);
  if (reference === undefined) return withTemplate(referenceOf(spec['template']), catalogue);
  if (referenceOf(spec['template']) !== undefined)
    return invalid('TEMPLATE_AND_ITEM', ITEM, 'give either a template or a catalog item, not both');
  const item = catalogue.item(reference);
  if (item === undefined) return unknownReference('ClusterCatalogItem', `object.${ITEM}`, reference);
  if (item.deleting) return invalid('ITEM_DELETED', ITEM, `catalog item '${item.name}' is being deleted`);
  if (!isPublished(item.document))
    return reject('not-found', 'ITEM_NOT_PUBLISHED', `catalog item '${item.name}' is not published`, {
      field: ITEM,
    });
  const source = withTemplate(referenceOf(item.document['template']), catalogue);
  return isRefused(source) ? source : { ...source, item };
};

const withTemplate = (
  reference: Reference | undefined,
  catalogue: Pick<Catalogue, 'template'>,
): OrderSource | Rejection => {
  const template = reference === undefined ? undefined : catalogue.template(reference);
  if (template === undefined) return invalid('FIELD_REQUIRED', 'spec.template', 'template is mandatory');
  if (template.deleting)
    return invalid(
      'TEMPLATE_DELETED',
      'spec.template',
      `cluster template '${template.name}' is being deleted`,
    );
  return { template };
};

/**
 * Why a tenant may not order this way. Items of the template's own tenant count alone: those of `shared` are the
 * provider's,
 * and the bounds of any other item are the tenant's own to write.
 */
export const itemsOnlyRejection = ({ template, item }: OrderSource): Rejection | undefined =>
  !isItemsOnly(template.document) || item?.tenant === template.tenant
    ? undefined
    : invalid(
        'TEMPLATE_ITEMS_ONLY',
        item === undefined ? 'spec.template' : ITEM,
        `cluster template '${template.name}' is ordered through catalog items of its provider only: ` +
          "give 'spec.catalog_item' in place of 'spec.template'",
      );

/** The spec as the item governs it; without an item as it was sent. */
const orderedSpec = (
  spec: JsonObject,
  { template, item }: OrderSource,
  { misfit }: Pick<Catalogue, 'misfit'>,
): JsonObject | Rejection =>
  item === undefined ? spec : governedSpec(spec, itemGovernance(CLUSTER_SPEC, item, template, misfit));

/**
 * Pod and service ranges in their canonical form (OSAC). Both are of one family. Hubs in
 * OSAC's shape take IPv4 only; what they refuseNetwork, they refuseNetwork themselves.
 */
type ClusterNetwork = { readonly podCidr?: string; readonly serviceCidr?: string };

export const canonicalNetwork = (network: JsonObject): ClusterNetwork | Rejection => {
  const pod = rangeOf(network, 'pod_cidr');
  if (pod !== undefined && isRefused(pod)) return pod;
  const service = rangeOf(network, 'service_cidr');
  if (service !== undefined && isRefused(service)) return service;
  if (pod !== undefined && service !== undefined && pod.family !== service.family)
    return refuseNetwork(
      'service_cidr',
      `must be of the same family as 'spec.network.pod_cidr' ('${pod.text}'), but it is '${service.text}'`,
    );
  return defined({ podCidr: pod?.text, serviceCidr: service?.text });
};

type Field = 'pod_cidr' | 'service_cidr';

const rangeOf = (network: JsonObject, name: Field): Cidr | Rejection | undefined => {
  const text = stringAt(network, name);
  if (text === '') return undefined;
  return (
    parseCidr(text) ??
    refuseNetwork(
      name,
      `must be an IPv4 or IPv6 range such as 10.128.0.0/14 or fd01::/48, but it is '${text.slice(0, 64)}'`,
    )
  );
};

const refuseNetwork = (name: Field, problem: string): Rejection =>
  invalid('INVALID_CIDR', `spec.network.${name}`, `field 'spec.network.${name}' ${problem}`);

export type { Catalogue, CatalogueObject };

/**
 * From what a caller sent and the catalogue as it is now to the facts of an order (OSAC). Pure: the
 * caller looks the catalogue up. The checks come in OSAC's order.
 */
type OrderRequest = {
  /** `metadata` and `spec` as sent, in the private JSON form. */
  readonly metadata: JsonObject | undefined;
  readonly spec: JsonObject | undefined;
};

type Ordered = Extract<ClusterEvent, { type: 'ClusterOrdered' }>['data'];
/** Everything of the first event but who and when. */
type ResolvedOrder = Omit<
  Ordered,
  'id' | 'at' | 'tenant' | 'project' | 'creator' | 'placementDeadline' | 'externalIps'
>;

export const resolveOrder = (
  { metadata, spec: asked = {} }: OrderRequest,
  catalogue: Catalogue,
): (ResolvedOrder & { readonly pools?: readonly AddressPool[] }) | Rejection => {
  const early =
    (metadata === undefined ? undefined : nameRejection(stringAt(metadata, 'name'))) ??
    referenceProblems(asked, catalogue)[0];
  if (early !== undefined) return early;
  const source = orderSource(asked, catalogue);
  if (isRefused(source)) return source;
  if (metadata === undefined)
    return invalid('FIELD_REQUIRED', 'metadata', 'metadata is required: give metadata.name');
  const spec = orderedSpec(asked, source, catalogue);
  if (isRefused(spec)) return spec;
  const pools = spec['auto_external_ip_attachment'] === true ? catalogue.addressPools() : undefined;
  const wrong = metadataRejection(metadata) ?? poolRejection(pools);
  if (wrong !== undefined) return wrong;
  const facts = specFacts(spec, source.template, catalogue);
  if (isRefused(facts)) return facts;
  const attached = orderedAttachment(spec, facts.nodeSets, catalogue);
  if (isRefused(attached)) return attached;
  const { hub } = attached.networkAttachment ?? {};
  const near = pools?.filter((pool) => hub === undefined || pool.hub === hub);
  const outOfReach = poolRejection(near);
  if (outOfReach !== undefined) return outOfReach;
  const { template, item } = source;
  return {
    ...describedBy(metadata),
    template: orderedTemplate(template),
    ...(item === undefined ? {} : { catalogItem: { id: item.id, name: item.name, revision: item.revision } }),
    ...facts,
    ...attached,
    ...(near === undefined ? {} : { pools: near }),
  };
};

const orderedTemplate = ({ id, name, revision, document }: CatalogueObject): OrderedTemplate => {
  const classes = allowedClasses(document);
  return { id, name, revision, ...(classes.length === 0 ? {} : { allowedResourceClasses: classes }) };
};

type SpecFacts = Pick<ResolvedOrder, 'templateParameters' | 'nodeSets' | keyof MutableSpec>;

/** The spec with everything that the template fills in. */
const specFacts = (
  spec: JsonObject,
  template: CatalogueObject,
  catalogue: Catalogue,
): SpecFacts | Rejection => {
  const defaults = objectAt(template.document, 'spec_defaults');
  const version = orderedVersion(spec, defaults, catalogue);
  if (isRefused(version)) return version;
  const network = canonicalNetwork({ ...objectAt(defaults, 'network'), ...objectAt(spec, 'network') });
  if (isRefused(network)) return network;
  const nodeSets = orderedNodeSets(spec, template, catalogue);
  if (isRefused(nodeSets)) return nodeSets;
  const parameters = parametersOf(template, objectAt(spec, 'template_parameters'));
  if (isRefused(parameters)) return parameters;
  const sshPublicKey = stringAt(spec, 'ssh_public_key') || stringAt(defaults, 'ssh_public_key');
  const badKey = sshKeyRejection({ sshPublicKey });
  if (badKey !== undefined) return badKey;
  const secret = orderedPullSecret(spec, template, catalogue);
  if (isRefused(secret)) return secret;
  return {
    templateParameters: parameters,
    nodeSets,
    version,
    ...(sshPublicKey === '' ? {} : { sshPublicKey }),
    ...secret,
    ...(Object.keys(network).length === 0 ? {} : { network }),
  };
};

const describedBy = (
  metadata: JsonObject,
): Pick<ResolvedOrder, 'name' | 'labels' | 'annotations' | 'displayName' | 'description' | 'zone'> => {
  const annotations = textsAt(metadata, 'annotations');
  return defined({
    name: stringAt(metadata, 'name'),
    labels: textsAt(metadata, 'labels'),
    annotations,
    displayName: stringAt(metadata, 'display_name') || undefined,
    description: stringAt(metadata, 'description') || undefined,
    zone: own(annotations, ZONE_ANNOTATION) || undefined,
  });
};

/** References are checked before everything else but the schema, each against what the caller may see. */
export const referenceProblems = (spec: JsonObject, catalogue: Catalogue): readonly Rejection[] =>
  (
    [
      ['ClusterTemplate', 'template', catalogue.template],
      ['ClusterVersion', 'version', catalogue.version],
      ['ClusterCatalogItem', 'catalog_item', catalogue.item],
      ['Secret', 'pull_secret_secret', catalogue.secret],
    ] as const
  )
    .map(([message, field, lookup]) => referenceProblem(message, field, spec[field], lookup))
    .filter((problem) => problem !== undefined);

const referenceProblem = (
  message: string,
  name: string,
  value: JsonValue | undefined,
  lookup: (reference: Reference) => CatalogueObject | undefined,
): Rejection | undefined => {
  const reference = referenceOf(value);
  const field = `object.spec.${name}`;
  if (reference === undefined) return undefined;
  if (referenceText(reference) === '') return emptyReference(message, field);
  if (lookup(reference) !== undefined) return undefined;
  // No name has a dot: whoever writes the number of a release takes it for a name.
  const hint =
    message === 'ClusterVersion' && referenceText(reference).includes('.')
      ? ': give id or metadata.name of the version, whose spec.version is this number'
      : '';
  return unknownReference(message, field, reference, hint);
};

/** `pools`: that external IPs can come from, where some are wanted. */
const poolRejection = (pools: readonly AddressPool[] | undefined): Rejection | undefined => {
  return pools?.length === 0
    ? reject(
        'failed-precondition',
        'NO_EXTERNAL_IP_POOL',
        'no external IP pool is ready with two free addresses: the cluster cannot get external addresses automatically',
        { field: 'spec.auto_external_ip_attachment' },
      )
    : undefined;
};

/** Caller, then template, then the system default; it must be usable (OSAC). */
const orderedVersion = (
  spec: JsonObject,
  defaults: JsonObject,
  catalogue: Catalogue,
): ResolvedVersion | Rejection => {
  const asked = referenceOf(spec['version']) ?? referenceOf(defaults['version']);
  const version = asked === undefined ? catalogue.defaultVersion() : catalogue.version(asked);
  if (version === undefined) {
    return asked === undefined
      ? invalid(
          'NO_VERSION',
          'spec.version',
          'no version specified and no system default version is configured',
        )
      : unknownReference('ClusterVersion', 'object.spec.version', asked);
  }
  return usableVersion(version);
};

/** Facts of a version that may be ordered or upgraded to, or why it may not. */
export const usableVersion = (version: CatalogueObject): ResolvedVersion | Rejection => {
  const spec = objectAt(version.document, 'spec');
  const reason = version.deleting ? 'it is being deleted' : unusableReason(spec);
  if (reason !== undefined) {
    return invalid(
      'VERSION_NOT_USABLE',
      'spec.version',
      `cluster version '${version.name}' cannot be used: ${reason}`,
    );
  }
  return {
    id: version.id,
    name: version.name,
    version: stringAt(spec, 'version'),
    releaseImage: stringAt(spec, 'image'),
  };
};

/** All sets of the template, with the caller's sizes; hosts are the template's (OSAC). */
export const orderedNodeSets = (
  spec: JsonObject,
  template: Pick<CatalogueObject, 'id' | 'document'>,
  catalogue: Pick<Catalogue, 'hostType'>,
): { [name: string]: NodeSet } | Rejection => {
  const offered = objectAt(template.document, 'node_sets');
  const asked = objectAt(spec, 'node_sets');
  const unknown = Object.keys(asked).find((name) => !Object.hasOwn(offered, name));
  if (unknown !== undefined) {
    const names = Object.keys(offered).sort().join(', ');
    return invalid(
      'UNKNOWN_NODE_SET',
      `spec.node_sets.${unknown}`,
      `node set '${unknown}' doesn't exist in template '${template.id}'; valid names are: ${names}`,
    );
  }
  const sets: [string, NodeSet][] = [];
  for (const [name, offer] of Object.entries(offered)) {
    const set = orderedNodeSet(name, offer, own(asked, name), catalogue);
    if (isRefused(set)) return set;
    const allowedResourceClasses = allowedClasses(template.document);
    const wrong = classRejection(name, set.hostType, { id: template.id, allowedResourceClasses });
    if (wrong !== undefined) return wrong;
    sets.push([name, set]);
  }
  return Object.fromEntries(sets);
};

const orderedNodeSet = (
  name: string,
  offer: JsonValue,
  asked: JsonValue | undefined,
  catalogue: Pick<Catalogue, 'hostType'>,
): NodeSet | Rejection => {
  const field = `spec.node_sets.${name}.host_type`;
  const reference = referenceOf(objectAt(offer, 'host_type')) ?? {};
  const hostType = catalogue.hostType(reference);
  if (hostType === undefined) {
    return reject(
      'failed-precondition',
      'HOST_TYPE_MISSING',
      `host type '${referenceText(reference)}' of node set '${name}' doesn't exist`,
      { field },
    );
  }
  const wanted = referenceOf(objectAt(asked, 'host_type')) ?? {};
  if (referenceText(wanted) !== '' && !refersTo(wanted, hostType)) {
    return invalid(
      'HOST_TYPE_MISMATCH',
      field,
      `host type for node set '${name}' should be empty or '${hostType.id}', but it is '${referenceText(wanted)}'`,
    );
  }
  const size = asked === undefined ? numberAt(offer, 'size') : numberAt(asked, 'size');
  const wrong = sizeRejection(name, size, false);
  if (wrong !== undefined) return wrong;
  const { id, name: hostTypeName, document } = hostType;
  return defined({
    hostType: { id, name: hostTypeName },
    size,
    fabricInterface: fabricInterfaceOf(document),
  });
};
