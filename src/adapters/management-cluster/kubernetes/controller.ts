import {
  clusterNamespace,
  HubError,
  type CallOptions,
  type ClusterOrderController,
  type ClusterOrderStatus,
  type Condition,
  type OrderPlace,
} from '../../../app/management-cluster.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, listAt, objectAt, sameJson, stringAt } from '../../../domain/json-tools.ts';
import {
  apiVersion,
  CLUSTER_ORDERS,
  HOSTED_CLUSTERS,
  NAMESPACES,
  OSAC_GROUP,
  ROLE_BINDINGS,
  SERVICE_ACCOUNTS,
  type Api,
  type Kind,
} from './api.ts';
import { hubAccessRole } from './rights.ts';
import { CLUSTER_ORDER_LABEL } from './surroundings.ts';

const FINALIZER = `${OSAC_GROUP}/finalizer`;
const SERVICE_ACCOUNT = 'osac';
const HUB_ACCESS = 'hub-access';
/** The operator keeps as many (§1.9). */
const MAX_JOBS = 10;
/** Others write the order, too: a change that met one of theirs is made again. */
const ATTEMPTS = 4;
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const MAX_REASON = 1_024;
const MAX_MESSAGE = 32_768;

/**
 * The controller's part (management-cluster.md §1.1, last paragraph, and §4.7), for hubs where nobody else reconciles
 * ClusterOrders. `hubNamespace`: where the service account `hub-access` is, which may read every cluster.
 */
export const clusterOrderController = (
  api: Api,
  hubNamespace: string,
  now: () => string,
): ClusterOrderController => {
  const orderOf = (place: OrderPlace, by: CallOptions) =>
    api.get(CLUSTER_ORDERS, { namespace: place.namespace, name: place.name }, by);

  /** Read, change, write on the version that was read: finalizers and conditions of others survive. */
  const rewrite = async (
    place: OrderPlace,
    change: (order: JsonObject) => JsonObject | undefined,
    by: CallOptions,
    part?: 'status',
  ): Promise<'written' | 'unchanged' | 'absent'> => {
    for (let attempt = 1; ; attempt += 1) {
      const order = await orderOf(place, by);
      if (order === undefined) return 'absent';
      const patch = change(order);
      if (patch === undefined) return 'unchanged';
      const resourceVersion = stringAt(objectAt(order, 'metadata'), 'resourceVersion');
      const locked = { ...patch, metadata: { ...objectAt(patch, 'metadata'), resourceVersion } };
      try {
        const at = { ...place, ...(part === undefined ? {} : { part }) };
        await api.mergePatch(CLUSTER_ORDERS, at, locked, by);
        return 'written';
      } catch (error) {
        if (!(error instanceof HubError) || error.kind !== 'conflict' || attempt >= ATTEMPTS) throw error;
      }
    }
  };

  return {
    prepare: async (place, by) => {
      const created: string[] = [];
      const finalizer = await rewrite(place, withFinalizer(place), by);
      if (finalizer === 'absent') throw new HubError('not-found', `order ${place.name} is not there`);
      if (finalizer === 'written') created.push(`finalizer ${FINALIZER}`);
      const namespace = clusterNamespace(place);
      if (await ensure(api, objectsOf(place, hubNamespace).namespace, by))
        created.push(`namespace ${namespace}`);
      await onlyNamespaceOf(api, place, by);
      for (const wanted of objectsOf(place, hubNamespace).inside) {
        if (await ensure(api, wanted, by)) created.push(`${wanted.word} ${namespace}/${wanted.name}`);
      }
      return { created };
    },

    writeStatus: async (place, status, by) => {
      const written = await rewrite(place, (order) => statusPatch(place, order, status, now()), by, 'status');
      if (written === 'absent') throw new HubError('not-found', `order ${place.name} is not there`);
    },

    release: async (place, by) => {
      const order = await orderOf(place, by);
      if (order === undefined) return { released: true, waitingFor: [] };
      if (stringAt(objectAt(order, 'metadata'), 'deletionTimestamp') === '')
        throw new HubError('conflict', `order ${place.name} is not being deleted`);
      const waitingFor = await endOfNamespace(api, place, by);
      if (waitingFor.length > 0) return { released: false, waitingFor };
      await rewrite(place, withoutFinalizer, by);
      const left = finalizersOf(order).filter((one) => one !== FINALIZER);
      return { released: true, waitingFor: left.map((one) => `finalizer ${one}`) };
    },
  };
};

const finalizersOf = (object: JsonObject): readonly string[] =>
  listAt(objectAt(object, 'metadata'), 'finalizers').filter((one) => typeof one === 'string');

const withFinalizer =
  ({ name }: OrderPlace) =>
  (order: JsonObject): JsonObject | undefined => {
    const finalizers = finalizersOf(order);
    if (finalizers.includes(FINALIZER)) return undefined;
    // An API server takes no new finalizer then.
    if (stringAt(objectAt(order, 'metadata'), 'deletionTimestamp') !== '')
      throw new HubError('conflict', `order ${name} is being deleted`);
    return { metadata: { finalizers: [...finalizers, FINALIZER] } };
  };

const withoutFinalizer = (order: JsonObject): JsonObject | undefined => {
  const finalizers = finalizersOf(order);
  if (!finalizers.includes(FINALIZER)) return undefined;
  return { metadata: { finalizers: finalizers.filter((one) => one !== FINALIZER) } };
};

type Wanted = {
  readonly kind: Kind;
  readonly word: string;
  readonly name: string;
  readonly namespace?: string;
  readonly object: JsonObject;
};

const objectsOf = (place: OrderPlace, hubNamespace: string) => {
  const namespace = clusterNamespace(place);
  const labels = { [CLUSTER_ORDER_LABEL]: place.name, 'app.kubernetes.io/name': 'fulfillment-ledger' };
  const binding = (name: string, role: string, account: string, of: string): Wanted => ({
    kind: ROLE_BINDINGS,
    word: 'role binding',
    name,
    namespace,
    object: {
      apiVersion: apiVersion(ROLE_BINDINGS),
      kind: 'RoleBinding',
      metadata: { name, namespace, labels },
      roleRef: { apiGroup: ROLE_BINDINGS.group, kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace: of }],
    },
  });
  const own: Wanted = {
    kind: NAMESPACES,
    word: 'namespace',
    name: namespace,
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
  };
  const account: Wanted = {
    kind: SERVICE_ACCOUNTS,
    word: 'service account',
    name: SERVICE_ACCOUNT,
    namespace,
    object: {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: SERVICE_ACCOUNT, namespace, labels },
    },
  };
  return {
    namespace: own,
    inside: [
      account,
      binding(SERVICE_ACCOUNT, 'admin', SERVICE_ACCOUNT, namespace),
      binding(HUB_ACCESS, hubAccessRole(hubNamespace), HUB_ACCESS, hubNamespace),
    ],
  };
};

/** True when it had to be made. What has the name and is not of this order is never used: it would be deleted later. */
const ensure = async (api: Api, wanted: Wanted, by: CallOptions): Promise<boolean> => {
  const { kind, name, namespace, object } = wanted;
  const at = { name, ...(namespace === undefined ? {} : { namespace }) };
  const existing = await api.get(kind, at, by);
  if (existing === undefined) {
    try {
      await api.create(kind, object, by);
      return true;
    } catch (error) {
      if (!(error instanceof HubError) || error.kind !== 'already-exists') throw error;
      throw new HubError('conflict', `${wanted.word} ${name} has just been made by somebody`, {
        cause: error,
      });
    }
  }
  const order = stringAt(objectAt(objectAt(object, 'metadata'), 'labels'), CLUSTER_ORDER_LABEL);
  const metadata = objectAt(existing, 'metadata');
  if (stringAt(metadata, 'deletionTimestamp') !== '')
    throw new HubError('conflict', `${wanted.word} ${name} is being deleted`);
  if (stringAt(objectAt(metadata, 'labels'), CLUSTER_ORDER_LABEL) !== order)
    throw new HubError('already-exists', `${wanted.word} ${name} is there and not of order ${order}`);
  if (!sameJson(existing['roleRef'] ?? null, object['roleRef'] ?? null))
    throw new HubError('already-exists', `${wanted.word} ${name} grants another role; remove it`);
  return false;
};

/** The Ansible content finds the namespace by label and wants exactly one (§8.2). */
const onlyNamespaceOf = async (api: Api, { name }: OrderPlace, by: CallOptions): Promise<void> => {
  const labelSelector = `${CLUSTER_ORDER_LABEL}=${name}`;
  let found: JsonValue[] = [];
  for await (const page of api.list(NAMESPACES, { labelSelector, metadataOnly: true }, by))
    found = [...(page.first ? [] : found), ...page.items];
  if (found.length > 1)
    throw new HubError(
      'conflict',
      `${found.length} namespaces are labelled for order ${name}; remove all but one`,
    );
};

const statusPatch = (
  place: OrderPlace,
  order: JsonObject,
  status: ClusterOrderStatus,
  now: string,
): JsonObject | undefined => {
  const before = objectAt(order, 'status');
  const wanted: JsonObject = {
    phase: status.phase,
    desiredConfigVersion: status.desiredConfigVersion,
    conditions: mergedConditions(before, status.conditions, now),
    clusterReference: {
      namespace: clusterNamespace(place),
      hostedClusterName: place.name,
      serviceAccountName: SERVICE_ACCOUNT,
      roleBindingName: SERVICE_ACCOUNT,
    },
    ...(status.nodeRequests === undefined
      ? {}
      : { nodeRequests: status.nodeRequests.map((one) => ({ ...one })) }),
    ...(status.jobs === undefined ? {} : { provisioningJobs: status.jobs.slice(-MAX_JOBS).map(jobObject) }),
  };
  const changes = Object.fromEntries(
    Object.entries(wanted).filter(([field, value]) => !sameJson(before[field] ?? null, value)),
  );
  return Object.keys(changes).length === 0 ? undefined : { status: changes };
};

/** Ours by type, those of others as they are. A time moves only when the status does, so that equal is unchanged. */
const mergedConditions = (
  before: JsonObject,
  conditions: readonly Condition[],
  now: string,
): JsonObject[] => {
  const stored = listAt(before, 'conditions').filter(isObject);
  const ours = new Set(conditions.map(({ type }) => type));
  const rendered = conditions.map((condition) => {
    const known = stored.find(({ type }) => type === condition.type);
    const same = known !== undefined && known['status'] === condition.status;
    const since = same ? stringAt(known, 'lastTransitionTime') : (condition.lastTransitionTime ?? now);
    const reason = (condition.reason ?? '').slice(0, MAX_REASON);
    return {
      type: condition.type,
      status: condition.status,
      reason: REASON.test(reason) ? reason : 'AsExpected',
      message: (condition.message ?? '').slice(0, MAX_MESSAGE).toWellFormed(),
      lastTransitionTime: wholeSeconds(since === '' ? now : since),
    };
  });
  return [...stored.filter((one) => !ours.has(stringAt(one, 'type'))), ...rendered];
};

const wholeSeconds = (time: string): string => time.replace(/\.\d+Z$/, 'Z');

const jobObject = (job: NonNullable<ClusterOrderStatus['jobs']>[number]): JsonObject => ({
  jobID: job.jobId,
  type: job.type,
  state: job.state,
  timestamp: wholeSeconds(job.timestamp),
  ...(job.message === undefined ? {} : { message: job.message }),
  ...(job.configVersion === undefined ? {} : { configVersion: job.configVersion }),
});

/** What must still go; asks for it once the HostedCluster is gone. A namespace that is not of this order stays. */
const endOfNamespace = async (api: Api, place: OrderPlace, by: CallOptions): Promise<readonly string[]> => {
  const name = clusterNamespace(place);
  const namespace = await api.get(NAMESPACES, { name }, by);
  const metadata = objectAt(namespace, 'metadata');
  if (namespace === undefined || stringAt(objectAt(metadata, 'labels'), CLUSTER_ORDER_LABEL) !== place.name)
    return [];
  const held = finalizersOf(namespace).map((one) => `finalizer ${one} of namespace ${name}`);
  if (stringAt(metadata, 'deletionTimestamp') !== '') return [`namespace ${name}`, ...held];
  if (await hasHostedCluster(api, place, by)) return [`HostedCluster ${name}/${place.name}`];
  await api.remove(NAMESPACES, { name }, by, stringAt(metadata, 'uid'));
  return [`namespace ${name}`, ...held];
};

/** Of a kind that the hub does not have there is none. Without the right to look, the namespace must not go. */
const hasHostedCluster = async (api: Api, place: OrderPlace, by: CallOptions): Promise<boolean> => {
  try {
    const at = { namespace: clusterNamespace(place), name: place.name };
    return (await api.get(HOSTED_CLUSTERS, at, by)) !== undefined;
  } catch (error) {
    if (error instanceof HubError && error.kind === 'not-ready') return false;
    throw error;
  }
};
