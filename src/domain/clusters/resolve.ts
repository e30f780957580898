import { allowedClasses } from '../catalog/cluster-template.resource.ts';
import { unusableReason } from '../catalog/cluster-version.resource.ts';
import { fabricInterfaceOf } from '../catalog/host-type.resource.ts';
import { invalid, isRefused, reject, type Rejection } from '../decider.ts';
import { ZONE_ANNOTATION } from '../hubs/placement.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { defined, isObject, numberAt, objectAt, own, stringAt, textsAt } from '../json-tools.ts';
import { metadataRejection, nameRejection } from '../metadata-rules.ts';
import {
  emptyReference,
  referenceOf,
  referenceText,
  refersTo,
  unknownReference,
  type Reference,
} from '../references.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import type { ClusterEvent, MutableSpec, NodeSet, OrderedTemplate, ResolvedVersion } from './events.ts';
import { orderedSpec, orderSource } from './order-source.ts';
import { parametersOf } from './parameters.ts';
import { orderedPullSecret } from './pull-secret.ts';
import { canonicalNetwork } from './network.ts';
import { classRejection, sizeRejection, sshKeyRejection } from './revise.ts';

export type { Catalogue, CatalogueObject };

/**
 * From what a caller sent and the catalogue as it is now to the facts of an order (OSAC). Pure: the
 * caller looks the catalogue up. The checks come in OSAC's order.
 */
export type OrderRequest = {
  /** `metadata` and `spec` as sent, in the private JSON form. */
  readonly metadata: JsonObject | undefined;
  readonly spec: JsonObject | undefined;
};

type Ordered = Extract<ClusterEvent, { type: 'ClusterOrdered' }>['data'];
/** Everything of the first event but who and when. */
export type ResolvedOrder = Omit<
  Ordered,
  'id' | 'at' | 'tenant' | 'project' | 'creator' | 'placementDeadline'
>;

export const resolveOrder = (
  { metadata, spec: asked = {} }: OrderRequest,
  catalogue: Catalogue,
): ResolvedOrder | Rejection => {
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
  const wrong = metadataRejection(metadata) ?? unsupportedRejection(spec);
  if (wrong !== undefined) return wrong;
  const facts = specFacts(spec, source.template, catalogue);
  if (isRefused(facts)) return facts;
  const { template, item } = source;
  return {
    ...describedBy(metadata),
    template: orderedTemplate(template),
    ...(item === undefined ? {} : { catalogItem: { id: item.id, name: item.name, revision: item.revision } }),
    ...facts,
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

/** What this release has no objects for: said with the reason that OSAC gives when such an object is missing. */
const unsupportedRejection = (spec: JsonObject): Rejection | undefined => {
  const attachment = spec['network_attachment'];
  if (isObject(attachment)) {
    const subnet = referenceOf(attachment['subnet']) ?? {};
    return unknownReference('Subnet', 'object.spec.network_attachment.subnet', subnet);
  }
  return spec['auto_external_ip_attachment'] === true
    ? reject(
        'failed-precondition',
        'NO_EXTERNAL_IP_POOL',
        'no external IP pool is ready: the cluster cannot get external addresses automatically',
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
