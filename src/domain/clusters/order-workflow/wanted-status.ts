import { byKey } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { ConditionName } from '../events.ts';
import type { RunningJob } from '../state.ts';
import { asJson } from './as-json.ts';
import { onItsHub, type Dispatched, type OrderRun } from './run.ts';

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

/** Undefined until something was seen, and when there is no order to write to. */
export const wantedStatus = (run: OrderRun): WantedStatus | undefined => {
  const state = onItsHub(run);
  if (state === undefined || !isShown(state)) return undefined;
  const nodes = countedNodes(state);
  const jobs = [
    ...jobEntry('provision', state.asked.provision?.job),
    ...jobEntry('deprovision', state.asked.deprovision?.job),
  ];
  return {
    phase: phaseOf(state),
    conditions: conditionsOf(state),
    ...(nodes.length === 0 ? {} : { nodeRequests: nodes }),
    ...(jobs.length === 0 ? {} : { jobs }),
  };
};

/** A look has found it, and none has missed it since. */
const isShown = ({ seen, conditions, deletionRequestedAt, lost }: Dispatched): boolean => {
  if (seen.missing === 'cluster-order' || seen.left !== undefined || lost === 'cluster-order') return false;
  return deletionRequestedAt === undefined ? Object.keys(conditions).length > 0 : seen.deleting !== undefined;
};

/** One text for one status; empty: none. */
export const statusText = (run: OrderRun): string => {
  const status = wantedStatus(run);
  return status === undefined ? '' : JSON.stringify(status);
};

export const statusJson = (status: WantedStatus): JsonObject => asJson(status);

const phaseOf = ({ seen, failure, ready }: Dispatched): WantedStatus['phase'] => {
  if (seen.deleting === true) return 'Deleting';
  if (failure !== undefined) return 'Failed';
  return ready ? 'Ready' : 'Progressing';
};

const conditionsOf = ({
  deletionRequestedAt,
  failure,
  ready: isReady,
  conditions,
  endpoints,
}: Dispatched): WantedStatus['conditions'] => {
  const shown = (type: string, isTrue: boolean, reason: string, message = '') => ({
    type,
    status: isTrue ? ('True' as const) : ('False' as const),
    reason,
    message,
  });
  const observed = (type: string, name: ConditionName) => {
    const { status, reason, message } = conditions[name] ?? NOT_SEEN;
    return shown(type, status === 'True', reasonWord(reason), message);
  };
  const isDeleting = deletionRequestedAt !== undefined;
  return [
    shown('Accepted', true, 'Initialized'),
    shown('Deleting', isDeleting, isDeleting ? 'Deleting' : 'Initialized'),
    shown(
      'Progressing',
      !isReady && failure === undefined,
      failure === undefined ? (isReady ? 'AsExpected' : 'Progressing') : 'ProvisioningFailed',
      failure?.message,
    ),
    shown('NamespaceCreated', true, 'AsExpected'),
    observed('ControlPlaneCreated', 'InfrastructureReady'),
    shown(
      'ControlPlaneAvailable',
      endpoints !== undefined,
      endpoints === undefined ? 'Initialized' : 'AsExpected',
    ),
    observed('ClusterAvailable', 'ClusterAvailable'),
  ];
};

const NOT_SEEN = { status: 'Unknown', reason: 'Initialized', message: '' } as const;

/** The CRD takes words of letters, digits, `_`, `,` and `:` only (§1.1). */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?$/;
const reasonWord = (reason: string): string => (REASON.test(reason) ? reason : 'Observed');

const countedNodes = ({
  readyNodes: ready = {},
  nodeSets,
}: Dispatched): NonNullable<WantedStatus['nodeRequests']> => {
  const counts = new Map<string, number>();
  for (const [name, { hostType }] of Object.entries(nodeSets).sort(byKey)) {
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
