import { FULFILLMENT_FINALIZER } from '../hubs/hub-object.ts';
import { TEMPLATE_WORDS } from '../hubs/placement.ts';
import { nodeSetNameRejection } from '../catalog/node-set-names.ts';
import { MAX_INT32 } from '../catalog/limits.ts';
import { isRefused, reject, type Decision, type Rejection } from '../decider.ts';
import { byKey, defined, own, sameJson } from '../json-tools.ts';
import { annotationsRejection, labelsRejection, metadataRejection } from '../metadata-rules.ts';
import { refersTo, referenceText } from '../references.ts';
import { sortedTexts } from '../catalog/document.ts';
import { isTemplate } from './ansible-templates.ts';
import type { LiveCluster } from './state.ts';
import type { ClusterChanges, RequestedNodeSet } from './commands.ts';
import { type ClusterEvent, type MutableSpec, type NodeSet, type OrderedTemplate } from './events.ts';
import { effectiveState } from './shown-status.ts';

/** Changes that a caller makes to a cluster (osac-api.md §11 Clusters, §5 Update). */
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
  const reconfiguring: ClusterEvent[] =
    spec.length > 0 && state.status === 'dispatched' && state.ready
      ? [{ type: 'ClusterReconfiguring', data: { at } }]
      : [];
  return [...describing(state, at, changes), ...spec, ...reconfiguring, ...finalizing(state, at, changes)];
};

const describing = (state: LiveCluster, at: string, changes: ClusterChanges): ClusterEvent[] => {
  const events: ClusterEvent[] = [];
  const { labels, annotations, status } = changes;
  if (labels !== undefined && !sameJson(labels, state.labels)) {
    events.push({ type: 'ClusterLabelled', data: { at, labels } });
  }
  if (annotations !== undefined && !sameJson(annotations, state.annotations)) {
    events.push({ type: 'ClusterAnnotated', data: { at, annotations } });
  }
  const displayName = changes.displayName ?? state.displayName;
  const description = changes.description ?? state.description;
  if (displayName !== state.displayName || description !== state.description) {
    events.push({ type: 'ClusterDescribed', data: { at, displayName, description } });
  }
  if (status !== undefined && !sameJson(status, state.reported)) {
    events.push({ type: 'ClusterStatusReported', data: { at, status } });
  }
  return events;
};

/** Ours stays until absence was observed; when nothing is left of a deleted cluster, it is gone. */
const finalizing = (state: LiveCluster, at: string, changes: ClusterChanges): ClusterEvent[] => {
  if (changes.finalizers === undefined) return [];
  const finalizers = sortedTexts(
    state.ours ? [...changes.finalizers, FULFILLMENT_FINALIZER] : changes.finalizers,
  );
  if (sameJson(finalizers, state.finalizers)) return [];
  const changed: ClusterEvent = { type: 'ClusterFinalizersChanged', data: { at, finalizers } };
  if (state.deletionRequestedAt === undefined || finalizers.length > 0) return [changed];
  const how = state.status === 'dispatched' ? 'absence-confirmed' : 'not-dispatched';
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

const mutableSpecEvents = (state: LiveCluster, at: string, changes: ClusterChanges): ClusterEvent[] => {
  const sshPublicKey = changes.sshPublicKey ?? state.sshPublicKey ?? '';
  const { pullSecret, pullSecretSecret } = pullSecretAfter(state, changes);
  const network = changes.network ?? state.network ?? {};
  const spec: MutableSpec = {
    ...(sshPublicKey === '' ? {} : { sshPublicKey }),
    ...defined({ pullSecret, pullSecretSecret }),
    ...(Object.keys(network).length === 0 ? {} : { network }),
    version: changes.version ?? state.version,
  };
  const { sshPublicKey: oldKey, pullSecret: oldSecret, network: oldNetwork, version } = state;
  const oldNamed = state.pullSecretSecret;
  const before: MutableSpec = {
    ...(oldKey === undefined ? {} : { sshPublicKey: oldKey }),
    ...defined({ pullSecret: oldSecret, pullSecretSecret: oldNamed, network: oldNetwork }),
    version,
  };
  const fields = [...new Set([...Object.keys(before), ...Object.keys(spec)])] as (keyof MutableSpec)[];
  const changed = fields.filter((field) => !sameJson(spec[field], before[field])).sort();
  return changed.length === 0 ? [] : [{ type: 'ClusterSpecRevised', data: { at, spec, changed } }];
};

/** An object that is no longer named takes its value along, unless the caller gives another one. */
const pullSecretAfter = (
  state: LiveCluster,
  changes: ClusterChanges,
): Pick<MutableSpec, 'pullSecret' | 'pullSecretSecret'> => {
  const kept = changes.pullSecretSecret === undefined ? state.pullSecretSecret : changes.pullSecretSecret;
  const stored = changes.pullSecretSecret === null ? undefined : state.pullSecret;
  const pullSecret = changes.pullSecret === undefined ? stored : (changes.pullSecret ?? undefined);
  return {
    ...(pullSecret === undefined ? {} : { pullSecret }),
    ...(kept === undefined || kept === null ? {} : { pullSecretSecret: kept }),
  };
};

const nodeSetEvents = (
  state: LiveCluster,
  at: string,
  changes: ClusterChanges,
): ClusterEvent[] | Rejection => {
  const wanted = changes.nodeSets;
  if (wanted === undefined) return [];
  const wrong =
    Object.entries(wanted)
      .map(([name, set]) => nodeSetRejection(state, name, set, changes.resized ?? []))
      .find((rejection) => rejection !== undefined) ?? lastSetRejection(state, wanted);
  if (wrong !== undefined) return wrong;
  const events: ClusterEvent[] = [];
  for (const [name, set] of Object.entries(wanted).sort(byKey)) {
    const current = own(state.nodeSets, name);
    if (current === undefined) {
      const { id = '', name: hostTypeName = '' } = set.hostType;
      const fabric = set.fabricInterface === undefined ? {} : { fabricInterface: set.fabricInterface };
      const nodeSet = { hostType: { id, name: hostTypeName }, size: set.size, ...fabric };
      events.push({ type: 'NodeSetAdded', data: { at, name, nodeSet } });
    } else if (current.size !== set.size) {
      events.push({ type: 'NodeSetResized', data: { at, name, from: current.size, to: set.size } });
    }
  }
  const removed = Object.keys(state.nodeSets)
    .filter((name) => !Object.hasOwn(wanted, name))
    .sort();
  return [
    ...events,
    ...removed.map((name): ClusterEvent => ({ type: 'NodeSetRemoved', data: { at, name } })),
  ];
};

const nodeSetRejection = (
  state: LiveCluster,
  name: string,
  set: RequestedNodeSet,
  resized: readonly string[],
): Rejection | undefined => {
  const current = own(state.nodeSets, name);
  const zeroAllowed = current !== undefined && (resized.includes(name) || current.size === 0);
  return (
    sizeRejection(name, set.size, zeroAllowed) ??
    (current === undefined
      ? (newSetRejection(name, set) ??
        nodeSetNameRejection(name, `spec.node_sets.${name}`) ??
        classRejection(name, set.hostType, state.template))
      : hostTypeRejection(name, current.hostType, set.hostType, resized.includes(name)))
  );
};

/** `spec.node_sets.<name>.size`: a whole number of 32 bits, above zero but for a set that is scaled down. */
export const sizeRejection = (name: string, size: number, zeroAllowed: boolean): Rejection | undefined => {
  const field = `spec.node_sets.${name}.size`;
  if (size < 0 || (size === 0 && !zeroAllowed)) {
    const least = zeroAllowed ? 'not be negative' : 'be greater than zero';
    const message = `size for node set '${name}' should ${least}, but it is ${size}`;
    return reject('invalid', 'INVALID_SIZE', message, { field });
  }
  return Number.isInteger(size) && size <= MAX_INT32
    ? undefined
    : reject('invalid', 'INVALID_SIZE', `size for node set '${name}' should be a 32-bit whole number`, {
        field,
      });
};

const newSetRejection = (name: string, { hostType }: RequestedNodeSet): Rejection | undefined =>
  hostType.id !== undefined && hostType.name !== undefined
    ? undefined
    : reject('invalid', 'HOST_TYPE_REQUIRED', `host_type for new node set '${name}' is mandatory`, {
        field: `spec.node_sets.${name}.host_type`,
      });

/** `spec.node_sets.<name>.host_type`: a host type that the template allows; one that was never limited allows any. */
export const classRejection = (
  name: string,
  hostType: Partial<NodeSet['hostType']>,
  { id, allowedResourceClasses = [] }: Pick<OrderedTemplate, 'id' | 'allowedResourceClasses'>,
): Rejection | undefined => {
  const known = [hostType.id, hostType.name];
  if (allowedResourceClasses.length === 0 || allowedResourceClasses.some((one) => known.includes(one)))
    return undefined;
  return reject(
    'invalid',
    'HOST_TYPE_NOT_ALLOWED',
    `host type '${referenceText(hostType)}' of node set '${name}' is not allowed by template '${id}'; allowed resource classes are: ${allowedResourceClasses.toSorted().join(', ')}`,
    { field: `spec.node_sets.${name}.host_type` },
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
  return reject(
    'invalid',
    'IMMUTABLE_FIELD',
    `cannot change host_type for node set '${name}' from '${current.id}' to '${referenceText(wanted)}': ` +
      'host_type is immutable',
    { field: `spec.node_sets.${name}.host_type` },
  );
};

const lastSetRejection = (
  state: LiveCluster,
  wanted: { readonly [name: string]: RequestedNodeSet },
): Rejection | undefined =>
  Object.keys(wanted).length > 0 || Object.keys(state.nodeSets).length === 0
    ? undefined
    : reject('invalid', 'LAST_NODE_SET', 'cannot remove the last node set of a cluster', {
        field: 'spec.node_sets',
      });

export const sshKeyRejection = ({ sshPublicKey }: { sshPublicKey?: string }): Rejection | undefined =>
  sshPublicKey === undefined || sshPublicKey.length <= MAX_SSH_KEY
    ? undefined
    : reject(
        'invalid',
        'INVALID_SSH_KEY',
        `field 'spec.ssh_public_key' must be at most ${MAX_SSH_KEY} characters`,
        {
          field: 'spec.ssh_public_key',
        },
      );

/** Once it has a place its hub's way of working is known, and placement can no longer keep the order from it. */
const playbooksRejection = (
  state: LiveCluster,
  { sshPublicKey = '' }: ClusterChanges,
): Rejection | undefined =>
  'hub' in state && state.hub.mode !== 'operator' && isTemplate(sshPublicKey)
    ? reject(
        'invalid',
        'ANSIBLE_TEMPLATE',
        `field 'spec.ssh_public_key' holds ${TEMPLATE_WORDS}, which the playbooks that build this cluster would carry out: give the key without it`,
        { field: 'spec.ssh_public_key' },
      )
    : undefined;

/** A status names each condition type once (osac-api.md §11 Clusters). */
const statusRejection = ({ status }: ClusterChanges): Rejection | undefined => {
  const conditions = status?.['conditions'];
  if (!Array.isArray(conditions)) return undefined;
  const types = conditions.map((condition) => (condition as { type?: string } | null)?.type);
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  return twice === undefined
    ? undefined
    : reject('invalid', 'DUPLICATE_CONDITION', `condition type '${twice}' appears more than once`, {
        field: 'status.conditions',
      });
};
