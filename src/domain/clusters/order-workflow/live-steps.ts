import { sameJson } from '../../json-tools.ts';
import { failureSentence } from '../failure-texts.ts';
import { reasonsOf } from '../report.ts';
import { JOB_STATUS, suspected } from './run.ts';
import { JOB_STATUS_DEADLINE_MS, type Step } from './step.ts';
import { answeredFor, cluster } from './work.ts';

/** What goes on beside the way to READY: waiting, observing, reporting. */
export const LIVE: readonly Step[] = [
  {
    name: 'defer',
    phase: 'live',
    after: [],
    needed: (run) => run.waiting !== undefined,
    done: (run) =>
      run.shownWaiting !== undefined &&
      run.waiting !== undefined &&
      run.shownWaiting.message === run.waiting.message &&
      sameJson(reasonsOf(run.shownWaiting.decision), reasonsOf(run.waiting.decision)),
    work: ({ waiting, capacityTries }) =>
      waiting === undefined
        ? undefined
        : cluster(capacityTries, {
            type: 'DeferPlacement',
            at: waiting.at,
            message: waiting.message,
            decision: waiting.decision,
          }),
  },
  {
    name: 'record',
    phase: 'live',
    after: [],
    needed: (run) => run.observation?.assessment.found === true,
    done: (run) => answeredFor(run, 'record', run.observation?.number ?? 0),
    work: ({ observation }) =>
      observation === undefined
        ? undefined
        : cluster(observation.number, {
            type: 'RecordObservation',
            at: observation.at,
            assessment: observation.assessment,
          }),
  },
  {
    name: 'report-lost',
    phase: 'live',
    after: [],
    needed: (run) => run.gone !== undefined && run.gone === suspected(run),
    done: (run) => answeredFor(run, 'report-lost', run.observation?.number ?? 0),
    work: (run, at) =>
      run.gone === undefined
        ? undefined
        : cluster(run.observation?.number ?? 0, { type: 'ReportLost', at, what: run.gone }),
  },
  {
    // Only waited for: conditions tell of it once it takes too long.
    name: JOB_STATUS,
    phase: 'live',
    after: [],
    needed: ({ observation }) =>
      observation?.assessment.found === true && observation.assessment.jobUnknown === true,
    done: () => false,
    deadline: { ms: JOB_STATUS_DEADLINE_MS },
  },
  {
    name: 'report-problem',
    phase: 'live',
    after: [],
    needed: (run) => run.problem !== undefined,
    done: () => false,
    work: ({ problem }) => {
      if (problem === undefined) return undefined;
      const { number, at, reason, message: detail, permanent, told } = problem;
      const failure = told === undefined ? { message: failureSentence(reason), detail } : { message: told };
      return cluster(number, { type: 'RecordFailure', at, reason, ...failure, permanent });
    },
  },
];
