import { fabricInterfaceOf } from '../catalog/host-type.resource.ts';
import { isOrderableTemplateId } from '../catalog/cluster-template.resource.ts';
import { unusableReason } from '../catalog/cluster-version.resource.ts';
import type { DocumentFacts } from '../catalog/document.ts';
import { isRefused, reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, numberAt, objectAt, own, stringAt, textsAt } from '../json-tools.ts';
import { metadataRejection, nameRejection } from '../metadata-rules.ts';
import {
  emptyReference,
  referenceOf,
  referenceText,
  refersTo,
  unknownReference,
  type Reference,
} from '../references.ts';
import type { SecretRef } from '../secret-ref.ts';
import type { ClusterEvent, NodeSet, ResolvedVersion } from './events.ts';
import { parametersOf } from './parameters.ts';
import { canonicalNetwork } from './network.ts';
import { sizeRejection, sshKeyRejection } from './revise.ts';

/**
 * From what a caller sent and the catalogue as it is now to the facts of an order (osac-api.md §10, §11). Pure: the
 * caller looks the catalogue up. The order of the checks is that of osac-api.md §5 and §12.
 */
export type CatalogueObject = Pick<DocumentFacts, 'id' | 'name' | 'tenant' | 'document' | 'secrets'> & {
  /** Revision of its stream: recorded with the order. */
  readonly revision: number;
  /** Its deletion was requested: nothing new may use it. */
  readonly deleting: boolean;
};

/** Objects that the caller may see; undefined when there is none. */
export type Catalogue = {
  readonly template: (reference: Reference) => CatalogueObject | undefined;
  readonly version: (reference: Reference) => CatalogueObject | undefined;
  readonly defaultVersion: () => CatalogueObject | undefined;
  readonly hostType: (reference: Reference) => CatalogueObject | undefined;
};

export type OrderRequest = {
  /** `metadata` and `spec` as sent, in the private JSON form. */
  readonly metadata: JsonObject | undefined;
  readonly spec: JsonObject | undefined;
  /** Reference of the pull secret that the caller sent, already stored. */
  readonly pullSecret?: SecretRef;
};

type Ordered = Extract<ClusterEvent, { type: 'ClusterOrdered' }>['data'];
/** Everything of the first event but who and when. */
export type ResolvedOrder = Omit<Ordered, 'id' | 'at' | 'tenant' | 'project' | 'creator'>;

export const ZONE_ANNOTATION = 'fulfillment-ledger/zone';

export const resolveOrder = (
  { metadata, spec: sent, pullSecret }: OrderRequest,
  catalogue: Catalogue,
): ResolvedOrder | Rejection => {
  const spec = sent ?? {};
  const early =
    (metadata === undefined ? undefined : nameRejection(stringAt(metadata, 'name'))) ??
    referencesRejection(spec, catalogue);
  if (early !== undefined) return early;
  const template = orderedTemplate(spec, catalogue);
  if (isRefused(template)) return template;
  if (metadata === undefined) return required('metadata', 'metadata is required');
  const wrong = metadataRejection(metadata) ?? unsupportedRejection(spec);
  if (wrong !== undefined) return wrong;
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
  const secret = pullSecret ?? defaultPullSecret(template);
  return {
    ...describedBy(metadata),
    template: { id: template.id, name: template.name, revision: template.revision },
    templateParameters: parameters,
    nodeSets,
    version,
    ...(sshPublicKey === '' ? {} : { sshPublicKey }),
    ...(secret === undefined ? {} : { pullSecret: secret }),
    ...(Object.keys(network).length === 0 ? {} : { network }),
  };
};

const describedBy = (
  metadata: JsonObject,
): Pick<ResolvedOrder, 'name' | 'labels' | 'annotations' | 'displayName' | 'description' | 'zone'> => {
  const annotations = textsAt(metadata, 'annotations');
  const displayName = stringAt(metadata, 'display_name');
  const description = stringAt(metadata, 'description');
  const zone = annotations[ZONE_ANNOTATION] ?? '';
  return {
    name: stringAt(metadata, 'name'),
    labels: textsAt(metadata, 'labels'),
    annotations,
    ...(displayName === '' ? {} : { displayName }),
    ...(description === '' ? {} : { description }),
    ...(zone === '' ? {} : { zone }),
  };
};

/** References are checked before everything else but the schema, each against what the caller may see. */
const referencesRejection = (spec: JsonObject, catalogue: Catalogue): Rejection | undefined =>
  referenceProblem('ClusterTemplate', 'object.spec.template', spec['template'], catalogue.template) ??
  referenceProblem('ClusterVersion', 'object.spec.version', spec['version'], catalogue.version);

const referenceProblem = (
  message: string,
  field: string,
  value: JsonValue | undefined,
  lookup: (reference: Reference) => CatalogueObject | undefined,
): Rejection | undefined => {
  const reference = referenceOf(value);
  if (reference === undefined) return undefined;
  if (referenceText(reference) === '') return emptyReference(message, field);
  return lookup(reference) === undefined ? unknownReference(message, field, reference) : undefined;
};

const orderedTemplate = (spec: JsonObject, catalogue: Catalogue): CatalogueObject | Rejection => {
  const reference = referenceOf(spec['template']);
  const item = referenceOf(spec['catalog_item']);
  if (reference !== undefined && item !== undefined) {
    return reject('invalid', 'TEMPLATE_AND_ITEM', 'give either a template or a catalog item, not both', {
      field: 'spec.catalog_item',
    });
  }
  if (item !== undefined) {
    return unknownReference('ClusterCatalogItem', 'object.spec.catalog_item', item);
  }
  const template = reference === undefined ? undefined : catalogue.template(reference);
  if (template === undefined) return required('spec.template', 'template is mandatory');
  if (template.deleting) {
    return reject('invalid', 'TEMPLATE_DELETED', `cluster template '${template.name}' is being deleted`, {
      field: 'spec.template',
    });
  }
  return isOrderableTemplateId(template.id)
    ? template
    : reject(
        'invalid',
        'TEMPLATE_NOT_ORDERABLE',
        `cluster template '${template.id}' cannot be ordered: hubs accept only ids of letters, digits, dots and underscores`,
        { field: 'spec.template' },
      );
};

/** What this release has no objects for: said with the reason that OSAC gives when such an object is missing. */
const unsupportedRejection = (spec: JsonObject): Rejection | undefined => {
  const secret = referenceOf(spec['pull_secret_secret']);
  if (secret !== undefined) return unknownReference('Secret', 'object.spec.pull_secret_secret', secret);
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

/** Caller, then template, then the system default; it must be usable (osac-api.md §11 Clusters). */
const orderedVersion = (
  spec: JsonObject,
  defaults: JsonObject,
  catalogue: Catalogue,
): ResolvedVersion | Rejection => {
  const asked = referenceOf(spec['version']) ?? referenceOf(defaults['version']);
  const version = asked === undefined ? catalogue.defaultVersion() : catalogue.version(asked);
  if (version === undefined) {
    return asked === undefined
      ? reject('invalid', 'NO_VERSION', 'no version specified and no system default version is configured', {
          field: 'spec.version',
        })
      : unknownReference('ClusterVersion', 'object.spec.version', asked);
  }
  return usableVersion(version);
};

/** Facts of a version that may be ordered or upgraded to, or why it may not. */
export const usableVersion = (version: CatalogueObject): ResolvedVersion | Rejection => {
  const spec = objectAt(version.document, 'spec');
  const reason = version.deleting ? 'it is being deleted' : unusableReason(spec);
  if (reason !== undefined) {
    return reject(
      'invalid',
      'VERSION_NOT_USABLE',
      `cluster version '${version.name}' cannot be used: ${reason}`,
      { field: 'spec.version' },
    );
  }
  return {
    id: version.id,
    name: version.name,
    version: stringAt(spec, 'version'),
    releaseImage: stringAt(spec, 'image'),
  };
};

/** All sets of the template, with the caller's sizes; hosts are the template's (osac-api.md §11 Clusters). */
const orderedNodeSets = (
  spec: JsonObject,
  template: CatalogueObject,
  catalogue: Catalogue,
): { [name: string]: NodeSet } | Rejection => {
  const offered = objectAt(template.document, 'node_sets');
  const asked = objectAt(spec, 'node_sets');
  const unknown = Object.keys(asked).find((name) => !Object.hasOwn(offered, name));
  if (unknown !== undefined) {
    const names = Object.keys(offered).sort().join(', ');
    return reject(
      'invalid',
      'UNKNOWN_NODE_SET',
      `node set '${unknown}' doesn't exist in template '${template.id}'; valid names are: ${names}`,
      { field: `spec.node_sets.${unknown}` },
    );
  }
  const sets: [string, NodeSet][] = [];
  for (const [name, offer] of Object.entries(offered)) {
    const set = orderedNodeSet(name, offer, own(asked, name), catalogue);
    if (isRefused(set)) return set;
    sets.push([name, set]);
  }
  return Object.fromEntries(sets);
};

const orderedNodeSet = (
  name: string,
  offer: JsonValue,
  asked: JsonValue | undefined,
  catalogue: Catalogue,
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
    return reject(
      'invalid',
      'HOST_TYPE_MISMATCH',
      `host type for node set '${name}' should be empty or '${hostType.id}', but it is '${referenceText(wanted)}'`,
      { field },
    );
  }
  const size = asked === undefined ? numberAt(offer, 'size') : numberAt(asked, 'size');
  const wrong = sizeRejection(name, size, false);
  if (wrong !== undefined) return wrong;
  const fabricInterface = fabricInterfaceOf(hostType.document);
  return {
    hostType: { id: hostType.id, name: hostType.name },
    size,
    ...(fabricInterface === undefined ? {} : { fabricInterface }),
  };
};

/** A template's default belongs to the template's tenant: the reference says so. */
const defaultPullSecret = (template: CatalogueObject): SecretRef | undefined => {
  const secret = template.secrets['spec_defaults.pull_secret'];
  return secret === undefined ? undefined : { ...secret, tenant: secret.tenant ?? template.tenant };
};

const required = (field: string, message: string): Rejection =>
  reject('invalid', 'FIELD_REQUIRED', message, { field });
