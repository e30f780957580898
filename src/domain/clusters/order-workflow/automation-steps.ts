import { isUnresolved } from '../../process/effects.ts';
import type { AutomationPurpose } from '../events.ts';
import {
  firstRequest,
  isRunning,
  isUnsettled,
  repeatedRequest,
  wasAsked,
  type Request,
} from './automation.ts';
import { automationMode, isController, provisionWording, type OpenRun, type RunningJob } from './run.ts';
import { READ_BUSY_MS, type Step, type Work } from './step.ts';
import { statusJson, statusText, wantedStatus } from './wanted-status.ts';
import { asJson } from './as-json.ts';
import { cluster, effect, onAutomation, onHub, orderRef, settled, triggerCall } from './work.ts';

/** What we do on hubs whose automation we run, or whose orders nobody but us reconciles (design §6). */
const KIND_OF: { readonly [Purpose in AutomationPurpose]: 'trigger' | 'undo' } = {
  provision: 'trigger',
  deprovision: 'undo',
};

const request = (run: OpenRun, purpose: AutomationPurpose, wanted: Request | undefined): Work | undefined => {
  const kind = KIND_OF[purpose];
  const { wording = '', repeats = 0, notBefore, again, since, cleaning } = wanted ?? {};
  const call = triggerCall(run, purpose, {
    ...(again === undefined ? {} : { again }),
    ...(since === undefined ? {} : { since }),
    ...(cleaning === undefined ? {} : { cleaning }),
  });
  // An earlier request that may have happened is settled under its own id, whatever is wanted now.
  if (isUnresolved(run.effects[kind])) return settled(run, kind, '', call);
  if (wanted === undefined) return undefined;
  return notBefore === undefined
    ? effect(kind, `${wording}.${repeats}`, call)
    : { ...effect(kind, `${wording}.${repeats}`, call), notBefore };
};

const isAutomated = (run: OpenRun): boolean => automationMode(run) !== undefined;
const isDone = ({ effects }: OpenRun, kind: string, instance: string): boolean =>
  effects[kind]?.status === 'done' && effects[kind].id === `${kind}:${instance}`;
const prepareInstance = (run: OpenRun): string => `${run.cycle}.${run.applied?.uid ?? ''}`;

/** Between `apply` and `accepted`. */
export const PREPARING: readonly Step[] = [
  {
    name: 'prepare',
    phase: 'forward',
    after: ['apply'],
    needed: isController,
    done: (run) => isDone(run, 'prepare', prepareInstance(run)),
    work: (run) =>
      settled(run, 'prepare', prepareInstance(run), {
        ...onHub(run),
        operation: 'prepareOrder',
        args: orderRef(run),
      }),
  },
  {
    name: 'trigger',
    phase: 'forward',
    after: ['apply', 'prepare'],
    needed: isAutomated,
    done: (run) => run.asked.provision?.wording === provisionWording(run),
    work: (run) => request(run, 'provision', firstRequest(run)),
  },
];

/** The job that is looked at: a provisioning one first, since it must end before anything is torn down. */
export const watchedJob = (
  run: OpenRun,
): { readonly purpose: AutomationPurpose; readonly job: RunningJob } | undefined => {
  const { provision, deprovision } = run.asked;
  if (isUnsettled(provision?.job) && deprovision === undefined)
    return { purpose: 'provision', job: provision.job };
  return isUnsettled(deprovision?.job) ? { purpose: 'deprovision', job: deprovision.job } : undefined;
};

const watching = (phase: 'live' | 'deletion'): Step => ({
  name: `watch-job-${phase}`,
  phase,
  after: [],
  needed: (run) => automationMode(run) === 'aap' && watchedJob(run) !== undefined,
  done: (run) => run.absenceRecorded,
  work: (run) => {
    const watched = watchedJob(run);
    if (watched === undefined) return undefined;
    const { id, workflow } = watched.job;
    return {
      kind: 'read',
      effect: 'job',
      everyMs: READ_BUSY_MS,
      ...onAutomation(run, 'job', { job: { id, workflow } }),
    };
  },
});

const telling = (phase: 'live' | 'deletion'): Step => ({
  name: `tell-${phase}`,
  phase,
  after: [],
  needed: ({ news }) => news.length > 0,
  done: () => false,
  work: ({ news: [first] }) => (first === undefined ? undefined : cluster(first.number, first.report)),
});

/** Written only when it changes; nothing is read back from it. */
const writing = (phase: 'live' | 'deletion'): Step => ({
  name: `write-status-${phase}`,
  phase,
  after: phase === 'deletion' ? ['delete'] : [],
  needed: (run) => isController(run) && wantedStatus(run) !== undefined && !run.absenceRecorded,
  done: (run) => run.statusWritten === statusText(run),
  work: (run) => {
    const status = wantedStatus(run);
    return status === undefined
      ? undefined
      : settled(run, 'status', run.statusWrites, {
          ...onHub(run),
          operation: 'writeOrderStatus',
          args: { ...orderRef(run), status: statusJson(status), at: run.observation?.at ?? '' },
        });
  },
});

export const AUTOMATION_LIVE: readonly Step[] = [
  telling('live'),
  {
    name: 'trigger-again',
    phase: 'forward',
    after: ['trigger'],
    needed: isAutomated,
    done: (run) => !isUnresolved(run.effects['trigger']) && repeatedRequest(run, 'provision') === undefined,
    work: (run) => request(run, 'provision', repeatedRequest(run, 'provision')),
  },
  watching('live'),
  writing('live'),
];

const found = (run: OpenRun) => {
  const assessment = run.observation?.assessment;
  return assessment?.found === true ? assessment : undefined;
};

/** Nothing of it is left that a playbook could tear down, or nothing was ever asked for. */
const needsNoTeardown = (run: OpenRun): boolean =>
  !wasAsked(run) || found(run)?.work === 'finished' || run.observation?.assessment.found === false;

const isAskedToUndo = (run: OpenRun): boolean => run.asked.deprovision !== undefined;

/** As the operator does: its own namespace and finalizer go last (management-cluster.md §4.7). */
const mayFinish = (run: OpenRun): boolean => {
  const shown = found(run);
  if (shown?.deleting !== true || isRunning(run.asked.provision?.job)) return false;
  const { deprovision } = run.asked;
  if (deprovision === undefined || automationMode(run) === 'eda') return shown.work === 'finished';
  const { state, vanished } = deprovision.job ?? {};
  const hasEnded = state === 'Succeeded' || vanished === true;
  return hasEnded && (shown.work === 'finished' || shown.work === 'cleaning');
};

/** Between `settle-apply` and `confirm-absence`. */
export const UNDOING: readonly Step[] = [
  telling('deletion'),
  {
    // Instead of asking again: a look ends the doubt, and a job that is found is cancelled.
    name: 'settle-trigger',
    phase: 'deletion',
    after: [],
    needed: (run) => automationMode(run) === 'aap',
    done: (run) => !isUnresolved(run.effects['trigger']),
    work: (run) => settled(run, 'trigger', '', { ...triggerCall(run, 'provision'), operation: 'lookUp' }),
  },
  {
    name: 'cancel-job',
    phase: 'deletion',
    after: ['settle-trigger'],
    needed: (run) => isRunning(run.asked.provision?.job),
    done: (run) => isDone(run, 'cancel', run.asked.provision?.job?.id ?? ''),
    work: (run) => {
      const { id = '', workflow = false } = run.asked.provision?.job ?? {};
      return settled(run, 'cancel', id, onAutomation(run, 'cancel', { job: { id, workflow } }));
    },
  },
  {
    name: 'trigger-delete',
    phase: 'deletion',
    after: ['delete', 'settle-trigger', 'cancel-job'],
    needed: (run) => isAutomated(run) && run.dispatched,
    done: (run) => isAskedToUndo(run) || needsNoTeardown(run) || run.absenceRecorded,
    work: (run) =>
      found(run)?.deleting === true && !isRunning(run.asked.provision?.job)
        ? request(run, 'deprovision', { wording: String(run.cycle), repeats: 0 })
        : undefined,
  },
  {
    name: 'trigger-delete-again',
    phase: 'deletion',
    after: ['trigger-delete'],
    needed: isAskedToUndo,
    done: (run) =>
      run.absenceRecorded ||
      found(run)?.deleting !== true ||
      (!isUnresolved(run.effects['undo']) && repeatedRequest(run, 'deprovision') === undefined),
    work: (run) => request(run, 'deprovision', repeatedRequest(run, 'deprovision')),
  },
  watching('deletion'),
  writing('deletion'),
  {
    name: 'finish',
    phase: 'deletion',
    after: ['delete', 'settle-trigger', 'trigger-delete'],
    needed: isController,
    done: (run) =>
      run.absenceRecorded || run.effects['finish']?.status === 'done' || found(run) === undefined,
    work: (run) =>
      mayFinish(run) || isUnresolved(run.effects['finish'])
        ? settled(run, 'finish', run.cycle, {
            ...onHub(run),
            operation: 'releaseOrder',
            args: asJson(orderRef(run)),
          })
        : undefined,
  },
];
