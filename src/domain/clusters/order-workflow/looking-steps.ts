import { mayBeOnHub } from './reconsider.ts';
import { suspected, type OpenRun } from './run.ts';
import { READ_BUSY_MS, READ_READY_MS, type Step } from './step.ts';
import { observeCall, settled } from './work.ts';

/** A look that settles passed deadlines and suspicions, recorded like every effect. */
export const checking = (phase: 'live' | 'deletion'): Step => ({
  name: `check-${phase}`,
  phase,
  after: phase === 'deletion' ? ['delete'] : [],
  needed: (run) =>
    run.applied !== undefined || (run.deletion !== undefined && mayBeOnHub(run) && !run.absenceRecorded),
  done: (run) => !needsCheck(run),
  work: (run) => settled(run, 'check', checkInstance(run), observeCall(run)),
});

/** The timed read: the only source of degradation and loss (operator-run.md §4.3). */
export const reading = (phase: 'live' | 'deletion'): Step => ({
  name: `read-${phase}`,
  phase,
  after: phase === 'deletion' ? ['delete'] : [],
  needed: (run) => (phase === 'live' ? run.applied !== undefined : mayBeOnHub(run)),
  done: (run) => run.absenceRecorded,
  work: (run) => ({
    kind: 'read',
    effect: 'read',
    everyMs: run.reached.ready && run.deletion === undefined ? READ_READY_MS : READ_BUSY_MS,
    ...observeCall(run),
  }),
});

/** A deadline that passed is looked into first, and so is what an observation misses (design §6). */
const needsCheck = (run: OpenRun): boolean => {
  if (Object.values(run.overdue).includes('fired')) return true;
  const missing = suspected(run);
  return missing !== undefined && run.gone !== missing;
};

/** Ending of the ids of checks that were made after the deletion was sent. */
export const CHECK_OF_DELETION = '.deletion';

/** One check per observation and set of passed deadlines; another one needs something new. */
const checkInstance = (run: OpenRun): string => {
  const fired = Object.entries(run.overdue).filter(([, stage]) => stage === 'fired');
  const phase = run.deletion === undefined ? '.live' : CHECK_OF_DELETION;
  return [run.cycle, run.observations, ...fired.map(([step]) => step)].join('.') + phase;
};
