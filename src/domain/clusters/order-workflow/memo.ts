import type { CapacityClaim } from '../../hubs/capacity-events.ts';
import { defined, stringAt, textOf, without } from '../../json-tools.ts';
import { isUnresolved, kindOfEffect } from '../../process/effects.ts';
import type { FoldedEvent } from '../../workflow.ts';
import { DEADLINE } from '../../process/evolve.ts';
import { PLACEMENT_DEADLINE, PLACEMENT_RETRY, RECONSIDER_HUB, retryDueAt, askingAt } from './timers.ts';
import {
  hubOf,
  INITIAL_MEMO,
  isCertainlyUnsent,
  isNeverTaken,
  isSent,
  type Memo,
  type OrderRun,
} from './run.ts';

export const evolveMemo = (before: Memo, event: FoldedEvent, run: OrderRun, success?: string): Memo => {
  const at = stringAt(event.data, 'at');
  const heard = (event.of === 'subject' ? ofCluster : ofRun)(before, event, run, at);
  const memo = success === undefined ? heard : succeeded(heard, event, success, run, at);
  const isUnplaced =
    memo.placementOverdue === true &&
    memo.unplaced === undefined &&
    run.ending === undefined &&
    run.subject.status === 'accepted' &&
    !isUnresolved(run.effects['place']);
  return isUnplaced ? { ...without(memo, 'waiting'), unplaced: at } : memo;
};

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
    case 'HubSelected': {
      const { site } = hubOf(run) ?? {};
      return site === undefined
        ? without(memo, 'site')
        : { ...memo, site: { hub: stringAt(data, 'hub'), ...site } };
    }
    case 'ClusterDeletionRequested':
    case 'ClusterAborted':
      return without(memo, 'waiting', 'told');
    case 'ClusterWithdrawn':
      return { ...INITIAL_MEMO, ...defined({ site: memo.site }) };
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
  if (timerId === `${DEADLINE}agent-addresses`) return { ...memo, rebinds: (memo.rebinds ?? 0) + 1 };
  const asking = askingAt(run, textOf(timerId));
  if (Object.keys(asking).length > 0) return { ...memo, asked: { ...memo.asked, ...asking } };
  if (timerId === PLACEMENT_DEADLINE) return { ...memo, placementOverdue: true };
  if (timerId === RECONSIDER_HUB && isCertainlyUnsent(run)) {
    return {
      ...startedOver(memo, run),
      ...defined({ failing: memo.failing, triesSince: memo.triesSince }),
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
const startedOver = (before: Memo, run: OrderRun): Memo => {
  const { backs, changes, triesSince, held, waitedOut, replacing, site } = before;
  const again =
    site === undefined &&
    isNeverTaken(run) &&
    before.foundThere === undefined &&
    !isUnresolved(run.effects['apply']);
  const kept = { changes, triesSince, held, waitedOut, site, replacing: again ? true : replacing };
  return { drift: 0, backs, ...defined(kept) };
};

/** Of the effect that has succeeded, in whichever stream that stands. */
const succeeded = (before: Memo, { type }: FoldedEvent, kind: string, run: OrderRun, at: string): Memo => {
  const { failing } = before;
  const { result, facts } = run.done[kind] ?? {};
  const memo =
    failing?.kind === kind
      ? { ...without(before, 'failing'), ended: { reason: failing.reason, at } }
      : before;
  // Which claim it is, our own fact of the attempt says.
  const held = defined({ held: facts?.['claim'] as CapacityClaim | undefined });
  if (kind === 'check') return result?.['gone'] === true ? { ...memo, gone: true } : memo;
  if (kind === 'apply') return applied(memo, facts?.['generation'], run);
  if (kind !== 'place' && kind !== 'resize') return memo;
  if (type === 'PlacementDeferred' || result?.['placed'] === false || result?.['resized'] === false) {
    return run.ending === undefined ? { ...memo, waiting: at } : memo;
  }
  const placed = without(memo, 'waiting', 'waitedOut');
  if (kind === 'resize') return { ...placed, ...held };
  // An attempt that was settled by giving back has no answer.
  if (result !== undefined && result['placed'] !== true) return memo;
  return { ...without(placed, 'replacing', 'reconsidering', 'placementOverdue', 'unplaced'), ...held };
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
