import { sameJson } from '../../json-tools.ts';
import type { RunEvent } from '../../process/events.ts';
import type { Assessment } from '../observation.ts';
import { withFinished, withNews } from './evolve-automation.ts';
import { JOB_STATUS, suspected, type OpenRun } from './run.ts';

/** Folds what the hub showed. */
export const observed = (
  run: OpenRun,
  { number, assessment: json, at, version }: Extract<RunEvent, { type: 'ObservationTaken' }>['data'],
): OpenRun => {
  const assessment = json as unknown as Assessment;
  const observation = { number, at, assessment, ...(version === undefined ? {} : { version }) };
  const next: OpenRun = {
    ...withoutKnownJob(run, assessment),
    observation,
    observations: number,
    recordNext: false,
  };
  const { gone, ...rest } = next;
  const kept = withFinished(gone !== undefined && gone === suspected(next) ? next : rest);
  if (!assessment.found) return kept;
  const nodes = assessment.conditions.NodesReady.status !== 'False' && assessment.specMatches;
  const available = assessment.controlPlane !== undefined;
  const ready = assessment.verdict.kind === 'ready' && assessment.verdict.stopped === undefined;
  const settled = withChange(takenAfterAll(kept, assessment), assessment);
  return {
    ...withDuplicates(settled, run.observation?.assessment, assessment, at),
    ...(ready ? { built: run.spec.nodeSets } : {}),
    drift: run.drift + (driftsNow(run, assessment) ? 1 : 0),
    wasAvailable: run.wasAvailable || available,
    reached: {
      accepted: run.reached.accepted || assessment.accepted,
      'control-plane': run.reached['control-plane'] || available || ready,
      nodes: run.reached.nodes || ((available || ready) && nodes),
      ready: run.reached.ready || ready,
    },
  };
};

/** The wait for a job's state ends with it, and begins anew with the next time. */
const withoutKnownJob = (run: OpenRun, assessment: Assessment): OpenRun => {
  if (assessment.found && assessment.jobUnknown === true) return run;
  const { [JOB_STATUS]: _known, ...overdue } = run.overdue;
  return { ...run, overdue };
};

/** What became of the present change, by what the hub shows. */
const withChange = (run: OpenRun, { verdict }: Extract<Assessment, { found: true }>): OpenRun => {
  const runs = verdict.kind === 'ready' || verdict.kind === 'degraded';
  if (!runs && verdict.kind !== 'progressing') return run;
  const { changeFailed: _former, ...kept } = run;
  const stopped = runs ? verdict.stopped : undefined;
  return stopped?.why === 'failed' ? { ...kept, changeFailed: stopped } : kept;
};

/**
 * The hub refused what it shows now: an attempt of which nobody knew had been taken before. Halted for good, the order would
 * wait for somebody to retry what is done.
 */
const takenAfterAll = (run: OpenRun, { specMatches, uid }: Extract<Assessment, { found: true }>): OpenRun => {
  const apply = run.effects['apply'];
  const refused = apply?.status === 'refused' && run.halted?.permanent === true;
  const isThisOne = run.sent['apply']?.revision === run.specRevision && run.applied !== undefined;
  if (!refused || !isThisOne || !specMatches || run.deletion !== undefined) return run;
  const { halted: _halted, problem: _problem, changes: _changes, changeFailed: _refused, ...kept } = run;
  const instance = apply.id.slice('apply:'.length);
  return {
    ...kept,
    effects: { ...run.effects, apply: { ...apply, status: 'done', doubt: false } },
    applied: { ...run.applied, instance, revision: run.specRevision, uid },
    recordNext: true,
  };
};

/** Two objects of one cluster need somebody to choose: they are told of once for each set of them. */
const withDuplicates = (
  run: OpenRun,
  before: Assessment | undefined,
  { duplicates = [] }: Extract<Assessment, { found: true }>,
  at: string,
): OpenRun => {
  const known = before?.found === true ? (before.duplicates ?? []) : [];
  return duplicates.length === 0 || sameJson(known, duplicates)
    ? run
    : withNews(run, { type: 'ReportDuplicates', at, names: duplicates });
};

/** Corrections per wording of the spec: a hub that rewrites what it is given must not be written to for ever. */
const MAX_DRIFT = 3;
const driftsNow = (run: OpenRun, assessment: Extract<Assessment, { found: true }>): boolean =>
  !assessment.specMatches &&
  run.deletion === undefined &&
  run.drift < MAX_DRIFT &&
  run.applied?.revision === run.specRevision &&
  run.effects['apply']?.status === 'done';
