import { configVersion } from './config-version.ts';
import { AUTOMATION_FAILED } from './failure-texts.ts';
import { clusterConditions, JOB_STATUS_UNKNOWN, type ObservedConditions } from './observed-conditions.ts';
import { factsOf, latestJob, type ObservedFacts } from './observed-facts.ts';
import type {
  ClusterObservation,
  DesiredCluster,
  HubWork,
  ObservedHosted,
  ObservedJob,
  ObservedOrder,
  StoppedChange,
} from './observed.ts';
import type { Endpoints } from './state.ts';
import { defined } from '../json-tools.ts';

export { configVersion, latestJob };

export type Verdict =
  | { readonly kind: 'progressing' | 'deleting' | 'not-accepted' | 'hosted-cluster-lost' }
  /** `stopped`: it runs as before, since its present change failed or waits. */
  | { readonly kind: 'ready'; readonly stopped?: StoppedChange }
  | ({ readonly kind: 'degraded'; readonly stopped?: StoppedChange } & Omit<Failure, 'detail'>)
  | ({ readonly kind: 'failed' } & Failure);

type Failure = Omit<Extract<StoppedChange, { why: 'failed' }>, 'why'>;

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
      readonly controlPlane?: Endpoints;
      /** The hub could not ask its automation about its job: how that stands, nobody knows. */
      readonly jobUnknown?: true;
      /** Ready nodes by node set; empty when the hub does not show them. */
      readonly ready: { readonly [nodeSet: string]: number };
      readonly verdict: Verdict;
      /** Where we run the automation: what is to be seen of it. */
      readonly work?: HubWork;
      /** Further objects with the cluster's label; absent: nobody has looked for any. */
      readonly duplicates?: readonly string[];
    };

/** What of a verdict has failed. */
export const failureIn = (verdict: Verdict): Failure | undefined => {
  const said = verdict.kind === 'failed' ? verdict : 'stopped' in verdict ? verdict.stopped : undefined;
  if (said === undefined || ('why' in said && said.why === 'waits')) return undefined;
  const { reason, message, detail } = said;
  return defined({ reason, message, detail });
};

/** Pure: an observation and what we want, to what it means. Holds no times, so that equal means unchanged. */
export const assess = (observation: ClusterObservation, desired: DesiredCluster): Assessment => {
  const { order, hostedCluster, duplicates } = observation;
  if (order === null) {
    return defined({ found: false, left: hostedCluster?.name });
  }
  const facts = factsOf(observation, order, desired);
  const conditions = clusterConditions(facts, desired);
  const controlPlane = controlPlaneOf(order, hostedCluster ?? undefined);
  return {
    found: true,
    uid: order.uid,
    deleting: order.deletionTimestamp !== undefined,
    waitingFor: waitingFor(order, hostedCluster),
    accepted: facts.order.phase !== undefined,
    specMatches: facts.specMatches,
    conditions,
    ...(facts.jobUnknown ? { jobUnknown: true } : {}),
    ...(controlPlane === undefined ? {} : { controlPlane }),
    ready: facts.ready,
    verdict: verdictOf(facts, conditions, desired),
    ...defined({ work: facts.work, duplicates }),
  };
};

const verdictOf = (
  facts: ObservedFacts,
  conditions: ObservedConditions,
  desired: DesiredCluster,
): Verdict => {
  const { order, job } = facts;
  if (order.deletionTimestamp !== undefined) return { kind: 'deleting' };
  if (facts.lost) return { kind: 'hosted-cluster-lost' };
  if (order.phase === undefined) return { kind: 'not-accepted' };
  const specDone = facts.specMatches && facts.specSeen && facts.jobDone;
  const { ClusterAvailable: available, NodesReady: nodes } = conditions;
  const runs = available.status === 'True' && facts.missingHosts === undefined;
  const done = runs && nodes.status !== 'False' && specDone;
  // Of a job without a record the hub still shows what it has done.
  if (done && job?.vanished === true) return { kind: 'ready' };
  const failure = desired.retrying === true ? undefined : failureOf(facts);
  const stopped = desired.built === undefined ? undefined : stoppedChange(facts, failure, specDone, desired);
  if (failure !== undefined && desired.built === undefined) return { kind: 'failed', ...failure };
  if (done) return { kind: 'ready' };
  if (stopped !== undefined) {
    return runs && !facts.builtNodesShort
      ? { kind: 'ready', stopped }
      : { kind: 'degraded', ...causeOf(runs ? nodes : available), stopped };
  }
  if (!desired.wasReady || !specDone) return { kind: 'progressing' };
  // More nodes than ordered degrade nothing.
  if (runs && !facts.nodesShort) return { kind: 'ready' };
  return { kind: 'degraded', ...causeOf(runs ? nodes : available) };
};

const causeOf = ({ reason, message }: ObservedConditions['NodesReady']) => ({ reason, message });

/** A cluster that was built does not fail with a change of it. What failed for another spec says nothing of this one. */
const stoppedChange = (
  facts: ObservedFacts,
  failure: Failure | undefined,
  specDone: boolean,
  { stopped }: DesiredCluster,
): StoppedChange | undefined => {
  if (failure !== undefined && facts.jobCurrent) return { why: 'failed', ...failure };
  // The hub tries again: it has failed until a newer job succeeds.
  const isOver = specDone && stopped?.why === 'failed' && JOB_REASONS.includes(stopped.reason);
  return isOver ? undefined : stopped;
};

/** Failures that a newer job ends. */
export const JOB_REASONS: readonly string[] = ['JobFailed', 'JobCanceled', JOB_STATUS_UNKNOWN];

const failureOf = ({ order, job, failedJob }: ObservedFacts): Failure | undefined => {
  if (failedJob !== undefined) return jobFailure(failedJob);
  const isRetrying = job !== undefined && job.state !== 'Succeeded';
  return order.phase === 'Failed' && !isRetrying ? failedPhase(order) : undefined;
};

const jobFailure = ({ jobId, state, message: words = '' }: ObservedJob): Failure =>
  state === 'Failed' || state === 'Canceled'
    ? {
        reason: `Job${state}`,
        message: AUTOMATION_FAILED,
        detail: `job ${jobId} ended as ${state}${words === '' ? '' : `: ${words}`}`,
      }
    : defined({
        reason: JOB_STATUS_UNKNOWN,
        message: `the hub cannot tell the state of its job ${jobId}`,
        detail: words || undefined,
      });

const failedPhase = (order: ObservedOrder): Failure => {
  const progressing = order.conditions.find(({ type }) => type === 'Progressing');
  const { reason = 'ProvisioningFailed', message = '' } = progressing ?? {};
  return defined({ reason, message: 'the hub reports the order as failed', detail: message || undefined });
};

/** URLs as the operator's feedback builds them, once the API answers. */
const controlPlaneOf = (order: ObservedOrder, hosted: ObservedHosted | undefined): Endpoints | undefined => {
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
