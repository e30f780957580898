import { own } from '../../json-tools.ts';
import { nodeRequestsOf } from '../cluster-order-manifest.ts';
import { isLeaving, type AutomationPurpose, type ConditionName, type RunningJob } from '../state.ts';
import type { ClusterOrderStatus } from '../hub-objects.ts';
import { onItsHub, type Dispatched, type OrderRun } from './run.ts';

/**
 * What stands in the status of a ClusterOrder whose controller we are (OSAC's operator): the words of the
 * operator for what we have seen. Holds no times, so that equal means that nothing is to be written.
 */
export type WantedStatus = Pick<ClusterOrderStatus, 'phase' | 'nodeRequests'> & {
  readonly conditions: readonly ReturnType<typeof shown>[];
  readonly jobs?: readonly ReturnType<typeof jobEntry>[];
};

/** Undefined until something was seen, and when there is no order to write to. */
export const wantedStatus = (run: OrderRun): WantedStatus | undefined => {
  const state = onItsHub(run);
  if (state === undefined || !isShown(state)) return undefined;
  const nodeRequests = countedNodes(state);
  const jobs = (['provision', 'deprovision'] as const).flatMap((type) => {
    const { job } = state.asked[type] ?? {};
    return job === undefined ? [] : [jobEntry(type, job)];
  });
  return {
    phase: phaseOf(state),
    conditions: conditionsOf(state),
    ...(nodeRequests.length === 0 ? {} : { nodeRequests }),
    ...(jobs.length === 0 ? {} : { jobs }),
  };
};

/** A look has found it, and none has missed it since. */
const isShown = (state: Dispatched): boolean => {
  const { seen, conditions, lost } = state;
  if (seen.missing === 'cluster-order' || seen.left !== undefined || lost === 'cluster-order') return false;
  return isLeaving(state) ? seen.deleting !== undefined : Object.keys(conditions).length > 0;
};

/** One text for one status; empty: none. */
export const statusText = (run: OrderRun): string => {
  const status = wantedStatus(run);
  return status === undefined ? '' : JSON.stringify(status);
};

const phaseOf = ({ seen, failure, ready }: Dispatched): WantedStatus['phase'] => {
  if (seen.deleting === true) return 'Deleting';
  if (failure !== undefined) return 'Failed';
  return ready ? 'Ready' : 'Progressing';
};

const conditionsOf = (state: Dispatched): WantedStatus['conditions'] => {
  const { failure, ready: isReady, conditions, endpoints } = state;
  const observed = (type: string, name: ConditionName) => {
    const { status, reason, message } = conditions[name] ?? NOT_SEEN;
    return shown(type, status === 'True', reasonWord(reason), message);
  };
  const isDeleting = isLeaving(state);
  const isUp = endpoints !== undefined;
  const goesOn = isReady ? 'AsExpected' : 'Progressing';
  const progress = failure === undefined ? goesOn : 'ProvisioningFailed';
  return [
    shown('Accepted', true, 'Initialized'),
    shown('Deleting', isDeleting, isDeleting ? 'Deleting' : 'Initialized'),
    shown('Progressing', !isReady && failure === undefined, progress, failure?.message),
    shown('NamespaceCreated', true, 'AsExpected'),
    observed('ControlPlaneCreated', 'InfrastructureReady'),
    shown('ControlPlaneAvailable', isUp, isUp ? 'AsExpected' : 'Initialized'),
    observed('ClusterAvailable', 'ClusterAvailable'),
  ];
};

const shown = (type: string, isTrue: boolean, reason: string, message = '') => ({
  type,
  status: isTrue ? 'True' : 'False',
  reason,
  message,
});

const NOT_SEEN = { status: 'Unknown', reason: 'Initialized', message: '' } as const;

/** The CRD takes words of letters, digits, `_`, `,` and `:` only. */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?$/;
const reasonWord = (reason: string): string => (REASON.test(reason) ? reason : 'Observed');

const countedNodes = ({ readyNodes, nodeSets }: Dispatched): ReturnType<typeof nodeRequestsOf> => {
  const counted = Object.entries(nodeSets).flatMap(([name, set]) => {
    const size = own(readyNodes, name);
    return size === undefined ? [] : [[name, { ...set, size }] as const];
  });
  return nodeRequestsOf(Object.fromEntries(counted));
};

const jobEntry = (
  type: AutomationPurpose,
  { id: jobId, state, createdAt: timestamp }: Pick<RunningJob, 'id' | 'state' | 'createdAt'>,
) => ({ jobId, type, state, timestamp });
