import { defined } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { ClusterCommand } from '../commands.ts';
import type { Lost } from '../state.ts';
import { assess, type Assessment } from '../observation.ts';
import type { ClusterObservation } from '../observed.ts';
import { versionOf } from '../observed-version.ts';
import { jobShown } from './automation-steps.ts';
import { desiredOf, hasReached, hubOf, isGone, isSent, mayBeOnHub, onItsHub, type OrderRun } from './run.ts';
import { ownJob, withoutOwnJobs } from './deletion-steps.ts';
import { isLeft, siteOf } from './site-run.ts';
import { observeCall, READ_BUSY_MS, READ_READY_MS, type Step } from './work.ts';

/** The timed read: the only source of degradation and loss (OSAC's operator). */
export const reading = (phase: 'live' | 'undo'): Step => ({
  name: `read-${phase}`,
  phase,
  effect: 'read',
  after: phase === 'undo' ? ['delete'] : [],
  needed: (run) => (phase === 'live' ? !isLeft(run) && isSent(run) : mayBeOnHub(run) && !isGone(run)),
  work: (run) => ({
    everyMs: !isLeft(run) && hasReached(run, 'ready') ? READ_READY_MS : READ_BUSY_MS,
    call: observeCall(run),
    together: 'compareObjects',
  }),
});

/** What a look tells the cluster; one that misses it is a suspicion until a check of its own. */
export const observe = (run: OrderRun, shown: JsonObject, at: string): ClusterCommand | undefined =>
  Object.hasOwn(shown, 'job') ? jobShown(run, shown, at) : look(run, observationOf(shown), at);

/** An observation says something only once the order was sent, and while it is not known to be gone. */
const look = (
  run: OrderRun,
  observation: ClusterObservation | undefined,
  at: string,
): ClusterCommand | undefined => {
  const isExpected = isLeft(run) ? isDeletionSent(run) : isSent(run);
  if (!isExpected || observation === undefined || isGone(run)) return undefined;
  // An order may have been meant for another hub before: what is seen there is not this one.
  if (observation.hub !== undefined && observation.hub !== hubOf(run)?.id) return undefined;
  const assessment = assess(observation, desiredOf(run));
  return defined({
    type: 'RecordObservation',
    at,
    assessment,
    version: versionOf(observation),
    askedAt: observation.askedAt,
    settles: run.effects['apply']?.status === 'refused' ? true : undefined,
    waitingFor: isLeft(run) ? waitingFor(run, assessment) : undefined,
  });
};

const waitingFor = (run: OrderRun, assessment: Assessment): readonly string[] =>
  assessment.found ? [...ownJob(run), ...withoutOwnJobs(run, assessment.waitingFor)] : [];

const isDeletionSent = ({ effects: { delete: sent } }: OrderRun): boolean => sent?.status === 'done';

/** A look that settles deadlines that passed, and what another look has missed. */
export const confirm = (run: OrderRun, shown: JsonObject, at: string): ClusterCommand | undefined => {
  const observation = observationOf(shown);
  const report = look(run, observation, at);
  if (report?.type !== 'RecordObservation') return report;
  const what = missingIn(report.assessment, run);
  if (what === undefined) return report;
  if (!isLeft(run)) return { type: 'ReportLost', at, what };
  // A look from before the deletion was sent cannot confirm absence. One that was made for it names it: the clocks
  // of two
  // machines do not tell which came first.
  const isConfirmed = what === 'cluster-order' && isForDeletion(run);
  // What the ledger has done for it beside the hub goes first.
  return isConfirmed && siteOf(run) === undefined ? { type: 'ConfirmAbsence', at } : report;
};

const isForDeletion = (run: OrderRun): boolean =>
  run.effects['check']?.id.endsWith(`.${run.done['delete']?.at ?? ''}`) === true;

/** What of a look is kept: that nothing is left on the hub. */
export const keep = (run: OrderRun, shown: JsonObject): JsonObject => {
  const observation = observationOf(shown);
  const isExpected = siteOf(run) !== undefined && isLeft(run) && isDeletionSent(run) && isForDeletion(run);
  if (!isExpected || observation === undefined) return {};
  const assessment = assess(observation, desiredOf(run));
  return !assessment.found && assessment.left === undefined ? { gone: true } : {};
};

const missingIn = (assessment: Assessment, run: OrderRun): Lost | undefined => {
  // Gone is what has left nothing behind: a HostedCluster without its order still runs.
  if (!assessment.found) return isLeft(run) && assessment.left !== undefined ? undefined : 'cluster-order';
  return assessment.verdict.kind === 'hosted-cluster-lost' ? 'hosted-cluster' : undefined;
};

/** What the last look shows to be missing, and when it did first. A look that ends a deletion comes after it was sent. */
export const suspicion = (run: OrderRun): string | undefined => {
  const { seen, seenAt = '', lost, ours } = onItsHub(run) ?? {};
  if (seen?.missing === undefined || ours !== true || isGone(run)) return undefined;
  if (!isLeft(run)) return seen.missing === lost ? undefined : `${seen.missing}.${seenAt}`;
  return isDeletionSent(run) ? `${seen.missing}.${seenAt}.${run.done['delete']?.at ?? ''}` : undefined;
};

/** Undefined when it is not an observation: an empty answer must never count as absence. */
const observationOf = (value: object): ClusterObservation | undefined => {
  const { order } = value as { order?: unknown };
  return order === null || (typeof order === 'object' && order !== null)
    ? (value as ClusterObservation)
    : undefined;
};
