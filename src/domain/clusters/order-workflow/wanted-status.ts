import { byKey } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { ConditionName } from '../events.ts';
import type { Assessment } from '../observation.ts';
import type { OpenRun, RunningJob } from './run.ts';
import { asJson } from './as-json.ts';

/**
 * What stands in the status of a ClusterOrder whose controller we are (management-cluster.md §1.1): the words of the
 * operator for what we have seen. Holds no times, so that equal means that nothing is to be written.
 */
export type WantedStatus = {
  readonly phase: 'Progressing' | 'Failed' | 'Ready' | 'Deleting';
  readonly conditions: readonly {
    readonly type: string;
    readonly status: 'True' | 'False' | 'Unknown';
    readonly reason: string;
    readonly message: string;
  }[];
  readonly nodeRequests?: readonly { readonly resourceClass: string; readonly numberOfNodes: number }[];
  readonly jobs?: readonly {
    readonly jobId: string;
    readonly type: 'provision' | 'deprovision';
    readonly state: string;
    readonly timestamp: string;
    readonly message?: string;
  }[];
};

type Found = Extract<Assessment, { found: true }>;

/** Undefined until something was seen, and when there is no order to write to. */
export const wantedStatus = (run: OpenRun): WantedStatus | undefined => {
  const assessment = run.observation?.assessment;
  if (assessment?.found !== true) return undefined;
  const nodes = countedNodes(run, assessment);
  const jobs = [
    ...jobEntry('provision', run.asked.provision?.job),
    ...jobEntry('deprovision', run.asked.deprovision?.job),
  ];
  return {
    phase: phaseOf(assessment),
    conditions: conditionsOf(run, assessment),
    ...(nodes.length === 0 ? {} : { nodeRequests: nodes }),
    ...(jobs.length === 0 ? {} : { jobs }),
  };
};

/** One text for one status; empty: none. */
export const statusText = (run: OpenRun): string => {
  const status = wantedStatus(run);
  return status === undefined ? '' : JSON.stringify(status);
};

export const statusJson = (status: WantedStatus): JsonObject => asJson(status);

const phaseOf = ({ verdict, deleting }: Found): WantedStatus['phase'] => {
  if (deleting) return 'Deleting';
  if (verdict.kind === 'failed') return 'Failed';
  return verdict.kind === 'ready' || verdict.kind === 'degraded' ? 'Ready' : 'Progressing';
};

const conditionsOf = (
  run: OpenRun,
  { verdict, conditions, controlPlane }: Found,
): WantedStatus['conditions'] => {
  const shown = (type: string, isTrue: boolean, reason: string, message = '') => ({
    type,
    status: isTrue ? ('True' as const) : ('False' as const),
    reason,
    message,
  });
  const observed = (type: string, name: ConditionName) => {
    const { status, reason, message } = conditions[name];
    return shown(type, status === 'True', reasonWord(reason), message);
  };
  const isReady = verdict.kind === 'ready' || verdict.kind === 'degraded';
  const failed = verdict.kind === 'failed' ? verdict : undefined;
  return [
    shown('Accepted', true, 'Initialized'),
    shown('Deleting', run.deletion !== undefined, run.deletion === undefined ? 'Initialized' : 'Deleting'),
    shown(
      'Progressing',
      !isReady && failed === undefined,
      failed === undefined ? (isReady ? 'AsExpected' : 'Progressing') : 'ProvisioningFailed',
      failed?.message,
    ),
    shown('NamespaceCreated', true, 'AsExpected'),
    observed('ControlPlaneCreated', 'InfrastructureReady'),
    shown(
      'ControlPlaneAvailable',
      controlPlane !== undefined,
      controlPlane === undefined ? 'Initialized' : 'AsExpected',
    ),
    observed('ClusterAvailable', 'ClusterAvailable'),
  ];
};

/** The CRD takes words of letters, digits, `_`, `,` and `:` only (§1.1). */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?$/;
const reasonWord = (reason: string): string => (REASON.test(reason) ? reason : 'Observed');

const countedNodes = (run: OpenRun, { ready }: Found): NonNullable<WantedStatus['nodeRequests']> => {
  const counts = new Map<string, number>();
  for (const [name, { hostType }] of Object.entries(run.spec.nodeSets).sort(byKey)) {
    const count = Object.hasOwn(ready, name) ? ready[name] : undefined;
    if (count !== undefined) counts.set(hostType.id, (counts.get(hostType.id) ?? 0) + count);
  }
  return [...counts].map(([resourceClass, numberOfNodes]) => ({ resourceClass, numberOfNodes }));
};

const jobEntry = (
  type: 'provision' | 'deprovision',
  job: RunningJob | undefined,
): NonNullable<WantedStatus['jobs']> =>
  job === undefined ? [] : [{ jobId: job.id, type, state: job.state, timestamp: job.createdAt }];
