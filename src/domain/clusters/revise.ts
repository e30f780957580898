import { isBound } from './endpoints.ts';
import { sortedTexts, type Secrets } from '../catalog/document.ts';
import { MAX_INT32 } from '../catalog/limits.ts';
import { nodeSetNameRejection } from '../catalog/node-set-names.ts';
import { invalid, isRefused, reject, type Decision, type Rejection } from '../decider.ts';
import { FULFILLMENT_FINALIZER } from '../hubs/hub-object.ts';
import { TEMPLATE_WORDS } from '../hubs/placement.ts';
import { byKey, defined, own, sameJson, objectAt, stringAt } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import { annotationsRejection, labelsRejection, metadataRejection } from '../metadata-rules.ts';
import { refersTo, referenceText, referenceOf } from '../references.ts';
import type { SecretRef } from '../secret-ref.ts';
import { isTemplate } from './ansible-templates.ts';
import type { Catalogue, CatalogueObject } from './catalogue.ts';
import type { ClusterChanges, RequestedNodeSet } from './commands.ts';
import { mutableSpec } from './event-types.ts';
import { effectiveState } from './shown-status.ts';
import {
  type LiveCluster,
  eventIf,
  type ClusterEvent,
  type MutableSpec,
  type NodeSet,
  type OrderedTemplate,
  type NamedSecret,
} from './state.ts';

/** Changes that a caller makes to a cluster (OSAC). */
const UPDATABLE_STATES: readonly string[] = ['', 'CLUSTER_STATE_PROGRESSING', 'CLUSTER_STATE_READY'];
const MAX_SSH_KEY = 16_384;

export const reviseCluster = (
  state: LiveCluster,
  at: string,
  changes: ClusterChanges,
): Decision<ClusterEvent> => {
  const wrong =
    labelsRejection(changes.labels) ??
    annotationsRejection(changes.annotations) ??
    metadataRejection({
      ...defined({ display_name: changes.displayName, description: changes.description }),
      ...(changes.finalizers === undefined ? {} : { finalizers: [...changes.finalizers] }),
    }) ??
    statusRejection(changes);
  if (wrong !== undefined) return wrong;
  const nodeSets = nodeSetEvents(state, at, changes);
  if (isRefused(nodeSets)) return nodeSets;
  const spec = [...nodeSets, ...mutableSpecEvents(state, at, changes)];
  if (spec.length > 0) {
    const refused = specLocked(state) ?? sshKeyRejection(changes) ?? playbooksRejection(state, changes);
    if (refused !== undefined) return refused;
  }
  const isBegun = spec.length > 0 && state.status === 'dispatched' && state.ready;
  return [
    ...describing(state, at, changes),
    ...spec,
    ...eventIf(isBegun, 'ClusterReconfiguring', { at }),
    ...finalizing(state, at, changes),
  ];
};

const describing = (state: LiveCluster, at: string, changes: ClusterChanges): ClusterEvent[] => {
  const { labels = state.labels, annotations = state.annotations, status } = changes;
  const { displayName = state.displayName, description = state.description } = changes;
  const isDescribed = displayName !== state.displayName || description !== state.description;
  return [
    ...eventIf(!sameJson(labels, state.labels), 'ClusterLabelled', { at, labels }),
    ...eventIf(!sameJson(annotations, state.annotations), 'ClusterAnnotated', { at, annotations }),
    ...eventIf(isDescribed, 'ClusterDescribed', { at, displayName, description }),
    ...(status === undefined || sameJson(status, state.reported)
      ? []
      : eventIf(true, 'ClusterStatusReported', { at, status })),
  ];
};

/** Ours stays until absence was observed; when nothing is left of a deleted cluster, it is gone. */
const finalizing = (state: LiveCluster, at: string, changes: ClusterChanges): ClusterEvent[] => {
  if (changes.finalizers === undefined) return [];
  const finalizers = sortedTexts(
    state.ours ? [...changes.finalizers, FULFILLMENT_FINALIZER] : changes.finalizers,
  );
  if (sameJson(finalizers, state.finalizers)) return [];
  const changed: ClusterEvent = { type: 'ClusterFinalizersChanged', data: { at, finalizers } };
  const isUnsent = state.status !== 'dispatched';
  const isHeld = finalizers.length > 0 || (isUnsent && isBound(state));
  if (state.deletionRequestedAt === undefined || isHeld) return [changed];
  const how = isUnsent ? 'not-dispatched' : 'absence-confirmed';
  return [changed, { type: 'ClusterDeleted', data: { at, how } }];
};

const specLocked = (state: LiveCluster): Rejection | undefined => {
  const shown = state.deletionRequestedAt === undefined ? effectiveState(state) : 'CLUSTER_STATE_DELETING';
  return UPDATABLE_STATES.includes(shown)
    ? undefined
    : reject('invalid', 'SPEC_LOCKED', `cannot update cluster spec when cluster state is ${shown}`, {
        field: 'spec',
        facts: { state: shown },
      });
};

const MUTABLE = (Object.keys(mutableSpec.shape) as (keyof MutableSpec)[]).sort();

const mutableSpecEvents = (state: LiveCluster, at: string, changes: ClusterChanges): ClusterEvent[] => {
  const network = changes.network ?? state.network ?? {};
  const spec: MutableSpec = defined({
    sshPublicKey: (changes.sshPublicKey ?? state.sshPublicKey) || undefined,
    ...pullSecretAfter(state, changes),
    network: Object.keys(network).length === 0 ? undefined : network,
    version: changes.version ?? state.version,
  });
  const changed = MUTABLE.filter((field) => !sameJson(spec[field], state[field]));
  return eventIf(changed.length > 0, 'ClusterSpecRevised', { at, spec, changed });
};

/** An object that is no longer named takes its value along, unless the caller gives another one. */
const pullSecretAfter = (state: LiveCluster, changes: ClusterChanges) => {
  const named = changes.pullSecretSecret === undefined ? state.pullSecretSecret : changes.pullSecretSecret;
  const stored = changes.pullSecretSecret === null ? undefined : state.pullSecret;
  const given = changes.pullSecret === undefined ? stored : changes.pullSecret;
  return { pullSecret: given ?? undefined, pullSecretSecret: named ?? undefined };
};

const nodeSetEvents = (
  state: LiveCluster,
  at: string,
  changes: ClusterChanges,
): ClusterEvent[] | Rejection => {
  const wanted = changes.nodeSets;
  if (wanted === undefined) return [];
  const wrong = Object.entries(wanted)
    .map(([name, set]) => nodeSetRejection(state, name, set, changes.resized ?? []))
    .find((rejection) => rejection !== undefined);
  if (wrong !== undefined) return wrong;
  if (Object.keys(wanted).length === 0 && Object.keys(state.nodeSets).length > 0)
    return invalid('LAST_NODE_SET', 'spec.node_sets', 'cannot remove the last node set of a cluster');
  const set = Object.entries(wanted)
    .sort(byKey)
    .flatMap(([name, { hostType, size, fabricInterface }]) => {
      const { size: from } = own(state.nodeSets, name) ?? {};
      const { id = '', name: hostTypeName = '' } = hostType;
      const nodeSet = defined({ hostType: { id, name: hostTypeName }, size, fabricInterface });
      return from === undefined
        ? eventIf(true, 'NodeSetAdded', { at, name, nodeSet })
        : eventIf(from !== size, 'NodeSetResized', { at, name, from, to: size });
    });
  const removed = Object.keys(state.nodeSets).filter((name) => !Object.hasOwn(wanted, name));
  return [...set, ...removed.sort().flatMap((name) => eventIf(true, 'NodeSetRemoved', { at, name }))];
};

const nodeSetRejection = (
  state: LiveCluster,
  name: string,
  set: RequestedNodeSet,
  resized: readonly string[],
): Rejection | undefined => {
  const current = own(state.nodeSets, name);
  const zeroAllowed = current !== undefined && (resized.includes(name) || current.size === 0);
  const badSize = sizeRejection(name, set.size, zeroAllowed);
  if (badSize !== undefined) return badSize;
  if (current !== undefined)
    return hostTypeRejection(name, current.hostType, set.hostType, resized.includes(name));
  const field = `spec.node_sets.${name}`;
  if (set.hostType.id === undefined || set.hostType.name === undefined)
    return invalid(
      'HOST_TYPE_REQUIRED',
      `${field}.host_type`,
      `host_type for new node set '${name}' is mandatory`,
    );
  return nodeSetNameRejection(name, field) ?? classRejection(name, set.hostType, state.template);
};

/** `spec.node_sets.<name>.size`: a whole number of 32 bits, above zero but for a set that is scaled down. */
export const sizeRejection = (name: string, size: number, zeroAllowed: boolean): Rejection | undefined => {
  const field = `spec.node_sets.${name}.size`;
  if (size < 0 || (size === 0 && !zeroAllowed)) {
    const least = zeroAllowed ? 'not be negative' : 'be greater than zero';
    const message = `size for node set '${name}' should ${least}, but it is ${size}`;
    return invalid('INVALID_SIZE', field, message);
  }
  return Number.isInteger(size) && size <= MAX_INT32
    ? undefined
    : invalid('INVALID_SIZE', field, `size for node set '${name}' should be a 32-bit whole number`);
};

/** `spec.node_sets.<name>.host_type`: a host type that the template allows; one that was never limited allows any. */
export const classRejection = (
  name: string,
  hostType: Partial<NodeSet['hostType']>,
  { id, allowedResourceClasses = [] }: Pick<OrderedTemplate, 'id' | 'allowedResourceClasses'>,
): Rejection | undefined => {
  const known = [hostType.id, hostType.name];
  if (allowedResourceClasses.length === 0 || allowedResourceClasses.some((one) => known.includes(one)))
    return undefined;
  return invalid(
    'HOST_TYPE_NOT_ALLOWED',
    `spec.node_sets.${name}.host_type`,
    `host type '${referenceText(hostType)}' of node set '${name}' is not allowed by template '${id}'; allowed resource classes are: ${allowedResourceClasses.toSorted().join(', ')}`,
  );
};

const hostTypeRejection = (
  name: string,
  current: { readonly id: string; readonly name: string },
  wanted: RequestedNodeSet['hostType'],
  sizeOnly: boolean,
): Rejection | undefined => {
  const left = wanted.id === undefined && wanted.name === undefined;
  if ((left && sizeOnly) || refersTo(wanted, current)) return undefined;
  return invalid(
    'IMMUTABLE_FIELD',
    `spec.node_sets.${name}.host_type`,
    `cannot change host_type for node set '${name}' from '${current.id}' to '${referenceText(wanted)}': ` +
      'host_type is immutable',
  );
};

export const sshKeyRejection = ({ sshPublicKey }: { sshPublicKey?: string }): Rejection | undefined =>
  sshPublicKey === undefined || sshPublicKey.length <= MAX_SSH_KEY
    ? undefined
    : invalid(
        'INVALID_SSH_KEY',
        'spec.ssh_public_key',
        `field 'spec.ssh_public_key' must be at most ${MAX_SSH_KEY} characters`,
      );

/** Once it has a place its hub's way of working is known, and placement can no longer keep the order from it. */
const playbooksRejection = (
  state: LiveCluster,
  { sshPublicKey = '' }: ClusterChanges,
): Rejection | undefined =>
  'hub' in state && state.hub.mode !== 'operator' && isTemplate(sshPublicKey)
    ? invalid(
        'ANSIBLE_TEMPLATE',
        'spec.ssh_public_key',
        `field 'spec.ssh_public_key' holds ${TEMPLATE_WORDS}, which the playbooks that build this cluster would carry out: give the key without it`,
      )
    : undefined;

/** A status names each condition type once (OSAC). */
const statusRejection = ({ status }: ClusterChanges): Rejection | undefined => {
  const conditions = status?.['conditions'];
  if (!Array.isArray(conditions)) return undefined;
  const types = conditions.map((condition) => (condition as { type?: string } | null)?.type);
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  return twice === undefined
    ? undefined
    : invalid('DUPLICATE_CONDITION', 'status.conditions', `condition type '${twice}' appears more than once`);
};

/** Where a cluster's pull secret comes from: a value, or an object of kind secret (OSAC). */
const FIELD = 'spec.pull_secret_secret';

/** Both at once would leave open which one counts. */
export const pullSecretTwice = (): Rejection =>
  invalid(
    'PULL_SECRET_TWICE',
    FIELD,
    "give either 'pull_secret' or 'pull_secret_secret', not both; null removes the one that is stored",
  );

/** What an order takes: what its spec says, else what its template has as default. */
export const orderedPullSecret = (
  spec: JsonObject,
  template: CatalogueObject,
  catalogue: Pick<Catalogue, 'secret'>,
): { readonly pullSecret?: SecretRef; readonly pullSecretSecret?: NamedSecret } | Rejection => {
  const sent = stringAt(spec, 'pull_secret') !== '';
  const reference = referenceOf(spec['pull_secret_secret']);
  if (reference !== undefined) {
    const secret = catalogue.secret(reference);
    if (sent) return pullSecretTwice();
    // The caller's own references were checked before; what is missing here is a default of a catalogue item.
    return secret === undefined
      ? invalid('SECRET_MISSING', FIELD, 'the secret that the catalog item names is not there')
      : { pullSecretSecret: { id: secret.id, name: secret.name } };
  }
  if (sent) return {};
  const byTemplate = template.secrets['spec_defaults.pull_secret'];
  // A template's default belongs to the template's tenant: the reference says so.
  if (byTemplate !== undefined)
    return { pullSecret: { ...byTemplate, tenant: byTemplate.tenant ?? template.tenant } };
  const named = objectAt(objectAt(template.document, 'spec_defaults'), 'pull_secret_secret');
  const id = stringAt(named, 'id');
  return id === '' ? {} : { pullSecretSecret: { id, name: stringAt(named, 'name') } };
};

const DATA = 'data.';
/** Keys under which a pull secret lies, the first that is there: that of Kubernetes, and those that people choose. */
const KEYS = ['.dockerconfigjson', 'pull-secret', 'pull_secret'];

/** The value of a secret object that hubs are given. `tenant`: whose it is. */
export const pullSecretIn = (secret: {
  readonly name: string;
  readonly tenant: string;
  readonly secrets: Secrets;
}): SecretRef | Rejection => {
  const { name, tenant, secrets } = secret;
  const path = KEYS.map((key) => `${DATA}${key}`).find((candidate) => Object.hasOwn(secrets, candidate));
  const value = path === undefined ? undefined : secrets[path];
  return value === undefined
    ? invalid(
        'NO_PULL_SECRET',
        FIELD,
        `secret '${name}' holds no pull secret: its data needs a key ${KEYS.map((key) => `'${key}'`).join(' or ')}`,
      )
    : { ...value, tenant: value.tenant ?? tenant };
};
