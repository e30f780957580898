import { z } from 'zod';
import {
  filled,
  shownConditions,
  shownCount,
  shownList,
  shownMeta,
  shownPart,
  shownText,
  type Condition,
} from '../hubs/hub-codecs.ts';
import { namespaceFits } from '../hubs/hub-facts.ts';
import {
  apiVersionOf,
  OSAC_GROUP,
  OWNED_VERBS,
  type Companion,
  type Drift,
  type HubObject,
  type Manifest,
  type ObjectPlace,
  type ObjectType,
  type OwnedObject,
} from '../hubs/hub-object.ts';
import {
  hubAccessRole,
  NAMESPACE,
  RESOURCE_CLASS_LABEL,
  ROLE_BINDING,
  SERVICE_ACCOUNT,
} from '../hubs/hub-objects.ts';
import { defined, sameJson, without, withoutPaths } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import { orderName } from './cluster-order-manifest.ts';
import { configVersion } from './config-version.ts';
import { ENDED, latestJob } from './observed-facts.ts';
import type { ClusterOrderSpecShape, ObservedJob, ClusterObservation, ObservedHosted } from './observed.ts';
import {
  CLUSTER_ORDER_UUID_LABEL,
  observedClusterOrder,
  written,
  type Job,
  type ObservedClusterOrder,
  type Phase,
} from './order-codec.ts';

/**
 * What a retry writes into `templateParameters`, so that the hub's operator launches a job again; undefined: nothing has
 * to be written for that.
 *
 * The operator launches when the hash of the spec is not that of its latest job. Otherwise it does so minutes after a job
 * failed, and never after one succeeded, though the cluster is gone since. So a retry has to change what is hashed without
 * changing what is ordered. Of the hashed fields this is the only one whose text has no meaning beyond what Ansible parses
 * from it: a JSON object. A space is put behind its opening brace, one more with each retry, so that no hash comes twice;
 * before the brace it might keep Ansible from taking the text for an object. Nothing on the hub is deleted for it: to
 * make the order anew would tear down what there is of the cluster.
 */
export const relaunchParameters = (
  { spec, jobs }: { readonly spec: ClusterOrderSpecShape; readonly jobs: readonly ObservedJob[] },
  wanted: string,
): string | undefined => {
  const job = latestJob(jobs, 'provision');
  // Without any job the operator tries by itself, and what runs is waited for.
  if (job === undefined || !ENDED.includes(job.state)) return undefined;
  const version = configVersion(spec);
  // It was not launched yet for what is stored: an attempt of this retry whose answer was lost, or another change.
  if ((job.configVersion ?? version) !== version) return undefined;
  const [, spaces = ''] = /^\{( *)/.exec(spec.templateParameters) ?? [];
  return `{${spaces} ${wanted.slice(1)}`;
};

/** What a cluster is on a hub: the objects that we write there, and those of others that we read. */
export { CLUSTER_ORDER_UUID_LABEL };
export type { ObservedClusterOrder };
export type ClusterOrderSpec = ClusterOrderSpecShape;
export type ClusterOrderManifest = Manifest<ClusterOrderSpec>;

/** Back-pointer of everything that belongs to an order: the order's name (OSAC's operator). */
export const CLUSTER_ORDER_LABEL = `${OSAC_GROUP}/clusterorder`;

/** `<namespace>-<order>`: where a cluster's own objects are; its HostedCluster has the order's name. */
export const clusterNamespace = ({ namespace, name }: ObjectPlace): string => `${namespace}-${name}`;

const HYPERSHIFT = { group: 'hypershift.openshift.io', version: 'v1beta1' } as const;

/** Host names and addresses become part of URLs that tenants follow. */
const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$|^[0-9A-Fa-f:]{2,39}$/;
const MAX_PORT = 65_535;
const named = shownPart({ name: shownText });

const shownHosted = shownPart({
  spec: shownPart({ dns: shownPart({ baseDomain: z.string().regex(HOST).catch('') }) }),
  status: shownPart({
    conditions: shownConditions,
    controlPlaneEndpoint: z
      .object({ host: z.string().regex(HOST), port: z.int().min(1).max(MAX_PORT) })
      .optional()
      .catch(undefined),
    kubeconfig: named,
    kubeadminPassword: named,
  }),
});

export type ObservedHostedCluster = Omit<ObservedHosted, 'conditions'> & {
  readonly namespace: string;
  readonly conditions: readonly Condition[];
  readonly kubeconfigSecret?: string;
  readonly passwordSecret?: string;
};

/** Replicas of a NodePool are the nodes that are there. */
const shownPool = shownPart({
  metadata: shownPart({ labels: shownPart({ [RESOURCE_CLASS_LABEL]: shownText }) }),
  spec: shownPart({ replicas: shownCount }),
  status: shownPart({ replicas: shownCount }),
}).transform(({ metadata, spec, status }) => ({
  resourceClass: metadata.labels[RESOURCE_CLASS_LABEL] ?? '',
  desired: spec.replicas,
  ready: status.replicas,
}));
const shownPools = shownList(shownPool);

const NODE_POOL: HubObject = {
  ...HYPERSHIFT,
  kind: 'NodePool',
  plural: 'nodepools',
  shown: (object) => shownPool.parse(object),
  rights: [
    { verbs: ['list', 'get'], within: 'anywhere', setup: 'node-counts', optional: true },
    { verbs: ['list'], within: 'anywhere', setup: 'controller-ledger' },
    { verbs: ['get'], within: 'anywhere', setup: 'controller-ledger', optional: true },
  ],
};

/** A HostedCluster, with the NodePools beside it when they could be listed. */
export const HOSTED_CLUSTER: HubObject<ObservedHostedCluster> = {
  ...HYPERSHIFT,
  kind: 'HostedCluster',
  plural: 'hostedclusters',
  required: true,
  parts: { nodePools: { of: NODE_POOL, label: CLUSTER_ORDER_LABEL } },
  rights: [
    { verbs: ['get'], within: 'anywhere', setup: 'hub-access' },
    { verbs: ['get', 'list'], within: 'anywhere', setup: 'controller-ledger', optional: true },
  ],
  shown: (object, { nodePools } = {}) => {
    const { name, namespace, uid, resourceVersion, deletionTimestamp = '' } = shownMeta(object, '');
    const { spec, status } = shownHosted.parse(object);
    const { conditions, controlPlaneEndpoint, kubeconfig, kubeadminPassword } = status;
    return {
      name,
      namespace,
      ...filled({ uid, resourceVersion, deletionTimestamp }),
      conditions,
      ...(controlPlaneEndpoint === undefined ? {} : { controlPlaneEndpoint }),
      ...filled({
        baseDomain: spec.dns.baseDomain,
        kubeconfigSecret: kubeconfig.name,
        passwordSecret: kubeadminPassword.name,
      }),
      ...(nodePools === undefined ? {} : { nodePools: shownPools.parse(nodePools) }),
    };
  },
};

/**
 * Only what we own, may change and differs: each change is a full run of the hub's automation (OSAC's operator).
 * A text that is no longer wanted becomes empty, which the operator treats as absent; null is never sent.
 */
const driftOf = (stored: ClusterOrderSpec, wanted: ClusterOrderSpec): Drift => {
  const patch: { -readonly [Key in keyof ClusterOrderSpec]?: ClusterOrderSpec[Key] } = {};
  // An empty list is rewritten by the operator and would differ for ever.
  if (wanted.nodeRequests.length > 0 && !sameJson(stored.nodeRequests, wanted.nodeRequests))
    patch.nodeRequests = wanted.nodeRequests;
  for (const field of ['pullSecret', 'sshPublicKey', 'releaseImage'] as const) {
    const text = wanted[field] ?? '';
    if (text === (stored[field] ?? '') || (field === 'releaseImage' && text === '')) continue;
    patch[field] = text;
  }
  const network = wanted.network ?? {};
  const removed = (['podCIDR', 'serviceCIDR'] as const).filter(
    (which) => network[which] === undefined && (stored.network?.[which] ?? '') !== '',
  );
  if (removed.length > 0)
    return {
      refused: 'NetworkRangeNotRemovable',
      message: `a hub cannot take back ${removed.join(' and ')} of an order it holds`,
    };
  const changed = Object.entries(network).filter(
    ([which, cidr]) => stored.network?.[which as keyof typeof network] !== cidr,
  );
  if (changed.length > 0) patch.network = Object.fromEntries(changed);
  return { patch: Object.keys(patch).length === 0 ? undefined : patch };
};

const ORDER: ObjectType = {
  kind: 'ClusterOrder',
  group: OSAC_GROUP,
  version: 'v1alpha1',
  plural: 'clusterorders',
};

/** The operator keeps as many. */
const MAX_JOBS = 10;
const FINALIZER = `${OSAC_GROUP}/finalizer`;
const ACCOUNT = 'osac';
const HUB_ACCESS = 'hub-access';

/** What the operator makes for each order. */
const companions = (place: ObjectPlace, hubNamespace: string): readonly [Companion, ...Companion[]] => {
  const namespace = clusterNamespace(place);
  const labels = { [CLUSTER_ORDER_LABEL]: place.name, 'app.kubernetes.io/name': 'fulfillment-ledger' };
  const inside = (of: ObjectType, word: string, name: string, more: JsonObject = {}): Companion => ({
    of,
    word,
    name,
    namespace,
    object: { apiVersion: apiVersionOf(of), kind: of.kind, metadata: { name, namespace, labels }, ...more },
  });
  const binding = (name: string, role: string, account: string, from: string): Companion =>
    inside(ROLE_BINDING, 'role binding', name, {
      roleRef: { apiGroup: ROLE_BINDING.group, kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace: from }],
    });
  return [
    {
      of: NAMESPACE,
      word: 'namespace',
      name: namespace,
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
    },
    inside(SERVICE_ACCOUNT, 'service account', ACCOUNT),
    binding(ACCOUNT, 'admin', ACCOUNT, namespace),
    binding(HUB_ACCESS, hubAccessRole(hubNamespace), HUB_ACCESS, hubNamespace),
  ];
};

/** What a controller writes into a ClusterOrder's status. */
export type ClusterOrderStatus = {
  readonly phase: Phase;
  readonly conditions: readonly Condition[];
  readonly desiredConfigVersion: string;
  readonly nodeRequests?: ClusterOrderSpec['nodeRequests'];
  readonly jobs?: readonly Job[];
};

const wholeSeconds = (time: string): string => time.replace(/\.\d+Z$/, 'Z');

const statusObject = (
  place: ObjectPlace,
  { phase, desiredConfigVersion, nodeRequests, jobs }: ClusterOrderStatus,
): JsonObject => ({
  phase,
  desiredConfigVersion,
  clusterReference: {
    namespace: clusterNamespace(place),
    hostedClusterName: place.name,
    serviceAccountName: ACCOUNT,
    roleBindingName: ACCOUNT,
  },
  ...defined({
    nodeRequests: nodeRequests?.map((one) => ({ ...one })),
    provisioningJobs: jobs?.slice(-MAX_JOBS).map(({ jobId: jobID, timestamp, ...job }) => ({
      jobID,
      ...job,
      timestamp: wholeSeconds(timestamp),
    })),
  }),
});

const NOT_JUDGED = ['name', 'namespace', 'id', 'generation', 'creationTimestamp', 'annotations'] as const;
const withoutPlaces = withoutPaths(['namespace', 'kubeconfigSecret', 'passwordSecret']);

/** The order and its HostedCluster, as the workflow judges them. The pull secret stays here; its hash goes along. */
const observation = (
  shown: ObservedClusterOrder | undefined,
  hosted: ObservedHostedCluster | null | undefined,
): ClusterObservation => {
  const beside = defined({ hostedCluster: hosted && withoutPlaces<ObservedHosted>(hosted) });
  // Of an order that is gone only what it left behind is news.
  if (shown === undefined) return { order: null, ...(hosted === null ? {} : beside) };
  const { clusterReference: _reference, ...order } = without(shown, ...NOT_JUDGED);
  const spec = without(shown.spec, 'pullSecret');
  return { order: { ...order, spec }, specVersion: configVersion(shown.spec), ...beside };
};

/**
 * Where the order says that its HostedCluster is; otherwise where it is by convention: an operator that is short of
 * hosts
 * never says it, and where we are the controller nobody does (OSAC's operator).
 */
export const hostedPlace = (
  place: ObjectPlace,
  shown: Pick<ObservedClusterOrder, 'clusterReference'> | undefined,
): ObjectPlace => ({
  namespace: shown?.clusterReference?.namespace || clusterNamespace(place),
  name: shown?.clusterReference?.hostedClusterName || place.name,
});

const TIME = '2026-01-01T00:00:00Z';

export const CLUSTER_ORDER: OwnedObject<ClusterOrderSpec, ObservedClusterOrder> = {
  ...ORDER,
  required: true,
  idLabel: CLUSTER_ORDER_UUID_LABEL,
  backLabel: CLUSTER_ORDER_LABEL,
  owner: 'cluster',
  called: 'orders',
  nameOf: orderName,
  placeFits: ({ namespace, name }) => namespaceFits(namespace, name),
  spec: written,
  secretFields: ['pullSecret'],
  shown: observedClusterOrder,
  rights: [
    { verbs: OWNED_VERBS, within: 'orders', setup: 'hub-access' },
    { verbs: OWNED_VERBS, within: 'anywhere', setup: 'tenant-namespaces' },
    { verbs: ['get', 'patch'], within: 'orders', part: 'status', setup: 'controller-ledger' },
  ],
  drift: driftOf,
  relaunch: (stored, wanted) => {
    const templateParameters = relaunchParameters(stored, wanted.templateParameters);
    return templateParameters === undefined ? undefined : { templateParameters };
  },
  observed: {
    beside: HOSTED_CLUSTER,
    besideAt: (place, shown) => hostedPlace(place, shown as ObservedClusterOrder | undefined),
    observation: (shown, beside) =>
      observation(
        shown as ObservedClusterOrder | undefined,
        beside as ObservedHostedCluster | null | undefined,
      ),
  },
  controlled: {
    finalizer: FINALIZER,
    companions,
    before: { of: HOSTED_CLUSTER, at: (place) => hostedPlace(place, undefined) },
    stated: ({ spec }: ObservedClusterOrder) => ({ desiredConfigVersion: configVersion(spec) }),
    status: statusObject,
  },
  sample: {
    spec: {
      templateID: 'fulfillment_ledger.check',
      templateParameters: '{}',
      nodeRequests: [{ resourceClass: 'check', numberOfNodes: 1 }],
      pullSecret: '{}',
      sshPublicKey: 'ssh-ed25519 AAAA check',
      releaseImage: 'registry.invalid/check:1',
      network: { podCIDR: '10.132.0.0/14', serviceCIDR: '172.31.0.0/16' },
    },
    status: {
      phase: 'Progressing',
      conditions: [
        { type: 'Accepted', status: 'True', reason: 'Check', message: '', lastTransitionTime: TIME },
      ],
      desiredConfigVersion: '0123456789abcdef',
      clusterReference: {
        namespace: 'a',
        hostedClusterName: 'b',
        serviceAccountName: 'c',
        roleBindingName: 'd',
      },
      provisioningJobs: [{ jobID: '1', type: 'provision', state: 'Running', timestamp: TIME }],
    },
  },
};

export const CLUSTER_HUB_OBJECTS: readonly HubObject[] = [CLUSTER_ORDER, HOSTED_CLUSTER, NODE_POOL];
