import { reject, type Decision, type Rejection } from '../decider.ts';
import { creationUnderWay, isHeldBy, type UseCommand, type User } from '../exclusive-use.ts';
import type { Holder } from '../holder.ts';
import { defined, own, without } from '../json-tools.ts';
import type { MadeObject } from '../made-objects.ts';
import { autoAddresses, boundTo } from '../networks/auto-addresses.ts';
import type { endpointName } from './event-types.ts';
import type { ClusterEvent, LiveCluster, Order, StoredCluster } from './state.ts';

/** External IPs at the endpoints of a cluster: each endpoint has one at most, and the cluster goes after them. */
export type EndpointName = (typeof endpointName.options)[number];
const NAMES: readonly EndpointName[] = ['API', 'INGRESS'];
type Attached = Pick<Order, 'attached' | 'attachments'>;

export const usersOf = ({ attached = {} }: Attached): readonly User[] => Object.values(attached);
export const userBy = ({ attached = {} }: Attached, holder: Holder): User | undefined =>
  Object.values(attached).find((user) => isHeldBy(user, holder));

/** Something must go before the cluster does. */
export const isBound = (state: Pick<Order, 'attached' | 'externalIps'>): boolean =>
  usersOf(state).length > 0 || state.externalIps !== undefined;

export const useEndpoint = (state: LiveCluster, command: UseCommand): Decision<ClusterEvent> => {
  const { at, holder } = command;
  const { attached = {}, attachments = 0 } = state;
  if (command.type === 'DetachFrom') {
    const { generation } = command;
    const endpoint = NAMES.find((name) => isHeldBy(own(attached, name), holder));
    return endpoint === undefined || own(attached, endpoint)?.generation !== generation
      ? []
      : [{ type: 'ClusterEndpointDetached', data: { at, endpoint, holder, generation } }];
  }
  const endpoint = NAMES.find((name) => name === command.part);
  if (endpoint === undefined)
    return refuse('failed-precondition', 'NO_SUCH_ENDPOINT', `a cluster has no endpoint '${command.part}'`);
  const user = own(attached, endpoint);
  const { by } = command;
  if (isHeldBy(user, holder) && by === undefined) return [];
  if (isHeldBy(user, holder) && user.by !== by) return creationUnderWay(holder);
  if (state.deletionRequestedAt !== undefined || state.aborted !== undefined)
    return refuse('failed-precondition', 'DELETION_REQUESTED', `cluster '${state.name}' is being deleted`);
  if (user !== undefined && !isHeldBy(user, holder))
    return refuse(
      'already-exists',
      'ALREADY_EXISTS',
      `cluster '${state.name}' already has an external IP at endpoint ${endpoint}`,
    );
  const claim = { endpoint, holder, generation: attachments + 1, ...defined({ by }) };
  return [{ type: 'ClusterEndpointAttached', data: { at, ...claim } }];
};

const refuse = (kind: Rejection['kind'], code: string, message: string): Rejection =>
  reject(kind, code, message, { field: 'spec.cluster' });

export const attachedTo = (
  state: LiveCluster,
  { at: _at, endpoint, ...user }: { readonly at: string; readonly endpoint: EndpointName } & User,
): LiveCluster => ({
  ...state,
  attached: { ...state.attached, [endpoint]: user },
  attachments: user.generation,
});

export const detachedFrom = (
  state: LiveCluster,
  { endpoint }: { readonly endpoint: EndpointName },
): LiveCluster => ({ ...state, attached: without({ ...state.attached }, endpoint) });

/** Two external IPs and their attachments, which the service makes for a cluster and removes with it (OSAC). */
export const autoObjects = ({ id, name, externalIps }: StoredCluster): readonly MadeObject[] => {
  if (externalIps === undefined) return [];
  const { pool, ids } = externalIps;
  const wanted = NAMES.map((endpoint) => [endpoint, ids[endpoint]] as const);
  return autoAddresses({ field: 'cluster', id, name }, pool, wanted);
};

/** What goes before the cluster, in this order: each group once nothing is left of the one before. */
export const boundObjects = (state: StoredCluster): readonly (readonly Holder[])[] =>
  boundTo(usersOf(state), autoObjects(state));
