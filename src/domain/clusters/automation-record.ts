import type { DataOf } from '../decider.ts';
import { defined, without } from '../json-tools.ts';
import type { ClusterReport } from './commands.ts';
import { RUNNING } from './observed-facts.ts';
import type { AutomationPurpose, ClusterEvent, JobState, Asked, Dispatched, RunningJob } from './state.ts';

/** What a hub's automation was asked for, and how its jobs stand. */
type Report<Type extends ClusterReport['type']> = Extract<ClusterReport, { type: Type }>;

/** Another try at building it: told with its count once it has succeeded. */
const isRetry = (purpose: AutomationPurpose, { repeats }: Pick<Asked, 'repeats'>): boolean =>
  purpose === 'provision' && repeats > 0;

export const recordRequest = (
  state: Dispatched,
  report: Report<'RecordAutomationRequest'>,
): ClusterEvent[] => {
  const { type: _type, observed, mode, job, ...request } = report;
  const known = state.asked[request.purpose];
  if (known?.wording === request.wording && known.repeats >= request.repeats) return [];
  const data = { ...request, ...jobFacts(job) };
  return isRetry(request.purpose, request) || (observed === true && request.repeats > 0)
    ? [{ type: 'AutomationTried', data }]
    : [{ type: 'AutomationRequested', data: { ...data, hub: state.hub.id, mode } }];
};

const jobFacts = (job: Omit<RunningJob, 'seenAt' | 'vanished'> | undefined) => {
  if (job === undefined) return {};
  const { id, template, workflow, createdAt, state, outputTail } = job;
  // The state is from the platform's own closed list.
  const facts = { job: id, template, createdAt, state: state as JobState, outputTail };
  return defined({ ...facts, workflow: workflow ? true : undefined });
};

/** States of a retry's job that say nothing new: it runs, or it has failed like the ones before. */
const UNTOLD: readonly string[] = [...RUNNING, 'Failed', 'Canceled'];

export const recordJob = (state: Dispatched, report: Report<'RecordJob'>): ClusterEvent[] => {
  const { type: _type, mode, ...shown } = report;
  const asked = state.asked[shown.purpose];
  const known = asked?.job;
  if (asked === undefined || known?.id !== shown.job) return [];
  if (known.state === shown.state && known.vanished === shown.vanished) return [];
  const hub = state.hub.id;
  if (isRetry(shown.purpose, asked) && UNTOLD.includes(shown.state)) {
    const isKnown = RUNNING.includes(shown.state) && RUNNING.includes(known.state);
    if (isKnown) return [];
    const job = { ...without(known, 'vanished'), ...defined({ outputTail: shown.outputTail }) };
    const data = requestOf(shown.purpose, asked, { ...job, state: shown.state });
    return [{ type: 'AutomationTried', data: { ...data, at: shown.at } }];
  }
  return [
    ...toldRetry(state, mode, shown.purpose),
    { type: 'AutomationJobChanged', data: { ...shown, hub, template: known.template } },
  ];
};

const requestOf = (purpose: AutomationPurpose, { at, wording, repeats, again }: Asked, job?: RunningJob) => ({
  ...defined({ at, purpose, wording, repeats, again }),
  ...jobFacts(job),
});

/** The request before it is told: people were not told of the tries that came to nothing. */
export const toldRetry = (
  state: Dispatched,
  mode: 'eda' | 'aap',
  purpose: AutomationPurpose,
): ClusterEvent[] => {
  const asked = state.asked[purpose];
  if (asked?.untold !== true) return [];
  const data = { ...requestOf(purpose, asked, asked.job), hub: state.hub.id, mode };
  return [{ type: 'AutomationRequested', data }];
};

type Request = DataOf<ClusterEvent, 'AutomationRequested' | 'AutomationTried'>;

export const requested = (state: Dispatched, data: Request, isTold: boolean): Dispatched => {
  const { at, purpose, wording, repeats, again } = data;
  const known = state.asked[purpose];
  const isSame = known?.wording === wording && known.repeats === repeats;
  const { untold: _untold, job: former, failed, ...kept } = isSame ? known : { at, wording, repeats };
  const before = isSame ? failed : repeats > 0 ? known?.job : undefined;
  const job = jobOf(data, at) ?? former;
  const asked: Asked = {
    ...kept,
    ...defined({ again, job, failed: before, untold: isTold ? undefined : true }),
  };
  // A change that came after it was asked waits for the next request.
  const waits = isSame || purpose !== 'provision' || state.specPending;
  const next: Dispatched = {
    ...(waits ? state : without(state, 'otherChanged')),
    asked: { ...state.asked, [purpose]: asked },
  };
  // What is to be seen of it since, the next look says.
  return isTold && !isSame ? { ...next, seen: without(next.seen, 'work') } : next;
};

const jobOf = (data: Request, seenAt: string): RunningJob | undefined => {
  const { job: id, workflow = false, template = '', state = '', createdAt = seenAt, outputTail } = data;
  return id === undefined
    ? undefined
    : defined({ id, workflow, template, state, createdAt, outputTail, seenAt });
};

export const jobChanged = (
  state: Dispatched,
  { at, purpose, job: id, state: shown, vanished, outputTail }: DataOf<ClusterEvent, 'AutomationJobChanged'>,
): Dispatched => {
  const asked = state.asked[purpose];
  if (asked?.job?.id !== id) return state;
  const kept = without(asked.job, 'vanished', 'outputTail');
  const job = { ...kept, ...defined({ state: shown, vanished, outputTail }), seenAt: at };
  return { ...state, asked: { ...state.asked, [purpose]: { ...asked, job } } };
};
