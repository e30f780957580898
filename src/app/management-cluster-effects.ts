import type { ClusterOrderDraft } from '../domain/clusters/cluster-order-manifest.ts';
import { configVersion } from '../domain/clusters/observation.ts';
import { relaunchParameters } from '../domain/clusters/relaunch.ts';
import { own, sameJson } from '../domain/json-tools.ts';
import type { SecretRef } from '../domain/secret-ref.ts';
import type { EffectOutcome } from '../domain/workflow.ts';
import {
  callOptionsOf,
  clusterOf,
  done,
  Ended,
  failed,
  outcomeOf,
  outcomeOfHubError,
  refused,
  registeredHub,
} from './hub-effects.ts';
import { findLabelled, findOrder, observationAt, type ClusterLooks, type OrderRef } from './hub-looks.ts';
import type { HubRegistry } from './hub-registry.ts';
import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  TENANT_ANNOTATION,
  type CallOptions,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
  type ClusterOrderStatus,
  type ManagementCluster,
  type ObservedClusterOrder,
} from './management-cluster.ts';
import type { Clock, SecretStore } from './ports.ts';
import type { EffectCall, EffectPort } from './process-runner/types.ts';

/** Arguments of `applyClusterOrder`. */
export type ApplyArgs = {
  readonly hub: string;
  readonly clusterId: string;
  readonly manifest: ClusterOrderDraft;
  /** Revealed at the last moment; never in events or logs. */
  readonly pullSecret?: SecretRef;
  /** The namespace is the tenant's own: made when first needed. */
  readonly tenantNamespace?: boolean;
  /** The hub never took it: what fails for certain may be sent to another one. */
  readonly unsent?: boolean;
  /** Somebody retried: the hub's operator is to launch its job again, also where the spec is stored already. */
  readonly relaunch?: boolean;
};
/** Arguments of `writeOrderStatus`: times of conditions are made here, from when it was seen. */
export type StatusArgs = OrderRef & {
  readonly status: Omit<ClusterOrderStatus, 'desiredConfigVersion'>;
  /** ISO time of the observation that it is made of. */
  readonly at: string;
};

/** A namespace takes five seconds and more to go (operator-run.md §2 f). */
const RELEASE_AGAIN_MS = 5_000;

/** Operations that write to a hub. */
export const HUB_WRITES: readonly string[] = [
  'applyClusterOrder',
  'deleteClusterOrder',
  'prepareOrder',
  'writeOrderStatus',
  'releaseOrder',
];

/**
 * Effect port `management-cluster` (management-cluster.md §10): makes the hub hold what the order wants.
 *
 * - `applyClusterOrder` ApplyArgs → {uid, name, did, fields?}: creates the ClusterOrder or patches what differs in it.
 * - `deleteClusterOrder` OrderRef → {existed}: asks for deletion; absence is confirmed by later observations only.
 * - `observeCluster` OrderRef → ClusterObservation.
 *
 * Where nobody else reconciles ClusterOrders (`controller: ledger`):
 * - `prepareOrder` OrderRef → {created}: finalizer, namespace, account and rights.
 * - `writeOrderStatus` StatusArgs → {}.
 * - `releaseOrder` OrderRef → {}: done when namespace and finalizer are gone; until then it fails with what it waits for.
 *
 * Everything here may be repeated at any time: names are deterministic, patches say what should be, and an object that
 * is there already is ours when its uuid label says so.
 */
export const createManagementClusterEffects = (options: {
  readonly registry: HubRegistry;
  readonly secrets: Pick<SecretStore, 'reveal'>;
  readonly clock: Pick<Clock, 'now'>;
  /** The turns of whoever looks at a cluster, those of the watch of its hub included. */
  readonly looks: ClusterLooks;
  /** Milliseconds that one call to a hub may take; an effect makes up to three. Default 10,000. */
  readonly callDeadlineMs?: number;
}): EffectPort => {
  const { registry, secrets, clock, looks, callDeadlineMs = 10_000 } = options;

  const optionsOf = (call: EffectCall): CallOptions => callOptionsOf(call, callDeadlineMs);

  const adapterOf = async (hub: string, call: EffectCall): Promise<ManagementCluster> =>
    clusterOf(await registeredHub(registry, hub, call));

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
    const there = await existingOrder(cluster, args, call);
    if (there !== undefined) return adopt(cluster, manifest, args, there, call);
    if (args.tenantNamespace === true) {
      await cluster.ensureTenantNamespace({ name: manifest.namespace, tenant: call.tenant }, optionsOf(call));
    }
    try {
      return applied(await cluster.createClusterOrder(manifest, optionsOf(call)), 'created');
    } catch (error) {
      if (!(error instanceof HubError) || error.kind !== 'already-exists') throw error;
      const existing = error.order ?? (await cluster.getClusterOrder(manifest, optionsOf(call)));
      if (existing === undefined) return failed('Conflict', 'the object of this name has just gone');
      return adopt(cluster, manifest, args, existing, call);
    }
  };

  /**
   * An earlier attempt may have happened: looked for by name and by label before anything is written. What OSAC's own
   * service once made has another name (management-cluster.md §10.2); simulated hubs hold nothing of others.
   */
  const existingOrder = async (
    cluster: ManagementCluster,
    args: ApplyArgs,
    call: EffectCall,
  ): Promise<ObservedClusterOrder | undefined> => {
    if (call.mode === 'observe') {
      const named = await findOrder(cluster, refOf(args), optionsOf(call));
      if (named === undefined || named.name === args.manifest.name || cluster.simulated) return named;
    } else if (cluster.simulated) return undefined;
    const labelled = await findLabelled(cluster, refOf(args), optionsOf(call));
    const ours = labelled.find(({ name }) => name === args.manifest.name);
    if (labelled.length > 1 && ours === undefined) {
      const names = labelled.map(({ name, uid }) => `${name} (uid ${uid})`).join(', ');
      throw new Ended(
        refused('DuplicateOrders', `hub ${args.hub} holds several orders of this cluster: ${names}`),
      );
    }
    return ours ?? labelled[0];
  };

  const adopt = async (
    cluster: ManagementCluster,
    manifest: ClusterOrderManifest,
    args: ApplyArgs,
    existing: ObservedClusterOrder,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const { clusterId, hub } = args;
    if (existing.deletionTimestamp !== undefined) {
      // Whoever's it was: the name is free once it has gone (operator-run.md §3, §10.1).
      const said = `ClusterOrder ${existing.name} is being deleted since ${existing.deletionTimestamp}`;
      const waiting = failed('BeingDeleted', said);
      return existing.clusterId === clusterId ? whileThere(args, waiting) : waiting;
    }
    if (existing.clusterId !== clusterId) {
      const owner = existing.clusterId === undefined ? 'nobody known' : `cluster ${existing.clusterId}`;
      return refused(
        'NameTaken',
        `ClusterOrder ${existing.name} (uid ${existing.uid}) in ${manifest.namespace} on hub ${hub} belongs to ${owner}`,
      );
    }
    const patch =
      driftOf(existing.spec, manifest.spec) ??
      (args.relaunch === true ? relaunchOf(existing, manifest.spec) : undefined);
    if (patch === undefined) return applied(existing, 'unchanged');
    const ref = { namespace: manifest.namespace, name: existing.name };
    try {
      const patched = await cluster.patchClusterOrder(ref, patch, optionsOf(call));
      return applied(patched, 'patched', Object.keys(patch));
    } catch (error) {
      if (error instanceof HubError) return whileThere(args, outcomeOfHubError(error));
      throw error;
    }
  };

  const remove = async (args: OrderRef, call: EffectCall): Promise<EffectOutcome> => {
    const cluster = await adapterOf(args.hub, call);
    const order = await findOrder(cluster, args, optionsOf(call));
    if (order === undefined) return done({ existed: false });
    if (order.deletionTimestamp !== undefined) return done({ existed: true });
    // What has taken its name since it was read is somebody else's, or looked at anew.
    const ref = { namespace: args.namespace, name: order.name, uid: order.uid };
    const existed = await cluster.deleteClusterOrder(ref, optionsOf(call));
    return done({ existed });
  };

  const observe = async (args: OrderRef, call: EffectCall): Promise<EffectOutcome> => {
    const cluster = await adapterOf(args.hub, call);
    return looks.inTurn(args, async () => {
      const askedAt = clock.now();
      const observation = await observationAt(cluster, args, optionsOf(call));
      return done(observation.order === null ? observation : { ...observation, askedAt });
    });
  };

  const controllerOf = async (hub: string, call: EffectCall) => {
    const { controller } = await adapterOf(hub, call);
    if (controller !== undefined) return controller;
    throw new Ended(failed('NoController', `nothing in this release reconciles the orders of hub ${hub}`));
  };

  /** What has its name without our label belongs to somebody else, and is not touched. */
  const isThere = async ({ hub, clusterId, ...place }: OrderRef, call: EffectCall): Promise<boolean> =>
    (await (await adapterOf(hub, call)).getClusterOrder(place, optionsOf(call)))?.clusterId === clusterId;

  const prepare = async (args: OrderRef, call: EffectCall): Promise<EffectOutcome> => {
    const controller = await controllerOf(args.hub, call);
    if (!(await isThere(args, call)))
      return failed('NotFound', `order ${args.name} of this cluster is not on hub ${args.hub}`);
    const { created } = await controller.prepare(args, optionsOf(call));
    return done({ created: [...created] });
  };

  const writeStatus = async (
    { status, at, ...ref }: StatusArgs,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const cluster = await adapterOf(ref.hub, call);
    const controller = await controllerOf(ref.hub, call);
    const order = await cluster.getClusterOrder(ref, optionsOf(call));
    // Gone meanwhile: there is nothing to say any more.
    if (order?.clusterId !== ref.clusterId) return done({});
    const conditions = status.conditions.map((condition) => {
      const known = order.conditions.find(({ type }) => type === condition.type);
      const since = known?.status === condition.status ? known.lastTransitionTime : undefined;
      return { ...condition, lastTransitionTime: since ?? at };
    });
    const wanted = { ...status, conditions, desiredConfigVersion: configVersion(order.spec) };
    await controller.writeStatus(ref, wanted, optionsOf(call));
    return done({});
  };

  const release = async (args: OrderRef, call: EffectCall): Promise<EffectOutcome> => {
    const controller = await controllerOf(args.hub, call);
    if (!(await isThere(args, call))) return done({});
    const { released, waitingFor } = await controller.release(args, optionsOf(call));
    return released
      ? done({})
      : failed('BeingDeleted', `waiting for ${waitingFor.join(', ')}`, RELEASE_AGAIN_MS);
  };

  const operations: {
    readonly [operation: string]: (args: never, call: EffectCall) => Promise<EffectOutcome>;
  } = {
    applyClusterOrder: apply,
    deleteClusterOrder: remove,
    observeCluster: observe,
    prepareOrder: prepare,
    writeOrderStatus: writeStatus,
    releaseOrder: release,
  };

  return async (operation, args, call) => {
    const operationOf = own(operations, operation);
    try {
      // Arguments are this service's own, made by its workflow and typed there.
      return operationOf === undefined
        ? refused('NoSuchOperation', `no operation is called ${operation}`)
        : await operationOf(args as never, call);
    } catch (error) {
      const outcome = outcomeOf(error);
      if (outcome === undefined) throw error;
      return outcome;
    }
  };
};

const refOf = ({ hub, clusterId, manifest }: ApplyArgs): OrderRef => ({
  hub,
  clusterId,
  namespace: manifest.namespace,
  name: manifest.name,
});

/** A certain failure may send an order elsewhere: not while one of ours is on this hub, whoever made it. */
const whileThere = ({ unsent }: ApplyArgs, outcome: EffectOutcome): EffectOutcome =>
  unsent === true && outcome.outcome === 'failed'
    ? { outcome: 'unknown', reason: outcome.reason, message: outcome.message }
    : outcome;

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

/** A change of the spec that orders the same, where the operator would do nothing without one. */
const relaunchOf = (
  existing: ObservedClusterOrder,
  wanted: ClusterOrderSpec,
): Partial<ClusterOrderSpec> | undefined => {
  const templateParameters = relaunchParameters(existing, wanted.templateParameters);
  return templateParameters === undefined ? undefined : { templateParameters };
};

const applied = (
  { uid, name, generation }: ObservedClusterOrder,
  did: 'created' | 'patched' | 'unchanged',
  fields?: string[],
): EffectOutcome => done({ uid, name, generation, did, ...(fields === undefined ? {} : { fields }) });
