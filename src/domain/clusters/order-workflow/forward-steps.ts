import { defined, listAt, numberAt, stringAt, textOf } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import { BACKOFF, isUnresolved, later, OWN_BACKOFF } from '../../process/effects.ts';
import { MAKING_BACKOFF, makeObjects } from '../../made-objects.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import { orderName } from '../cluster-order-manifest.ts';
import { autoObjects } from '../endpoints.ts';
import type { ClusterCommand } from '../commands.ts';
import { DEFAULT_WEIGHTS, type PlaceResult } from '../../hubs/placement.ts';
import { waitingWords } from '../room-words.ts';
import { PREPARING } from './automation-steps.ts';
import {
  applyInstance,
  claimBeforeApply,
  hasReached,
  hubOf,
  isApplied,
  isDispatched,
  isSent,
  onItsHub,
  orderOf,
  sameClaim,
  wantedClaim,
  type ObservedStep,
  type OrderRun,
} from './run.ts';
import { BEFORE_APPLY, SITE_STEPS } from './site-steps.ts';
import { SITE_TASKS } from './site-tasks.ts';
import { applyCall, asJson, placeCall, resizeCall, type Step } from './work.ts';

const MINUTE = 60_000;
/** No phase after this: the hub does not accept (OSAC's operator). */
export const ACCEPT_DEADLINE_MS = 30_000;
export const CONTROL_PLANE_DEADLINE_MS = 30 * MINUTE;
export const NODES_DEADLINE_MS = 30 * MINUTE;
export const READY_DEADLINE_MS = 60 * MINUTE;
/** Each change is a full run of the automation (OSAC's operator): a burst of changes is sent at its end. */
export const QUIET_MS = 2_000;
export const LONGEST_QUIET_MS = 10_000;

/** Waited for until the hub shows it; late, it is told with a reason of its own. */
const awaited = (
  name: ObservedStep,
  after: readonly string[],
  ms: number,
  reason: string,
  what: string,
): Step => ({
  name,
  after,
  done: (run) => hasReached(run, name),
  deadline: {
    ms,
    onOverdue: (_run, { at }) => ({
      type: 'RecordFailure',
      at,
      reason,
      message: `${what} within ${ms / MINUTE} minutes`,
      permanent: false,
    }),
  },
});

/**
 * A cluster that is being built is not changed at each of a burst of changes, but some time after the last of them.
 * Simulated hubs are told at once: nothing is spared there.
 */
const quietUntil = (run: OrderRun): string | undefined => {
  const { changes } = run.memo;
  return changes === undefined || hubOf(run)?.simulated !== false || isUnresolved(run.effects['apply'])
    ? undefined
    : [later(changes.last, QUIET_MS), later(changes.first, LONGEST_QUIET_MS)].toSorted()[0];
};

/**
 * While a change of what it holds may have happened or not, nobody knows: it is settled before anything relies on
 * it, by
 * growing before the spec is sent, by giving back after that.
 */
const holds = (run: OrderRun, claim: ReturnType<typeof wantedClaim>): boolean =>
  !isUnresolved(run.effects['resize']) && sameClaim(run.memo.held, claim);

/** Answers about capacity so far, and the retries: a retry asks anew, also where the last answer was a refusal. */
const capacityTries = ({ done }: OrderRun): number =>
  (done['place']?.times ?? 0) + (done['resize']?.times ?? 0);
const resizeInstance = (run: OrderRun): string =>
  `${orderOf(run).generation}.${capacityTries(run)}${run.cycle === 0 ? '' : `.${run.cycle}`}`;

const resizing = (
  name: string,
  after: readonly string[],
  claimOf: typeof wantedClaim,
  done: (run: OrderRun, claim: ReturnType<typeof wantedClaim>) => boolean,
): Step => ({
  name,
  after,
  effect: 'resize',
  rules: { backoff: OWN_BACKOFF },
  done: (run) => done(run, claimOf(run)),
  work: (run) => {
    const claim = claimOf(run);
    return run.memo.waiting === undefined
      ? { call: resizeCall(run, claim), instance: resizeInstance(run), facts: { claim: asJson(claim) } }
      : undefined;
  },
  record: resized,
});

const resized = (run: OrderRun, result: JsonObject, at: string): ClusterCommand | undefined => {
  if (result['resized'] !== false) return undefined;
  const hub = hubOf(run)?.id ?? '';
  const reasons = [stringAt(result, 'message') || 'no room left'];
  const message = waitingWords(orderOf(run).nodeSets, {
    zone: orderOf(run).zone,
    held: run.memo.held?.nodes ?? {},
  });
  const { version: weightsVersion } = DEFAULT_WEIGHTS;
  const decision = { weightsVersion, candidates: [{ hub, fits: false, reasons, scores: {}, total: 0 }] };
  return { type: 'DeferPlacement', at, message, decision };
};

const placed = (run: OrderRun, result: JsonObject, at: string): ClusterCommand | undefined => {
  // An attempt that was settled by giving back has no answer.
  if (typeof result['placed'] !== 'boolean') return undefined;
  // The scheduler's own result type; it came through JSON.
  const answer = result as unknown as PlaceResult;
  if (!answer.placed) {
    const { nodeSets, zone } = orderOf(run);
    const message = waitingWords(nodeSets, { zone, why: answer.message });
    return { type: 'DeferPlacement', at, message, decision: answer.decision };
  }
  const { placed: _placed, ...hub } = answer;
  const again = isDispatched(run) ? { again: true } : {};
  return { type: 'SelectHub', at, ...hub, orderName: orderName(run.id), ...again };
};

const applied = (run: OrderRun, result: JsonObject, at: string): ClusterCommand | undefined => {
  const uid = stringAt(result, 'uid');
  if (uid === '') return undefined;
  return defined({
    type: 'RecordApplied',
    at,
    uid,
    name: stringAt(result, 'name') || undefined,
    generation: numberAt(run.effects['apply']?.facts, 'generation'),
    fields: result['did'] === 'patched' ? listAt(result, 'fields').map(textOf) : undefined,
  });
};

/** The way to READY, again for every change of the spec. */
export const FORWARD: readonly Step[] = [
  {
    name: 'place',
    rules: { backoff: OWN_BACKOFF },
    done: (run) => isDispatched(run) && run.memo.replacing !== true,
    work: (run) =>
      run.memo.waiting === undefined
        ? {
            call: placeCall(run),
            instance: `${capacityTries(run)}.${run.cycle}`,
            facts: { claim: asJson(wantedClaim(run)) },
          }
        : undefined,
    record: placed,
  },
  {
    // They wait for it to be placed, and it does not wait for them: what somebody attached instead stops no order.
    name: 'make-addresses',
    rules: { backoff: MAKING_BACKOFF, attempts: 3, mayBeRefused: false },
    needed: (run) => orderOf(run).externalIps !== undefined,
    work: (run) => ({
      call: makeObjects({ kind: CLUSTER_CATEGORY, id: run.id }, autoObjects(orderOf(run))),
      instance: 0,
    }),
  },
  resizing('resize-up', ['place'], claimBeforeApply, (run, claim) =>
    isApplied(run) ? sameClaim(run.memo.held, claim) : holds(run, claim),
  ),
  ...SITE_STEPS,
  {
    name: 'apply',
    after: ['place', 'resize-up', ...BEFORE_APPLY],
    /** Until its hub took it, an order may go to another one: only while it is certain that no attempt came through. */
    rules: (run) => {
      if (isSent(run)) return {};
      // Asking for another place begins a new count of attempts, but no shorter rest.
      const again = Math.min(10, run.memo.reconsidered ?? 0);
      const { firstMs, maxMs } = BACKOFF;
      const backoff = { firstMs: Math.min(maxMs, firstMs * 8 ** again), maxMs };
      return { everyFailure: true, backoff, attempts: Math.max(1, 10 >> again) };
    },
    done: isApplied,
    work: (run) => {
      const quiet = quietUntil(run);
      return {
        call: applyCall(run),
        instance: applyInstance(run),
        facts: { generation: orderOf(run).generation },
        ...(quiet === undefined ? {} : { notBefore: quiet }),
      };
    },
    record: applied,
  },
  ...PREPARING,
  resizing('resize-down', ['apply'], wantedClaim, holds),
  {
    name: 'accepted',
    after: ['apply'],
    done: (run) => hasReached(run, 'accepted'),
    deadline: {
      ms: ACCEPT_DEADLINE_MS,
      onOverdue: (_run, times) => ({ type: 'ReportNotAccepting', ...times }),
    },
  },
  awaited(
    'control-plane',
    ['accepted', 'trigger'],
    CONTROL_PLANE_DEADLINE_MS,
    'ControlPlaneTimedOut',
    'the control plane did not become available',
  ),
  // Of a cluster that runs the control plane stands all along: what the hub was not sent yet takes it no time.
  awaited(
    'nodes',
    ['apply', 'trigger', 'control-plane'],
    NODES_DEADLINE_MS,
    'NodesTimedOut',
    'the nodes did not become ready',
  ),
  ...SITE_TASKS,
  {
    ...awaited('ready', ['nodes'], READY_DEADLINE_MS, 'InstallTimedOut', 'the cluster did not become ready'),
    done: (run) => hasReached(run, 'ready') || onItsHub(run)?.installed === true,
  },
];
