import { lendsItself } from '../exclusive-use.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { defined, listAt, objectAt, own, stringAt, withoutEmpty } from '../json-tools.ts';
import { regularNames, type ResourceKind, type ResourceView } from '../resource.ts';
import type { SecretRef } from '../secret-ref.ts';
import {
  isStoredCluster,
  type ClusterState,
  type ShownConditionType,
  type StoredCluster,
  type ClusterEvent,
  type NamedSecret,
  type NodeSet,
} from './state.ts';
import type { ClusterCommand } from './commands.ts';
import { userBy, usersOf } from './endpoints.ts';
import { clusterDecider } from './decide.ts';
import { effectiveState, isUntouched, shownConditions, shownState } from './shown-status.ts';

/** Declaration of clusters and how they show (OSAC). */
export const cluster: ResourceKind<ClusterState, ClusterCommand, ClusterEvent> = {
  ...regularNames('cluster'),
  kind: 'cluster',
  events: { created: 'ClusterOrdered', retired: 'ClusterDeleted' },
  rights: 'owned',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  ids: 'client-may-choose',
  // Its workflow run has ended for good, and so have its objects on a hub, which bear names made of its id.
  idOnce: true,
  nameScope: 'project',
  defaultTenant: '',
  lends: {
    ...lendsItself,
    held: (state) => (isStoredCluster(state) ? usersOf(state) : []),
    heldBy: (state, holder) => (isStoredCluster(state) ? userBy(state, holder)?.generation : undefined),
  },
  privateOnly: [
    'metadata.finalizers',
    'spec.node_sets.*.fabric_interface',
    'status.hub',
    'status.node_sets.*.fabric_interface',
  ],
  secrets: [{ path: 'spec.pull_secret', kind: 'pull-secret', reads: '***', encoding: 'text' }],
  immutable: [
    'spec.template',
    'spec.template_parameters',
    'spec.catalog_item',
    'spec.network_attachment.subnet',
    'spec.network_attachment.security_groups',
    'spec.auto_external_ip_attachment',
  ],
  references: [
    { path: 'spec.template', kind: 'clusterTemplate', scope: 'full' },
    { path: 'spec.version', kind: 'clusterVersion', scope: 'full' },
    { path: 'spec.catalog_item', kind: 'clusterCatalogItem', scope: 'full' },
    { path: 'spec.pull_secret_secret', kind: 'secret', scope: 'local' },
    { path: 'spec.network_attachment.subnet', kind: 'subnet', scope: 'local' },
    { path: 'spec.network_attachment.security_groups.*', kind: 'securityGroup', scope: 'local' },
  ],
  event: { field: 'cluster', public: true },
  pointsAt: (document) => {
    const spec = objectAt(document, 'spec');
    const sets = Object.values(objectAt(spec, 'node_sets'));
    const attachment = objectAt(spec, 'network_attachment');
    return [
      { kind: 'clusterTemplate', id: stringAt(objectAt(spec, 'template'), 'id') },
      { kind: 'clusterVersion', id: stringAt(objectAt(spec, 'version'), 'id') },
      { kind: 'clusterCatalogItem', id: stringAt(objectAt(spec, 'catalog_item'), 'id') },
      { kind: 'secret', id: stringAt(objectAt(spec, 'pull_secret_secret'), 'id') },
      { kind: 'hub', id: stringAt(objectAt(document, 'status'), 'hub') },
      { kind: 'subnet', id: stringAt(objectAt(attachment, 'subnet'), 'id') },
      ...listAt(attachment, 'security_groups').map((group) => ({
        kind: 'securityGroup',
        id: stringAt(group, 'id'),
      })),
      ...sets.map((set) => ({ kind: 'hostType', id: stringAt(objectAt(set, 'host_type'), 'id') })),
    ].filter(({ id }) => id !== '');
  },
  protectedWhileReferenced: false,
  marks: (document) => marksOf(objectAt(document, 'status')),
  decider: clusterDecider,
  stateVersion: 4,
  view: (state) => clusterView(state),
};

/** What an operator counts: orders that wait for room, that need a person, that a hub does not take up. */
const MARK_OF_REASON: { readonly [reason: string]: string } = {
  WaitingForCapacity: 'waiting',
  HubNotAccepting: 'hub-not-accepting',
  DeletionOverdue: 'deletion-overdue',
  ResizeWaiting: 'waiting',
  WaitingForHosts: 'waiting',
  ChangeFailed: 'needs-operator',
  JobStatusUnknown: 'job-status-unknown',
};

const marksOf = (status: JsonObject): readonly string[] => {
  const reasonOf = (type: ShownConditionType): string =>
    stringAt(
      listAt(status, 'conditions').find((condition) => stringAt(condition, 'type') === type),
      'reason',
    );
  const mark = MARK_OF_REASON[reasonOf('CLUSTER_CONDITION_TYPE_PROGRESSING')];
  const failed = stringAt(status, 'state') === 'CLUSTER_STATE_FAILED';
  const isGhost = failed && GHOST_REASONS.includes(reasonOf('CLUSTER_CONDITION_TYPE_FAILED'));
  return [
    ...(mark === undefined ? [] : [mark]),
    ...(failed ? ['needs-operator'] : []),
    ...(isGhost ? [ghostMark(stringAt(status, 'hub'))] : []),
  ];
};

/** Mark of an order whose cluster has vanished from this hub: an order without its effect. */
export const ghostMark = (hub: string): string => `ghost:${hub}`;
const GHOST_REASONS: readonly string[] = ['ClusterOrderLost', 'HostedClusterLost'];

const clusterView = (state: ClusterState): ResourceView => {
  if (!isStoredCluster(state)) return { exists: false };
  const { id, tenant, project, name, orderedAt, deletionRequestedAt: deletionTimestamp } = state;
  const pullSecret = ownPullSecret(state);
  return {
    exists: true,
    archived: state.status === 'deleted',
    id,
    tenant,
    project,
    name,
    creationTimestamp: orderedAt,
    ...defined({ deletionTimestamp, secrets: pullSecret && { 'spec.pull_secret': pullSecret } }),
    document: {
      id,
      metadata: metadataOf(state),
      spec: specOf(state),
      // A cluster's status is always there (OSAC).
      status: statusOf(state),
    },
    state: effectiveState(state),
  };
};

/** A pull secret that was given as a value; one that was taken from an object is shown as that object. */
const ownPullSecret = (state: StoredCluster): SecretRef | undefined =>
  state.pullSecretSecret === undefined ? state.pullSecret : undefined;

const metadataOf = (state: StoredCluster): JsonObject =>
  withoutEmpty({
    creation_timestamp: state.orderedAt,
    deletion_timestamp: state.deletionRequestedAt,
    finalizers: [...state.finalizers],
    creator: state.creator,
    tenant: state.tenant,
    project: state.project,
    name: state.name,
    labels: { ...state.labels },
    annotations: { ...state.annotations },
    display_name: state.displayName,
    description: state.description,
  });

const specOf = (state: StoredCluster): JsonObject =>
  withoutEmpty({
    template: named(state.template),
    template_parameters: { ...state.templateParameters },
    node_sets: eachSet(state.nodeSets, ({ size }) => size),
    pull_secret: ownPullSecret(state) === undefined ? undefined : '***',
    ssh_public_key: state.sshPublicKey,
    version: named(state.version),
    catalog_item: state.catalogItem && named(state.catalogItem),
    pull_secret_secret: state.pullSecretSecret && named(state.pullSecretSecret),
    network_attachment:
      state.networkAttachment &&
      withoutEmpty({
        subnet: named(state.networkAttachment.subnet),
        security_groups: state.networkAttachment.securityGroups.map(named),
      }),
    auto_external_ip_attachment: state.externalIps === undefined ? undefined : true,
    network:
      state.network &&
      withoutEmpty({ pod_cidr: state.network.podCidr, service_cidr: state.network.serviceCidr }),
  });

const named = ({ id, name }: NamedSecret): JsonObject => ({ id, name });

const statusOf = (state: StoredCluster): JsonObject => {
  const hub = 'hub' in state ? state.hub.id : undefined;
  // Where a cluster is, is not the caller's to write: what it is built on would look unused.
  if (state.reported !== undefined) {
    const { hub: _written, ...reported } = state.reported;
    return { ...reported, ...(hub === undefined ? {} : { hub }) };
  }
  const progress = state.status === 'dispatched' ? state : undefined;
  const endpoints = progress?.endpoints;
  const ready = progress?.readyNodes;
  return withoutEmpty({
    state: shownState(state),
    conditions: conditionsOf(state),
    api_url: endpoints?.apiUrl,
    console_url: endpoints?.consoleUrl,
    node_sets:
      ready === undefined ? undefined : eachSet(setsIn(state, ready), (_set, name) => own(ready, name) ?? 0),
    hub,
    api_endpoint: endpoints?.apiEndpoint,
    ingress_endpoint: endpoints?.ingressEndpoint,
    state_transition_time: isUntouched(state) || shownState(state) === '' ? undefined : state.stateSince,
  });
};

const conditionsOf = (state: StoredCluster): JsonValue[] =>
  shownConditions(state).map(({ type, status, reason, message }) =>
    withoutEmpty({
      type,
      status: status ? 'CONDITION_STATUS_TRUE' : 'CONDITION_STATUS_FALSE',
      last_transition_time: own(state.conditionsSince, type) ?? state.stateSince,
      reason,
      message,
    }),
  );

/** Those that the hub shows the nodes of. */
const setsIn = ({ nodeSets }: StoredCluster, ready: { readonly [nodeSet: string]: number }) =>
  Object.fromEntries(Object.entries(nodeSets).filter(([name]) => Object.hasOwn(ready, name)));

/** Node sets in their wire form; a size of 0 is left out like every default. */
const eachSet = (
  sets: { readonly [name: string]: NodeSet },
  sizeOf: (set: NodeSet, name: string) => number,
): JsonObject =>
  Object.fromEntries(
    Object.entries(sets).map(([name, set]) => {
      const size = sizeOf(set, name);
      return [
        name,
        {
          host_type: named(set.hostType),
          ...(size === 0 ? {} : { size }),
          ...(set.fabricInterface === undefined ? {} : { fabric_interface: set.fabricInterface }),
        },
      ];
    }),
  );
