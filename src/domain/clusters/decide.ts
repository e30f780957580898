import { nodeSetNameRejection } from '../catalog/node-set-names.ts';
import { abandonedRejection, alreadyCreated, alreadyExists } from '../catalog/document.ts';
import { invalid, isRefused, reject, type Decider, type Decision, type Rejection } from '../decider.ts';
import {
  annotationsRejection,
  labelsRejection,
  metadataRejection,
  nameRejection,
} from '../metadata-rules.ts';
import { evolveCluster } from './cluster.ts';
import { isBound, useEndpoint } from './endpoints.ts';
import {
  eventIf,
  initialCluster,
  isLiveCluster,
  isStoredCluster,
  type ClusterState,
  type LiveCluster,
  type ClusterEvent,
} from './state.ts';
import type { ClusterCommand, ClusterRequest } from './commands.ts';
import { reportOnCluster } from './report.ts';
import { reviseCluster, sizeRejection, sshKeyRejection } from './revise.ts';
import { defined } from '../json-tools.ts';

/** The cluster aggregate: what callers may ask of a cluster here, what the workflow reports in `report.ts`. */
export const clusterDecider: Decider<ClusterState, ClusterCommand, ClusterEvent> = {
  initialState: initialCluster,
  evolve: evolveCluster,
  decide: (state, command) => {
    switch (command.type) {
      case 'OrderCluster':
        return order(state, command);
      case 'AbandonCreation':
        if (isStoredCluster(state)) return alreadyCreated('cluster');
        return [{ type: 'CreationAbandoned', data: { at: command.at, commandId: command.commandId } }];
      case 'ReviseCluster':
        return isLiveCluster(state) ? reviseCluster(state, command.at, command.changes) : notFound(state);
      case 'DeleteCluster':
        return isLiveCluster(state) ? requestDeletion(state, command.at) : notFound(state);
      case 'AttachTo':
        return isLiveCluster(state) ? useEndpoint(state, command) : notFound(state);
      case 'DetachFrom':
        return isLiveCluster(state) ? useEndpoint(state, command) : [];
      case 'CancelOrder':
        return isLiveCluster(state) ? cancel(state, command.at) : notFound(state);
      case 'AbortOrder':
        return isLiveCluster(state) ? abort(state, command) : notFound(state);
      case 'RetryCluster':
        return isLiveCluster(state) ? retry(state, command.at) : notFound(state);
      case 'RevealCredentials':
        return isLiveCluster(state)
          ? [{ type: 'ClusterCredentialsRevealed', data: { at: command.at, what: command.what } }]
          : notFound(state);
      default:
        return reportOnCluster(state, command);
    }
  },
};

const order = (
  state: ClusterState,
  command: Extract<ClusterRequest, { type: 'OrderCluster' }>,
): Decision<ClusterEvent> => {
  const { type: _type, abandonedBefore, finalizers, status, ...data } = command;
  if (isStoredCluster(state))
    return isLiveCluster(state) || state.tenant !== data.tenant
      ? alreadyExists('cluster', data.id)
      : idUsed(data.id);
  const wrong =
    abandonedRejection(state, abandonedBefore) ??
    tenantRejection(data.tenant) ??
    nameRejection(data.name) ??
    metadataRejection({ display_name: data.displayName ?? '', description: data.description ?? '' }) ??
    labelsRejection(data.labels) ??
    annotationsRejection(data.annotations) ??
    sshKeyRejection(data) ??
    Object.entries(data.nodeSets)
      .map(
        ([name, { size }]) =>
          nodeSetNameRejection(name, `spec.node_sets.${name}`) ?? sizeRejection(name, size, false),
      )
      .find((rejection) => rejection !== undefined);
  if (wrong !== undefined) return wrong;
  const ordered: ClusterEvent = { type: 'ClusterOrdered', data };
  const created = evolveCluster(state, ordered);
  // Private callers may set both with the order (OSAC), as they may afterwards.
  const set = defined({ finalizers, status });
  const reported = isLiveCluster(created) ? reviseCluster(created, data.at, set) : [];
  return isRefused(reported) ? reported : [ordered, ...reported];
};

/** Its workflow run has ended for good, and its objects on a hub bore names made of its id. Other tenants are not told. */
const idUsed = (id: string): Rejection =>
  reject(
    'already-exists',
    'ALREADY_EXISTS',
    `identifier '${id}' was used by a cluster that is gone: choose another 'id' or leave it out`,
    { field: 'id' },
  );

/** It belongs to the service itself: nobody would see the cluster, and nothing there is anybody's order. */
const tenantRejection = (tenant: string): Rejection | undefined =>
  tenant === 'system'
    ? invalid(
        'TENANT_REQUIRED',
        'metadata.tenant',
        "a cluster must belong to a tenant, not to 'system': name one in 'metadata.tenant'",
      )
    : undefined;

/** Before dispatch nothing of it exists anywhere: unless something has to go first, the cluster is gone at once. */
const requestDeletion = (state: LiveCluster, at: string): ClusterEvent[] => {
  if (state.deletionRequestedAt !== undefined) return [];
  const requested: ClusterEvent = { type: 'ClusterDeletionRequested', data: { at } };
  return state.status === 'dispatched' || state.finalizers.length > 0 || isBound(state)
    ? [requested]
    : [requested, { type: 'ClusterDeleted', data: { at, how: 'not-dispatched' } }];
};

/** Before READY what the ledger does can be undone; what a hub does by itself ends with the cluster. */
const cancel = (state: LiveCluster, at: string): Decision<ClusterEvent> =>
  state.status === 'dispatched' && (state.hub.site === undefined || state.built !== undefined)
    ? reject(
        'failed-precondition',
        'ALREADY_DISPATCHED',
        'the order was sent to its hub and can no longer be cancelled; delete the cluster instead',
      )
    : requestDeletion(state, at);

const ABORTED = 'Aborted';

const abort = (
  state: LiveCluster,
  { at, reason }: Extract<ClusterRequest, { type: 'AbortOrder' }>,
): Decision<ClusterEvent> => {
  const refuse = (code: string, message: string): Rejection => reject('failed-precondition', code, message);
  if (state.deletionRequestedAt !== undefined)
    return refuse('DELETION_REQUESTED', 'the cluster is being deleted');
  if (state.aborted !== undefined) return [];
  if (state.status !== 'dispatched' || state.hub.site === undefined)
    return refuse('NO_ABORT', 'the hub does every step of this order: delete the cluster instead');
  if (state.built !== undefined)
    return refuse('PIVOT_PASSED', 'the cluster was ready already: delete it instead');
  const failure = { at, reason: ABORTED, message: `aborted: ${reason}`, permanent: true };
  return [
    ...eventIf(state.failure?.permanent !== true, 'ClusterFailed', failure),
    { type: 'ClusterAborted', data: { at, reason } },
  ];
};

const retry = (state: LiveCluster, at: string): Decision<ClusterEvent> => {
  if (state.deletionRequestedAt !== undefined) {
    return reject('failed-precondition', 'DELETION_REQUESTED', 'the cluster is being deleted');
  }
  if (state.aborted !== undefined && state.withdrawn !== true)
    return reject(
      'failed-precondition',
      'BEING_UNDONE',
      'the order is still being undone: retry it after that',
    );
  if (state.withdrawn === true && state.externalIps !== undefined)
    return reject(
      'failed-precondition',
      'ADDRESSES_RETURNED',
      'the external IPs of the order were given back: delete the cluster and order another one',
    );
  const changeFailed = state.status === 'dispatched' ? state.changeFailed : undefined;
  return state.failure === undefined && changeFailed === undefined
    ? reject('failed-precondition', 'NOT_FAILED', 'only a failed order can be retried')
    : [{ type: 'ClusterRetryRequested', data: { at } }];
};

const notFound = (state: ClusterState): Rejection =>
  reject(
    'not-found',
    'NOT_FOUND',
    isStoredCluster(state) ? `object with identifier '${state.id}' not found` : 'object not found',
  );
