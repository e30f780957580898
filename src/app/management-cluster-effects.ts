import type { ClusterOrderDraft } from '../domain/clusters/cluster-order-manifest.ts';
import { configVersion } from '../domain/clusters/observation.ts';
import type { ClusterObservation, ObservedHosted } from '../domain/clusters/observed.ts';
import type { JsonObject } from '../domain/json.ts';
import { sameJson } from '../domain/json-tools.ts';
import type { SecretRef } from '../domain/secret-ref.ts';
import type { EffectOutcome } from '../domain/workflow.ts';
import type { HubRegistry } from './hub-registry.ts';
import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  TENANT_ANNOTATION,
  type CallOptions,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
  type ManagementCluster,
  type ObservedClusterOrder,
  type ObservedHostedCluster,
} from './management-cluster.ts';
import type { SecretStore } from './ports.ts';
import type { EffectCall, EffectPort } from './process-runner/types.ts';

/** Where a ClusterOrder is. */
export type OrderRef = {
  readonly hub: string;
  readonly namespace: string;
  readonly name: string;
  readonly clusterId: string;
};
/** Arguments of `applyClusterOrder`. */
export type ApplyArgs = {
  readonly hub: string;
  readonly clusterId: string;
  readonly manifest: ClusterOrderDraft;
  /** Revealed at the last moment; never in events or logs. */
  readonly pullSecret?: SecretRef;
};

/** An outcome that ends the effect from deep inside; it never leaves this file. */
class Ended extends Error {
  override readonly name = 'Ended';
  readonly outcome: EffectOutcome;
  constructor(outcome: EffectOutcome) {
    super(outcome.outcome);
    this.outcome = outcome;
  }
}

/**
 * Effect port `management-cluster` (management-cluster.md §10): makes the hub hold what the order wants.
 *
 * - `applyClusterOrder` ApplyArgs → {uid, name, did}: creates the ClusterOrder or patches what differs in it.
 * - `deleteClusterOrder` OrderRef → {existed}: asks for deletion; absence is confirmed by later observations only.
 * - `observeCluster` OrderRef → ClusterObservation.
 *
 * Everything here may be repeated at any time: names are deterministic, patches say what should be, and an object that
 * is there already is ours when its uuid label says so.
 */
export const createManagementClusterEffects = (options: {
  readonly registry: HubRegistry;
  readonly secrets: Pick<SecretStore, 'reveal'>;
  /** Milliseconds that one call to a hub may take; an effect makes up to three. Default 10,000. */
  readonly callDeadlineMs?: number;
}): EffectPort => {
  const { registry, secrets, callDeadlineMs = 10_000 } = options;

  const optionsOf = (call: EffectCall): CallOptions => ({
    effectId: call.effectId,
    deadlineMs: Math.min(callDeadlineMs, call.deadlineMs),
    signal: call.signal,
  });

  const adapterOf = async (hub: string, call: EffectCall): Promise<ManagementCluster> => {
    await registry.ready(call.signal);
    const registered = registry.get(hub);
    if (registered === undefined) {
      // A hub that was deregistered may come back; its orders wait.
      throw new Ended(failed('HubNotRegistered', `hub ${hub} is not registered`));
    }
    if (registered.adapter === undefined) {
      throw new Ended(failed('NoAdapter', `nothing in this release reaches hub ${hub}`));
    }
    return registered.adapter;
  };

  /** With the secret's value in clear: only for the adapter. */
  const manifestOf = async (args: ApplyArgs, call: EffectCall): Promise<ClusterOrderManifest> => {
    const { manifest, pullSecret, clusterId } = args;
    // A template's default pull secret belongs to the template's tenant.
    const owner = pullSecret?.tenant ?? call.tenant;
    const value = pullSecret === undefined ? undefined : await secrets.reveal(pullSecret, owner);
    if (pullSecret !== undefined && value === undefined) {
      throw new Ended(
        refused('PullSecretMissing', 'the pull secret of this order is not in the secret store'),
      );
    }
    return {
      ...manifest,
      labels: { ...manifest.labels, [CLUSTER_ORDER_UUID_LABEL]: clusterId },
      annotations: { ...manifest.annotations, [TENANT_ANNOTATION]: call.tenant },
      spec: {
        ...manifest.spec,
        ...(value === undefined ? {} : { pullSecret: new TextDecoder().decode(value) }),
      },
    };
  };

  const apply = async (args: ApplyArgs, call: EffectCall): Promise<EffectOutcome> => {
    const cluster = await adapterOf(args.hub, call);
    const manifest = await manifestOf(args, call);
    // An earlier attempt may have happened: look, by name and by label, before anything is written.
    const there =
      call.mode === 'observe' ? await findOrder(cluster, refOf(args), optionsOf(call)) : undefined;
    if (there !== undefined) return adopt(cluster, manifest, args, there, call);
    try {
      return applied(await cluster.createClusterOrder(manifest, optionsOf(call)), 'created');
    } catch (error) {
      if (!(error instanceof HubError) || error.kind !== 'already-exists') throw error;
      const existing = error.order ?? (await cluster.getClusterOrder(manifest, optionsOf(call)));
      if (existing === undefined) return failed('Conflict', 'the object of this name has just gone');
      return adopt(cluster, manifest, args, existing, call);
    }
  };

  const adopt = async (
    cluster: ManagementCluster,
    manifest: ClusterOrderManifest,
    { clusterId, hub }: ApplyArgs,
    existing: ObservedClusterOrder,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    if (existing.clusterId !== clusterId) {
      const owner = existing.clusterId === undefined ? 'nobody known' : `cluster ${existing.clusterId}`;
      return refused(
        'NameTaken',
        `ClusterOrder ${existing.name} (uid ${existing.uid}) in ${manifest.namespace} on hub ${hub} belongs to ${owner}`,
      );
    }
    if (existing.deletionTimestamp !== undefined) {
      return failed(
        'BeingDeleted',
        `ClusterOrder ${existing.name} is being deleted since ${existing.deletionTimestamp}`,
      );
    }
    const patch = driftOf(existing.spec, manifest.spec);
    if (patch === undefined) return applied(existing, 'unchanged');
    const ref = { namespace: manifest.namespace, name: existing.name };
    return applied(await cluster.patchClusterOrder(ref, patch, optionsOf(call)), 'patched');
  };

  const remove = async (args: OrderRef, call: EffectCall): Promise<EffectOutcome> => {
    const cluster = await adapterOf(args.hub, call);
    const order = await findOrder(cluster, args, optionsOf(call));
    if (order === undefined) return { outcome: 'done', result: { existed: false } };
    if (order.deletionTimestamp !== undefined) return { outcome: 'done', result: { existed: true } };
    const ref = { namespace: args.namespace, name: order.name };
    const existed = await cluster.deleteClusterOrder(ref, optionsOf(call));
    return { outcome: 'done', result: { existed } };
  };

  const observe = async (args: OrderRef, call: EffectCall): Promise<EffectOutcome> => {
    const cluster = await adapterOf(args.hub, call);
    const order = await findOrder(cluster, args, optionsOf(call));
    const observation = await observationOf(cluster, order, optionsOf(call));
    return { outcome: 'done', result: observation as unknown as JsonObject };
  };

  return async (operation, args, call) => {
    try {
      // Arguments are this service's own, made by its workflow and typed there.
      if (operation === 'applyClusterOrder') return await apply(args as unknown as ApplyArgs, call);
      if (operation === 'deleteClusterOrder') return await remove(args as unknown as OrderRef, call);
      if (operation === 'observeCluster') return await observe(args as unknown as OrderRef, call);
      return refused('NoSuchOperation', `no operation is called ${operation}`);
    } catch (error) {
      if (error instanceof Ended) return error.outcome;
      if (error instanceof HubError) return outcomeOfError(error);
      throw error;
    }
  };
};

const refOf = ({ hub, clusterId, manifest }: ApplyArgs): OrderRef => ({
  hub,
  clusterId,
  namespace: manifest.namespace,
  name: manifest.name,
});

/**
 * By our name, then by label (management-cluster.md §10.2): ours is what carries our label, and nothing else. What has
 * our name without it belongs to somebody else, and ours is not there.
 */
const findOrder = async (
  cluster: ManagementCluster,
  { namespace, name, clusterId }: OrderRef,
  options: CallOptions,
): Promise<ObservedClusterOrder | undefined> => {
  const named = await cluster.getClusterOrder({ namespace, name }, options);
  if (named?.clusterId === clusterId) return named;
  const labelled = await cluster.findClusterOrders(namespace, clusterId, options);
  return labelled.find((order) => order.clusterId === clusterId);
};

/** What is around an order, as the workflow judges it. The pull secret stays here; its hash goes along. */
export const observationOf = async (
  cluster: ManagementCluster,
  order: ObservedClusterOrder | undefined,
  options: CallOptions,
): Promise<ClusterObservation> => {
  if (order === undefined) return { order: null };
  const { pullSecret: _secret, ...spec } = order.spec;
  const hostedCluster = await hostedOf(cluster, order, options);
  return {
    order: {
      uid: order.uid,
      ...(order.deletionTimestamp === undefined ? {} : { deletionTimestamp: order.deletionTimestamp }),
      finalizers: order.finalizers,
      spec,
      ...(order.phase === undefined ? {} : { phase: order.phase }),
      conditions: order.conditions,
      ...(order.desiredConfigVersion === undefined
        ? {}
        : { desiredConfigVersion: order.desiredConfigVersion }),
      jobs: order.jobs,
      ...(order.apiEndpoint === undefined ? {} : { apiEndpoint: order.apiEndpoint }),
      ...(order.ingressEndpoint === undefined ? {} : { ingressEndpoint: order.ingressEndpoint }),
    },
    specVersion: configVersion(order.spec),
    ...(hostedCluster === undefined ? {} : { hostedCluster }),
  };
};

/** null: there is none; undefined: the hub does not let us read it. */
const hostedOf = async (
  cluster: ManagementCluster,
  { clusterReference }: ObservedClusterOrder,
  options: CallOptions,
): Promise<ObservedHosted | null | undefined> => {
  const { namespace = '', hostedClusterName: name = '' } = clusterReference ?? {};
  if (namespace === '' || name === '') return null;
  try {
    const hosted = await cluster.getHostedCluster({ namespace, name }, options);
    return hosted === undefined ? null : shownHosted(hosted);
  } catch (error) {
    if (error instanceof HubError && error.kind === 'unauthorized') return undefined;
    throw error;
  }
};

const shownHosted = (hosted: ObservedHostedCluster): ObservedHosted => ({
  name: hosted.name,
  conditions: hosted.conditions,
  ...(hosted.controlPlaneEndpoint === undefined ? {} : { controlPlaneEndpoint: hosted.controlPlaneEndpoint }),
  ...(hosted.baseDomain === undefined ? {} : { baseDomain: hosted.baseDomain }),
  ...(hosted.nodePools === undefined ? {} : { nodePools: hosted.nodePools }),
});

/**
 * Only what we own, may change and differs: each change is a full run of the hub's automation (operator-run.md §4.6).
 * A text that is no longer wanted becomes empty, which the operator treats as absent; null is never sent.
 */
const driftOf = (
  stored: ClusterOrderSpec,
  wanted: ClusterOrderSpec,
): Partial<ClusterOrderSpec> | undefined => {
  const patch: { -readonly [Key in keyof ClusterOrderSpec]?: ClusterOrderSpec[Key] } = {};
  // An empty list is rewritten by the operator and would differ for ever (operator-run.md §4.7).
  if (wanted.nodeRequests.length > 0 && !sameJson(stored.nodeRequests, wanted.nodeRequests)) {
    patch.nodeRequests = wanted.nodeRequests;
  }
  for (const field of ['pullSecret', 'sshPublicKey', 'releaseImage'] as const) {
    const text = wanted[field] ?? '';
    if (text === (stored[field] ?? '') || (field === 'releaseImage' && text === '')) continue;
    patch[field] = text;
  }
  const network = wanted.network ?? {};
  const removed = (['podCIDR', 'serviceCIDR'] as const).filter(
    (range) => network[range] === undefined && (stored.network?.[range] ?? '') !== '',
  );
  if (removed.length > 0) {
    throw new Ended(
      refused(
        'NetworkRangeNotRemovable',
        `a hub cannot take back ${removed.join(' and ')} of an order it holds`,
      ),
    );
  }
  const changed = Object.entries(network).filter(
    ([range, cidr]) => stored.network?.[range as keyof typeof network] !== cidr,
  );
  if (changed.length > 0) patch.network = Object.fromEntries(changed);
  return Object.keys(patch).length === 0 ? undefined : patch;
};

const applied = (order: ObservedClusterOrder, did: 'created' | 'patched' | 'unchanged'): EffectOutcome => ({
  outcome: 'done',
  result: { uid: order.uid, name: order.name, generation: order.generation, did },
});

const failed = (reason: string, message: string, retryAfterMs?: number): EffectOutcome => ({
  outcome: 'failed',
  reason,
  message,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});
const refused = (reason: string, message: string): EffectOutcome => ({ outcome: 'refused', reason, message });

/** An API server repeats what it refuses; a pull secret must not come back that way. */
const withoutSecret = (message: string): string =>
  message.replaceAll(/(pullSecret: Invalid value: )"(?:[^"\\]|\\.)*"/g, '$1"***"');

/** management-cluster.md §10.4. */
export const outcomeOfError = (error: HubError): EffectOutcome => {
  const { retryAfterMs } = error;
  const message = withoutSecret(error.message);
  switch (error.kind) {
    case 'invalid':
      return refused('ValidationFailed', message);
    case 'conflict':
      return failed('Conflict', message, retryAfterMs);
    case 'already-exists':
      return refused('NameTaken', message);
    case 'not-found':
      return failed('NotFound', message, retryAfterMs);
    case 'not-ready':
      return failed('NotReady', message, retryAfterMs);
    case 'unauthorized':
      return failed('Unauthorized', message, retryAfterMs);
    case 'throttled':
      return failed('Throttled', message, retryAfterMs);
    case 'unavailable':
      return failed('Unavailable', message, retryAfterMs);
    case 'unknown-outcome':
      return { outcome: 'unknown', reason: 'OutcomeUnknown', message };
  }
};
