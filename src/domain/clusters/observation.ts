import { configVersion } from './config-version.ts';
import { clusterConditions, type ObservedConditions } from './observed-conditions.ts';
import { factsOf, latestJob } from './observed-facts.ts';
import type {
  ClusterObservation,
  DesiredCluster,
  HubWork,
  ObservedFacts,
  ObservedHosted,
  ObservedJob,
  ObservedOrder,
} from './observed.ts';

export { configVersion, latestJob };

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
  | {
      readonly found: false;
      /** A HostedCluster that is there although its order is not. */
      readonly left?: string;
    }
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
      /** Where we run the automation: what is to be seen of it. */
      readonly work?: HubWork;
      /** Further objects with the cluster's label; absent: nobody has looked for any. */
      readonly duplicates?: readonly string[];
    };

/** Pure: an observation and what we want, to what it means. Holds no times, so that equal means unchanged. */
export const assess = (observation: ClusterObservation, desired: DesiredCluster): Assessment => {
  const { order, hostedCluster, duplicates } = observation;
  if (order === null) {
    return hostedCluster === undefined || hostedCluster === null
      ? { found: false }
      : { found: false, left: hostedCluster.name };
  }
  const facts = factsOf(observation, order, desired);
  const conditions = clusterConditions(facts);
  const controlPlane = controlPlaneOf(order, hostedCluster ?? undefined);
  return {
    found: true,
    uid: order.uid,
    deleting: order.deletionTimestamp !== undefined,
    waitingFor: waitingFor(order, hostedCluster),
    accepted: facts.order.phase !== undefined,
    specMatches: facts.specMatches,
    conditions,
    ...(controlPlane === undefined ? {} : { controlPlane }),
    ready: facts.ready,
    verdict: verdictOf(facts, conditions, desired),
    ...(facts.work === undefined ? {} : { work: facts.work }),
    ...(duplicates === undefined ? {} : { duplicates }),
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
  const specDone = facts.specMatches && facts.specSeen && facts.jobDone;
  const nodes = conditions.NodesReady;
  const healthy = conditions.ClusterAvailable.status === 'True' && nodes.status !== 'False';
  // Of a job without a record the hub still shows what it has done.
  if (job?.vanished === true && healthy && specDone) return { kind: 'ready' };
  if (job !== undefined && facts.jobFailed) return failedJob(job);
  const retrying = job !== undefined && job.state !== 'Succeeded';
  if (order.phase === 'Failed' && !retrying) return failedPhase(order);
  if (healthy && specDone) return { kind: 'ready' };
  if (!desired.wasReady || !specDone) return { kind: 'progressing' };
  const cause = conditions.ClusterAvailable.status === 'True' ? nodes : conditions.ClusterAvailable;
  return { kind: 'degraded', reason: cause.reason, message: cause.message };
};

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
    apiUrl: host === '' || port === 0 ? '' : `https://${urlHost(host)}:${port}`,
    consoleUrl: domain === '' ? '' : `https://console-openshift-console.apps.${hosted.name}.${domain}`,
    apiEndpoint: order.apiEndpoint ?? '',
    ingressEndpoint: order.ingressEndpoint ?? '',
  };
};

/** An IPv6 address stands in brackets in a URL. */
const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** How a HostedCluster is named among what a deletion waits for. */
export const hostedText = (name: string): string => `HostedCluster ${name}`;

const waitingFor = (order: ObservedOrder, hosted: ObservedHosted | null | undefined): readonly string[] => {
  if (order.deletionTimestamp === undefined) return [];
  const job = latestJob(order.jobs, 'deprovision');
  const jobs =
    job === undefined || job.state === 'Succeeded'
      ? []
      : [`job ${job.jobId} ${job.state}${job.message === undefined ? '' : `: ${job.message}`}`];
  return [
    ...jobs,
    ...(hosted === null || hosted === undefined ? [] : [hostedText(hosted.name)]),
    ...order.finalizers.map((finalizer) => `finalizer ${finalizer}`),
  ];
};
