import type { CapacityClaim } from '../../hubs/capacity-events.ts';
import { stringAt } from '../../json-tools.ts';
import { isUnresolved, kindOfEffect } from '../../process/effects.ts';
import type { Done } from '../../process/run.ts';
import type { FoldedEvent } from '../../workflow.ts';
import { PLACEMENT_DEADLINE, PLACEMENT_RETRY, RECONSIDER_HUB, retryDueAt } from './timers.ts';
import { isCertainlyUnsent, isNeverTaken, isSent, type Memo, type OrderRun } from './run.ts';

export const evolveMemo = (before: Memo, event: FoldedEvent, run: OrderRun): Memo => {
  const at = stringAt(event.data, 'at');
  const heard = event.of === 'subject' ? ofCluster(before, event, run, at) : ofRun(before, event, run, at);
  const success = successOf(event, run);
  const memo = success === undefined ? heard : succeeded(heard, event, success, run, at);
  const isUnplaced =
    memo.placementOverdue === true &&
    memo.unplaced === undefined &&
    run.ending === undefined &&
    run.subject.status === 'accepted' &&
    !isUnresolved(run.effects['place']);
  return isUnplaced ? { ...without(memo, 'waiting'), unplaced: at } : memo;
};

const without = <Key extends keyof Memo>(memo: Memo, ...keys: readonly Key[]): Memo =>
  Object.fromEntries(Object.entries(memo).filter(([key]) => !keys.includes(key as Key))) as Memo;

const ofCluster = (memo: Memo, { type, data }: FoldedEvent, run: OrderRun, at: string): Memo => {
  switch (type) {
    case 'NodeSetAdded':
    case 'NodeSetResized':
    case 'NodeSetRemoved':
    case 'ClusterSpecRevised':
      return {
        ...without(memo, 'waiting'),
        drift: 0,
        triesSince: at,
        ...(isSent(run) ? { changes: { first: memo.changes?.first ?? at, last: at } } : {}),
      };
    case 'ClusterRetryRequested':
      return { ...startedOver(memo, run), triesSince: at };
    case 'ClusterDeletionRequested':
      return without(memo, 'waiting', 'told');
    case 'ClusterOrderSeen':
      return {
        ...memo,
        drift: memo.drift + (data['differs'] === true && driftsNow(memo, run) ? 1 : 0),
        backs: memo.backs + (data['deleting'] === false ? 1 : 0),
      };
    case 'ClusterFailed':
    case 'ClusterChangeFailed': {
      const isTold = run.problem !== undefined && run.problem.reason === data['reason'];
      return { ...without(memo, 'ended'), ...(isTold ? { told: run.problem.at } : {}) };
    }
    case 'ClusterFailureCleared':
      return without(memo, 'ended');
    default:
      return memo;
  }
};

/** Corrections per wording of the spec: a hub that rewrites what it is given must not be written to for ever. */
const MAX_DRIFT = 3;
const driftsNow = ({ drift }: Memo, run: OrderRun): boolean =>
  drift < MAX_DRIFT && run.ending === undefined && run.effects['apply']?.status === 'done';

/** Refusals that say that its hub holds it already. */
const FOUND_THERE: ReadonlySet<string> = new Set(['DuplicateOrders', 'NetworkRangeNotRemovable']);

const ofRun = (memo: Memo, { type, data }: FoldedEvent, run: OrderRun, at: string): Memo => {
  const kind = kindOfEffect(stringAt(data, 'effectId'));
  const { timerId } = data;
  const reason = stringAt(data, 'reason');
  if (type === 'EffectStalled') return { ...memo, failing: { kind, reason } };
  if (type === 'EffectRefused' && kind === 'apply' && FOUND_THERE.has(reason)) {
    return { ...memo, foundThere: true };
  }
  if (type === 'RunRetried' && run.ending === undefined) return { ...startedOver(memo, run), triesSince: at };
  if (type !== 'TimerFired') return memo;
  if (timerId === PLACEMENT_DEADLINE) return { ...memo, placementOverdue: true };
  if (timerId === RECONSIDER_HUB && isCertainlyUnsent(run)) {
    const { failing, triesSince } = memo;
    return {
      ...startedOver(memo, run),
      ...(failing === undefined ? {} : { failing }),
      ...(triesSince === undefined ? {} : { triesSince }),
      reconsidering: true,
      reconsidered: (memo.reconsidered ?? 0) + 1,
    };
  }
  if (timerId !== PLACEMENT_RETRY) return memo;
  const woken = Date.parse(at) < Date.parse(retryDueAt(memo) ?? at) - EARLY_MS;
  return { ...without(memo, 'waiting'), waitedOut: (memo.waitedOut ?? 0) + (woken ? 0 : 1) };
};

/** Timers run on the monotonic clock: one that is due may be recorded a little before its wall-clock time. */
const EARLY_MS = 1_000;

/** As the new cycle of the run: what was tried before counts no more. */
const startedOver = (memo: Memo, run: OrderRun): Memo => ({
  ...without(
    memo,
    'waiting',
    'reconsidering',
    'reconsidered',
    'placementOverdue',
    'unplaced',
    'failing',
    'ended',
    'told',
    'foundThere',
  ),
  drift: 0,
  ...(isNeverTaken(run) && memo.foundThere === undefined && !isUnresolved(run.effects['apply'])
    ? { replacing: true }
    : {}),
});

type Success = { readonly kind: string; readonly done: Done };

/** The effect that this event shows to have succeeded, in whichever stream that stands. */
const successOf = ({ of, type, data, causationId }: FoldedEvent, run: OrderRun): Success | undefined => {
  const kind =
    of === 'run'
      ? type === 'EffectSucceeded'
        ? kindOfEffect(stringAt(data, 'effectId'))
        : undefined
      : Object.entries(run.effects).find(
          ([, { startId, status }]) => startId === causationId && status === 'done',
        )?.[0];
  const done = kind === undefined ? undefined : run.done[kind];
  return kind === undefined || done === undefined ? undefined : { kind, done };
};

const succeeded = (
  before: Memo,
  { type }: FoldedEvent,
  { kind, done: { result, facts } }: Success,
  run: OrderRun,
  at: string,
): Memo => {
  const { failing } = before;
  const memo =
    failing?.kind === kind
      ? { ...without(before, 'failing'), ended: { reason: failing.reason, at } }
      : before;
  const claim = facts?.['claim'] as CapacityClaim | undefined;
  const held = claim === undefined ? {} : { held: claim };
  if (kind === 'apply') return applied(memo, facts?.['generation'], run);
  if (kind !== 'place' && kind !== 'resize') return memo;
  if (type === 'PlacementDeferred' || result?.['placed'] === false || result?.['resized'] === false) {
    return run.ending === undefined ? { ...memo, waiting: at } : memo;
  }
  if (kind === 'resize') return { ...without(memo, 'waiting', 'waitedOut'), ...held };
  // An attempt that was settled by giving back has no answer.
  return result !== undefined && result['placed'] !== true
    ? memo
    : {
        ...without(
          memo,
          'waiting',
          'waitedOut',
          'replacing',
          'reconsidering',
          'placementOverdue',
          'unplaced',
        ),
        ...held,
      };
};

/** What changed after it was sent waits for the next time. */
const applied = (memo: Memo, generation: unknown, run: OrderRun): Memo => {
  const { changes } = memo;
  const isPresent = 'generation' in run.subject && run.subject.generation === generation;
  const kept = without(memo, 'waiting', 'changes');
  return changes === undefined || isPresent
    ? kept
    : { ...kept, changes: { first: changes.last, last: changes.last } };
};
