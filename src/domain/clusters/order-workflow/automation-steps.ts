import { defined, isObject, listAt, stringAt, textOf } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { Call, Work } from '../../process/declaration.ts';
import { instanceOfEffect, isUnresolved } from '../../process/effects.ts';
import type { ClusterCommand } from '../commands.ts';
import type { AutomationPurpose, RunningJob } from '../state.ts';
import {
  firstRequest,
  isRunning,
  isUnsettled,
  repeatedRequest,
  wasAsked,
  type Request,
} from './automation.ts';
import {
  automationMode,
  isGone,
  isController,
  isDispatched,
  onItsHub,
  provisionWording,
  type OrderRun,
} from './run.ts';
import { isLeft } from './site-run.ts';
import { statusText, wantedStatus } from './wanted-status.ts';
import {
  asJson,
  onAutomation,
  onHub,
  orderRef,
  READ_BUSY_MS,
  settling,
  triggerCall,
  type Step,
} from './work.ts';

/** What we do on hubs whose automation we run, or whose orders nobody but us reconciles. */
const KIND_OF: { readonly [Purpose in AutomationPurpose]: 'trigger' | 'undo' } = {
  provision: 'trigger',
  deprovision: 'undo',
};

const request = (
  run: OrderRun,
  purpose: AutomationPurpose,
  wanted: Request | undefined,
): Work | undefined => {
  // An earlier request that may have happened is settled under its own id, whatever is wanted now.
  if (wanted === undefined && !isUnresolved(run.effects[KIND_OF[purpose]])) return undefined;
  const { wording = '', repeats = 0, notBefore, again, since, cleaning } = wanted ?? {};
  const call = triggerCall(run, purpose, defined({ again, since, cleaning }));
  return defined({ call, instance: `${wording}.${repeats}`, facts: defined({ again }), notBefore });
};

/** The automation took a request: the effect's instance is `<wording>.<repeats>`. */
const requestTaken =
  (purpose: AutomationPurpose) =>
  (run: OrderRun, result: JsonObject, at: string): ClusterCommand | undefined => {
    const mode = automationMode(run);
    const { id, facts = {} } = run.effects[KIND_OF[purpose]] ?? {};
    const job = jobOf(result['job'], at);
    // A look at what an attempt has left found nothing, or the order was gone before it.
    if (mode === undefined || id === undefined || (job === undefined && result['queued'] !== true)) {
      return undefined;
    }
    const instance = instanceOfEffect(id);
    const dot = instance.lastIndexOf('.');
    const { again } = facts;
    return {
      type: 'RecordAutomationRequest',
      at,
      mode,
      purpose,
      wording: instance.slice(0, dot),
      repeats: Number(instance.slice(dot + 1)),
      ...(again === 'nodes' || again === 'other' ? { again } : {}),
      ...(result['did'] === 'observed' ? { observed: true } : {}),
      ...(job === undefined ? {} : { job }),
    };
  };

const jobOf = (
  shown: JsonObject[string] | undefined,
  at: string,
): Omit<RunningJob, 'seenAt' | 'vanished'> | undefined => {
  if (!isObject(shown)) return undefined;
  return defined({
    id: stringAt(shown, 'id'),
    workflow: shown['workflow'] === true,
    template: stringAt(shown, 'template'),
    state: stringAt(shown, 'state'),
    createdAt: stringAt(shown, 'createdAt') || at,
    outputTail: stringAt(shown, 'outputTail') || undefined,
  });
};

const isAutomated = (run: OrderRun): boolean => automationMode(run) !== undefined;
const askedOf = (run: OrderRun) => onItsHub(run)?.asked ?? {};

/** Between `apply` and `accepted`. */
export const PREPARING: readonly Step[] = [
  {
    name: 'prepare',
    after: ['apply'],
    needed: isController,
    work: (run) => ({
      call: onHub(run, 'prepareObject', orderRef(run)),
      instance: `${run.cycle}.${onItsHub(run)?.uid ?? ''}`,
    }),
    record: (_run, result, at) => ({
      type: 'RecordPrepared',
      at,
      created: listAt(result, 'created').map(textOf),
    }),
  },
  {
    name: 'trigger',
    after: ['apply', 'prepare'],
    needed: isAutomated,
    done: (run) => askedOf(run).provision?.wording === provisionWording(run),
    work: (run) => request(run, 'provision', firstRequest(run)),
    record: requestTaken('provision'),
  },
];

/** The job that is looked at: a provisioning one first, since it must end before anything is torn down. */
const watchedJob = (
  run: OrderRun,
): { readonly purpose: AutomationPurpose; readonly job: RunningJob } | undefined => {
  const { provision, deprovision } = askedOf(run);
  if (isUnsettled(provision?.job) && deprovision === undefined)
    return { purpose: 'provision', job: provision.job };
  return isUnsettled(deprovision?.job) ? { purpose: 'deprovision', job: deprovision.job } : undefined;
};

const onJob = (run: OrderRun, operation: string, job: RunningJob | undefined): Call => {
  const { id = '', workflow = false } = job ?? {};
  return onAutomation(run, operation, { job: { id, workflow } });
};

const watching = (phase: 'live' | 'undo'): Step => ({
  name: `watch-job-${phase}`,
  phase,
  effect: 'job',
  needed: (run) =>
    isLeft(run) === (phase === 'undo') &&
    automationMode(run) === 'aap' &&
    watchedJob(run) !== undefined &&
    !isGone(run),
  work: (run) => ({ everyMs: READ_BUSY_MS, call: onJob(run, 'job', watchedJob(run)?.job) }),
});

const MAX_TAIL = 4_000;

/** The platform's answer about the job that is looked at; null: it has no record of it. */
export const jobShown = (
  run: OrderRun,
  { job: shown }: JsonObject,
  at: string,
): ClusterCommand | undefined => {
  const watched = watchedJob(run);
  const mode = automationMode(run);
  if (watched === undefined || mode === undefined) return undefined;
  const { purpose, job } = watched;
  const report = { type: 'RecordJob', at, mode, purpose, job: job.id } as const;
  if (shown === null) return { ...report, state: 'Unknown', vanished: true };
  // Another one's may come late.
  const state = jobOf(shown, at);
  if (state?.id !== job.id) return undefined;
  const outputTail = state.outputTail?.slice(-MAX_TAIL).toWellFormed();
  // From the platform's own closed list.
  return { ...report, state: state.state as 'Running', ...defined({ outputTail }) };
};

/** Written only when it changes; nothing is read back from it. */
const writing = (phase: 'live' | 'undo'): Step => ({
  name: `write-status-${phase}`,
  phase,
  after: phase === 'undo' ? ['delete'] : [],
  effect: 'status',
  rules: { mayBeRefused: false },
  needed: (run) =>
    isLeft(run) === (phase === 'undo') &&
    isController(run) &&
    wantedStatus(run) !== undefined &&
    !isGone(run),
  done: (run) =>
    !isUnresolved(run.effects['status']) && run.done['status']?.facts?.['status'] === statusText(run),
  work: (run, since) => {
    const status = wantedStatus(run);
    if (status === undefined) return undefined;
    const args = { ...orderRef(run), status: asJson(status), at: since };
    return {
      call: onHub(run, 'writeStatus', args),
      instance: run.done['status']?.times ?? 0,
      facts: { status: statusText(run) },
    };
  },
});

export const AUTOMATION_LIVE: readonly Step[] = [
  {
    name: 'trigger-again',
    after: ['trigger'],
    effect: 'trigger',
    needed: isAutomated,
    done: (run) => !isUnresolved(run.effects['trigger']) && repeatedRequest(run, 'provision') === undefined,
    work: (run) => request(run, 'provision', repeatedRequest(run, 'provision')),
  },
  watching('live'),
  writing('live'),
];

const seenOf = (run: OrderRun) => onItsHub(run)?.seen ?? {};

/** Nothing of it is left that a playbook could tear down, or nothing was ever asked for. */
const needsNoTeardown = (run: OrderRun): boolean => {
  const { work, missing, left } = seenOf(run);
  return !wasAsked(run) || work === 'finished' || missing === 'cluster-order' || left !== undefined;
};

const isAskedToUndo = (run: OrderRun): boolean => askedOf(run).deprovision !== undefined;

/** As the operator does: its own namespace and finalizer go last. */
const mayFinish = (run: OrderRun): boolean => {
  const { deleting, work } = seenOf(run);
  const { provision, deprovision } = askedOf(run);
  if (deleting !== true || isRunning(provision?.job)) return false;
  if (deprovision === undefined || automationMode(run) === 'eda') return work === 'finished';
  const { state, vanished } = deprovision.job ?? {};
  const hasEnded = state === 'Succeeded' || vanished === true;
  return hasEnded && (work === 'finished' || work === 'cleaning');
};

/** Between `settle-apply` and `confirm-absence`. */
export const UNDOING: readonly Step[] = [
  // A job that is found is cancelled.
  settling('trigger', (run) => ({ ...triggerCall(run, 'provision'), operation: 'lookUp' }), {
    needed: (run) => automationMode(run) === 'aap',
  }),
  {
    name: 'cancel-job',
    phase: 'undo',
    effect: 'cancel',
    after: ['settle-trigger'],
    needed: (run) => isRunning(askedOf(run).provision?.job),
    work: (run) => {
      const { job } = askedOf(run).provision ?? {};
      return { call: onJob(run, 'cancel', job), instance: job?.id ?? '' };
    },
  },
  {
    name: 'trigger-delete',
    phase: 'undo',
    effect: 'undo',
    after: ['delete', 'settle-trigger', 'cancel-job'],
    needed: (run) => isAutomated(run) && isDispatched(run),
    done: (run) => isAskedToUndo(run) || needsNoTeardown(run) || isGone(run),
    work: (run) =>
      seenOf(run).deleting === true && !isRunning(askedOf(run).provision?.job)
        ? request(run, 'deprovision', { wording: String(run.cycle), repeats: 0 })
        : undefined,
    record: requestTaken('deprovision'),
  },
  {
    name: 'trigger-delete-again',
    phase: 'undo',
    effect: 'undo',
    after: ['trigger-delete'],
    needed: isAskedToUndo,
    done: (run) =>
      isGone(run) ||
      seenOf(run).deleting !== true ||
      (!isUnresolved(run.effects['undo']) && repeatedRequest(run, 'deprovision') === undefined),
    work: (run) => request(run, 'deprovision', repeatedRequest(run, 'deprovision')),
  },
  watching('undo'),
  writing('undo'),
  {
    name: 'finish',
    phase: 'undo',
    rules: { attempts: 30 },
    after: ['delete', 'settle-trigger', 'trigger-delete'],
    needed: isController,
    done: (run) =>
      isGone(run) || run.effects['finish']?.status === 'done' || seenOf(run).deleting === undefined,
    work: (run) =>
      mayFinish(run) || isUnresolved(run.effects['finish'])
        ? { call: onHub(run, 'releaseObject', orderRef(run)) }
        : undefined,
  },
];
