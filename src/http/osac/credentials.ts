import type { ClusterIdentifier } from '../../app/hubs/hub-identity.ts';
import { findObject, type ObjectRef } from '../../app/hubs/hub-looks.ts';
import { HubError, type CallOptions, type ManagementCluster } from '../../app/hubs/management-cluster.ts';
import { CLUSTER_ORDER, HOSTED_CLUSTER, hostedPlace } from '../../domain/clusters/hub-objects.ts';
import { isLiveCluster, type ClusterState } from '../../domain/clusters/state.ts';
import type { HubHealth } from '../../domain/hubs/health.ts';
import { clusterAggregate } from '../../domain/kinds.ts';
import { ApiError, denied, invalid, objectNotFound, rejected, unavailable } from '../errors.ts';
import type { Handler, IdMessage } from './call.ts';
import { mayWrite } from './authorization.ts';
import { beginWrite, commandContext, type WriteServices } from './write-context.ts';

/**
 * Kubeconfig and password of a cluster (OSAC), read from the hub when asked for and stored nowhere. Each
 * reveal is an event, appended before the answer.
 */
export type CredentialServices = WriteServices & { readonly hubs: HubAdapters };

export type HubAdapters = {
  adapterOf(hubId: string): ManagementCluster | undefined;
  /** What looking at it showed last. Absent: nothing is known here. */
  healthOf?(hubId: string): HubHealth | undefined;
  /** Tenants of which the hub holds something. */
  tenantsOn?(hubId: string): readonly string[];
  /** Absent: nothing tells from here which cluster credentials lead to. */
  readonly identify?: ClusterIdentifier;
  /** True: no simulated hub may be registered here. */
  readonly refusesSimulated?: boolean;
};

type What = 'kubeconfig' | 'password';

/** Milliseconds that one call to a hub may take here. */
const HUB_DEADLINE_MS = 10_000;

const TEXTS = {
  kubeconfig: {
    contentType: 'application/yaml',
    missing: (id: string) => `kubeconfig for cluster with identifier '${id}' isn't yet available`,
  },
  password: {
    contentType: 'text/plain; charset=utf-8',
    missing: (id: string) => `password for cluster with identifier '${id}' isn't available yet`,
  },
} as const;

export const credentialHandler =
  (what: What, services: CredentialServices): Handler<IdMessage> =>
  async (call) => {
    const { principal, message, signal } = call;
    const { id, asOf } = message;
    if (asOf !== undefined)
      throw invalid(
        "'as_of' shows no credentials: they are read from the hub as they are now; leave it out",
        'as_of',
      );
    const row = services.resources.get('cluster', id, principal.visibility);
    if (row === undefined) throw objectNotFound(id);
    // A cluster of tenant `shared` is seen by everybody; who may enter it is for its owners to say.
    if (!mayWrite(principal, row.tenant)) throw denied();
    const { state } = await services.runner.load(clusterAggregate, id);
    if (!isLiveCluster(state)) throw objectNotFound(id);
    const write = beginWrite(call, { reveal: what }, services);
    const options = { effectId: `reveal:${write.commandId}`, deadlineMs: HUB_DEADLINE_MS, signal };
    const value = await readFromHub(what, state, services.hubs, options);
    if (value === undefined)
      throw new ApiError('NOT_FOUND', TEXTS[what].missing(id), { reason: 'NOT_AVAILABLE_YET' });
    // HEAD shows that it is there and nothing of it.
    if (call.metadata.verb === 'HEAD') return { body: value, contentType: TEXTS[what].contentType };
    const context = await commandContext(call, write, { tenant: row.tenant, project: row.project }, services);
    const outcome = await services.runner.execute(
      clusterAggregate,
      id,
      { type: 'RevealCredentials', at: services.clock.now(), what },
      context,
    );
    if (outcome.outcome === 'rejected') throw rejected(outcome.rejection);
    return { body: value, contentType: TEXTS[what].contentType };
  };

const readFromHub = async (
  what: What,
  state: ClusterState,
  hubs: HubAdapters,
  options: CallOptions,
): Promise<Uint8Array | undefined> => {
  if (state.status !== 'dispatched') return undefined;
  const { hub } = state;
  const cluster = hubs.adapterOf(hub.id);
  if (cluster === undefined) throw hubAway('it cannot be reached from here');
  try {
    const ref = { id: state.id, namespace: hub.namespace, name: hub.orderName };
    const value = await readSecret(what, cluster, ref, options);
    // Written first and filled afterwards: what is empty is not there yet.
    return value?.byteLength === 0 ? undefined : value;
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    if (error.kind === 'not-found' || error.kind === 'not-ready') return undefined;
    throw hubAway(error.kind, error);
  }
};

const hubAway = (why: string, error?: HubError): ApiError =>
  unavailable(
    `the management cluster of this cluster does not answer (${why})`,
    'HUB_UNAVAILABLE',
    (error?.retryAfterMs ?? 5_000) / 1000,
    error,
  );

/**
 * Of the order with the cluster's label alone: what has taken its name belongs to somebody else
 * (OSAC's operator).
 */
const readSecret = async (
  what: What,
  cluster: ManagementCluster,
  ref: Omit<ObjectRef, 'hub'>,
  options: CallOptions,
): Promise<Uint8Array | undefined> => {
  const observed = await findObject(cluster, CLUSTER_ORDER, ref, options);
  if (observed === undefined) return undefined;
  const place = hostedPlace({ namespace: ref.namespace, name: observed.name }, observed);
  const hosted = await cluster.get(HOSTED_CLUSTER, place, options);
  const name = what === 'kubeconfig' ? hosted?.kubeconfigSecret : hosted?.passwordSecret;
  if (hosted === undefined || name === undefined) return undefined;
  return cluster.readSecret({ namespace: hosted.namespace, name, key: what }, options);
};
