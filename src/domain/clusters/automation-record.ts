import type { ClusterReport } from './commands.ts';
import type { AutomationPurpose, ClusterEvent, JobState } from './events.ts';
import type { Asked, LiveCluster, RunningJob } from './state.ts';

/** What a hub's automation was asked for, and how its jobs stand. */
type Dispatched = Extract<LiveCluster, { status: 'dispatched' }>;
type Report<Type extends ClusterReport['type']> = Extract<ClusterReport, { type: Type }>;
type DataOf<Type extends ClusterEvent['type']> = Extract<ClusterEvent, { type: Type }>['data'];

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

const jobFacts = (job: Omit<RunningJob, 'seenAt' | 'vanished'> | undefined) =>
  job === undefined
    ? {}
    : {
        job: job.id,
        template: job.template,
        ...(job.workflow ? { workflow: true as const } : {}),
        createdAt: job.createdAt,
        // From the platform's own closed list.
        state: job.state as JobState,
        ...(job.outputTail === undefined ? {} : { outputTail: job.outputTail }),
      };

/** States of a retry's job that say nothing new: it runs, or it has failed like the ones before. */
const RUNNING: readonly string[] = ['Pending', 'Waiting', 'Running'];
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
    const { vanished: _known, ...job } = known;
    const tail = shown.outputTail === undefined ? {} : { outputTail: shown.outputTail };
    const data = { ...requestOf(shown.purpose, asked, { ...job, ...tail, state: shown.state }) };
    return [{ type: 'AutomationTried', data: { ...data, at: shown.at } }];
  }
  return [
    ...toldRetry(state, mode, shown.purpose),
    { type: 'AutomationJobChanged', data: { ...shown, hub, template: known.template } },
  ];
};

const requestOf = (purpose: AutomationPurpose, { at, wording, repeats, again }: Asked, job?: RunningJob) => ({
  at,
  purpose,
  wording,
  repeats,
  ...(again === undefined ? {} : { again }),
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

export const requested = (
  state: Dispatched,
  data: DataOf<'AutomationRequested'> | DataOf<'AutomationTried'>,
  isTold: boolean,
): Dispatched => {
  const { at, purpose, wording, repeats, again } = data;
  const known = state.asked[purpose];
  const isSame = known?.wording === wording && known.repeats === repeats;
  const job = jobOf(data, at);
  const { untold: _untold, job: former, failed, ...kept } = isSame ? known : { at, wording, repeats };
  const before = isSame ? failed : repeats > 0 ? known?.job : undefined;
  const asked: Asked = {
    ...kept,
    ...(again === undefined ? {} : { again }),
    ...(job === undefined ? (former === undefined ? {} : { job: former }) : { job }),
    ...(before === undefined ? {} : { failed: before }),
    ...(isTold ? {} : { untold: true }),
  };
  const { otherChanged, ...rest } = state;
  // A change that came after it was asked waits for the next request.
  const waits = otherChanged === true && (isSame || purpose !== 'provision' || state.specPending);
  const next: Dispatched = {
    ...rest,
    ...(waits ? { otherChanged } : {}),
    asked: { ...state.asked, [purpose]: asked },
  };
  if (!isTold || isSame) return next;
  // What is to be seen of it since, the next look says.
  const { work: _work, ...seen } = next.seen;
  return { ...next, seen };
};

const jobOf = (
  data: DataOf<'AutomationRequested'> | DataOf<'AutomationTried'>,
  seenAt: string,
): RunningJob | undefined =>
  data.job === undefined
    ? undefined
    : {
        id: data.job,
        workflow: data.workflow === true,
        template: data.template ?? '',
        state: data.state ?? '',
        createdAt: data.createdAt ?? seenAt,
        ...(data.outputTail === undefined ? {} : { outputTail: data.outputTail }),
        seenAt,
      };

export const jobChanged = (
  state: Dispatched,
  { at, purpose, job: id, state: shown, vanished, outputTail }: DataOf<'AutomationJobChanged'>,
): Dispatched => {
  const asked = state.asked[purpose];
  if (asked?.job?.id !== id) return state;
  const { vanished: _vanished, outputTail: _tail, ...kept } = asked.job;
  const job = {
    ...kept,
    state: shown,
    ...(vanished === true ? { vanished } : {}),
    ...(outputTail === undefined ? {} : { outputTail }),
    seenAt: at,
  };
  return { ...state, asked: { ...state.asked, [purpose]: { ...asked, job } } };
};
