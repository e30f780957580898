import { fnv1a64, hex64 } from '../hash.ts';
import { byKey, own, sameJson } from '../json-tools.ts';
import type {
  ClusterObservation,
  ClusterOrderSpecShape,
  DesiredCluster,
  ObservedFacts,
  ObservedHosted,
  ObservedJob,
  ObservedOrder,
} from './observed.ts';
import { clusterConditions, type ObservedConditions } from './observed-conditions.ts';

export type Verdict =
  | { readonly kind: 'progressing' | 'ready' | 'deleting' | 'not-accepted' | 'hosted-cluster-lost' }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      /** For tenants. */
      readonly message: string;
      /** In the hub's own words: they may name anything of it. */
      readonly detail?: string;
    }
  | { readonly kind: 'degraded'; readonly reason: string; readonly message: string };

export type Assessment =
  | { readonly found: false }
  | {
      readonly found: true;
      readonly uid: string;
      readonly deleting: boolean;
      /** While deleting: what is left to do on the hub. */
      readonly waitingFor: readonly string[];
      /** The hub's controller has taken the order up: it shows a phase. */
      readonly accepted: boolean;
      /** The spec stored on the hub is ours (the pull secret aside). */
      readonly specMatches: boolean;
      readonly conditions: ObservedConditions;
      readonly controlPlane?: {
        readonly apiUrl: string;
        readonly consoleUrl: string;
        readonly apiEndpoint: string;
        readonly ingressEndpoint: string;
      };
      /** Ready nodes by node set; empty when the hub does not show them. */
      readonly ready: { readonly [nodeSet: string]: number };
      readonly verdict: Verdict;
    };

/** Pure: an observation and what we want, to what it means. Holds no times, so that equal means unchanged. */
export const assess = (observation: ClusterObservation, desired: DesiredCluster): Assessment => {
  const { order } = observation;
  if (order === null) return { found: false };
  const facts = factsOf(observation, order, desired);
  const conditions = clusterConditions(facts);
  const controlPlane = controlPlaneOf(order, observation.hostedCluster ?? undefined);
  return {
    found: true,
    uid: order.uid,
    deleting: order.deletionTimestamp !== undefined,
    waitingFor: waitingFor(order),
    accepted: order.phase !== undefined,
    specMatches: facts.specMatches,
    conditions,
    ...(controlPlane === undefined ? {} : { controlPlane }),
    ready: facts.ready,
    verdict: verdictOf(facts, conditions, desired),
  };
};

const factsOf = (
  observation: ClusterObservation,
  order: ObservedOrder,
  desired: DesiredCluster,
): ObservedFacts => {
  const version = observation.specVersion ?? configVersion(order.spec);
  const job = latestJob(order.jobs, 'provision');
  const pools = observation.hostedCluster?.nodePools;
  const ready = pools === undefined ? {} : readyNodes(pools, desired.nodeSets);
  const sets = Object.entries(desired.nodeSets);
  return {
    order,
    hosted: observation.hostedCluster,
    specMatches: sameSpec(order.spec, desired.spec),
    specSeen: desired.controller === 'ledger' || order.desiredConfigVersion === version,
    job,
    jobFailed: job !== undefined && isFailedJob(job),
    jobDone: job === undefined || (job.state === 'Succeeded' && (job.configVersion ?? version) === version),
    ready,
    nodesReached:
      pools === undefined ? undefined : sets.every(([name, { size }]) => (own(ready, name) ?? 0) >= size),
  };
};

const verdictOf = (
  facts: ObservedFacts,
  conditions: ObservedConditions,
  desired: DesiredCluster,
): Verdict => {
  const { order, hosted, job } = facts;
  if (order.deletionTimestamp !== undefined) return { kind: 'deleting' };
  if (desired.wasAvailable && hosted === null) return { kind: 'hosted-cluster-lost' };
  if (order.phase === undefined) return { kind: 'not-accepted' };
  if (job !== undefined && facts.jobFailed) return failedJob(job);
  const retrying = job !== undefined && job.state !== 'Succeeded';
  if (order.phase === 'Failed' && !retrying) return failedPhase(order);
  const specDone = facts.specMatches && facts.specSeen && facts.jobDone;
  const nodes = conditions.NodesReady;
  const healthy = conditions.ClusterAvailable.status === 'True' && nodes.status !== 'False';
  if (healthy && specDone) return { kind: 'ready' };
  if (!desired.wasReady || !specDone) return { kind: 'progressing' };
  const cause = conditions.ClusterAvailable.status === 'True' ? nodes : conditions.ClusterAvailable;
  return { kind: 'degraded', reason: cause.reason, message: cause.message };
};

/** FAILED comes from the latest job; it clears when a newer one appears (operator-run.md §4.4). */
const isFailedJob = ({ state, message }: ObservedJob): boolean =>
  state === 'Failed' || state === 'Canceled' || (message ?? '').startsWith('Failed to get job status');

const failedJob = (job: ObservedJob): Verdict => {
  if (job.state === 'Failed' || job.state === 'Canceled') {
    const message = `job ${job.jobId} of the hub ended as ${job.state}`;
    return { kind: 'failed', reason: `Job${job.state}`, message, ...detailOf(job.message) };
  }
  // The operator's own text holds the address of its automation service; a tenant reads this one.
  return {
    kind: 'failed',
    reason: 'JobStatusUnknown',
    message: `the hub cannot read the state of its job ${job.jobId}`,
    ...detailOf(job.message),
  };
};

const failedPhase = (order: ObservedOrder): Verdict => {
  const progressing = order.conditions.find(({ type }) => type === 'Progressing');
  return {
    kind: 'failed',
    reason: progressing?.reason ?? 'ProvisioningFailed',
    message: 'the hub reports the order as failed',
    ...detailOf(progressing?.message),
  };
};

const detailOf = (words: string | undefined): { detail?: string } =>
  words === undefined || words === '' ? {} : { detail: words };

/** By time of launch; of two launched at the same time the one listed later. */
export const latestJob = (jobs: readonly ObservedJob[], type: string): ObservedJob | undefined =>
  jobs
    .filter((job) => job.type === type)
    .reduce<ObservedJob | undefined>(
      (latest, job) => (latest === undefined || job.timestamp >= latest.timestamp ? job : latest),
      undefined,
    );

/** Ready nodes of a class go to its node sets in the order of their names, each up to its size. */
const readyNodes = (
  pools: NonNullable<ObservedHosted['nodePools']>,
  nodeSets: DesiredCluster['nodeSets'],
): { [nodeSet: string]: number } => {
  const left = new Map<string, number>();
  for (const { resourceClass, ready } of pools)
    left.set(resourceClass, (left.get(resourceClass) ?? 0) + ready);
  const counts = new Map<string, number>();
  for (const [name, { hostType, size }] of Object.entries(nodeSets).sort(byKey)) {
    const available = left.get(hostType.id) ?? 0;
    counts.set(name, Math.min(size, available));
    left.set(hostType.id, available - Math.min(size, available));
  }
  return Object.fromEntries(counts);
};

/** URLs as the operator's feedback builds them (management-cluster.md §2.2), once the API answers. */
const controlPlaneOf = (
  order: ObservedOrder,
  hosted: ObservedHosted | undefined,
): { apiUrl: string; consoleUrl: string; apiEndpoint: string; ingressEndpoint: string } | undefined => {
  const available = hosted?.conditions.some(({ type, status }) => type === 'Available' && status === 'True');
  if (hosted === undefined || available !== true) return undefined;
  const { host = '', port = 0 } = hosted.controlPlaneEndpoint ?? {};
  const domain = hosted.baseDomain ?? '';
  return {
    apiUrl: host === '' || port === 0 ? '' : `https://${host}:${port}`,
    consoleUrl: domain === '' ? '' : `https://console-openshift-console.apps.${hosted.name}.${domain}`,
    apiEndpoint: order.apiEndpoint ?? '',
    ingressEndpoint: order.ingressEndpoint ?? '',
  };
};

const waitingFor = (order: ObservedOrder): readonly string[] => {
  if (order.deletionTimestamp === undefined) return [];
  const job = latestJob(order.jobs, 'deprovision');
  const jobs =
    job === undefined || job.state === 'Succeeded'
      ? []
      : [`job ${job.jobId} ${job.state}${job.message === undefined ? '' : `: ${job.message}`}`];
  return [...jobs, ...order.finalizers.map((finalizer) => `finalizer ${finalizer}`)];
};

/** Equal as far as we can know: the pull secret's value is not ours to compare. */
const sameSpec = (stored: ClusterOrderSpecShape, wanted: ClusterOrderSpecShape): boolean =>
  sameJson(comparable(stored), comparable(wanted));

const comparable = (spec: ClusterOrderSpecShape): object => ({
  templateID: spec.templateID,
  templateParameters: spec.templateParameters,
  nodeRequests: (spec.nodeRequests as typeof spec.nodeRequests | undefined) ?? [],
  sshPublicKey: spec.sshPublicKey ?? '',
  releaseImage: spec.releaseImage ?? '',
  podCIDR: spec.network?.podCIDR ?? '',
  serviceCIDR: spec.network?.serviceCIDR ?? '',
});

/**
 * The operator's `desiredConfigVersion`: FNV-1a 64 of the spec as compact Go JSON, pull secret included
 * (operator-run.md §3). Key order and escapes are part of it.
 */
export const configVersion = (spec: ClusterOrderSpecShape): string => {
  const network = filled({ podCIDR: spec.network?.podCIDR, serviceCIDR: spec.network?.serviceCIDR });
  const requests = (spec.nodeRequests as typeof spec.nodeRequests | undefined) ?? [];
  const text = JSON.stringify({
    ...filled({ templateID: spec.templateID, templateParameters: spec.templateParameters }),
    ...(requests.length === 0
      ? {}
      : {
          nodeRequests: requests.map(({ resourceClass, numberOfNodes }) => ({
            resourceClass,
            numberOfNodes,
          })),
        }),
    ...filled({
      pullSecret: spec.pullSecret,
      sshPublicKey: spec.sshPublicKey,
      releaseImage: spec.releaseImage,
    }),
    ...(Object.keys(network).length === 0 ? {} : { network }),
  });
  return hex64(fnv1a64(text.replaceAll(/[<>&\u2028\u2029]/g, goEscape)));
};

const goEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

const filled = (values: { [key: string]: string | undefined }): { [key: string]: string } =>
  Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => (entry[1] ?? '') !== ''),
  );
