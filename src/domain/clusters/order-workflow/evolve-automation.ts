import { isObject, listAt, stringAt, textOf } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { RunEvent } from '../../process/events.ts';
import type { ClusterReport } from '../commands.ts';
import type { AutomationPurpose, JobState } from '../events.ts';
import { firstRequest } from './automation.ts';
import { automationMode, type Asked, type OpenRun, type RunningJob } from './run.ts';

/** Folds what became of requests to a hub's automation, and of our part as the controller of its orders. */
type Succeeded = Extract<RunEvent, { type: 'EffectSucceeded' }>['data'];

/** Something that the cluster is to be told, after what it is to be told already. */
export const withNews = (run: OpenRun, ...reports: readonly ClusterReport[]): OpenRun => ({
  ...run,
  newsCount: run.newsCount + reports.length,
  news: [...run.news, ...reports.map((report, i) => ({ number: run.newsCount + 1 + i, report }))],
});

export const withoutNews = (run: OpenRun, instance: string): OpenRun => ({
  ...run,
  news: run.news.filter(({ number }) => String(number) !== instance),
});

/** The automation took a request: the effect's instance is `<wording>.<repeats>`. */
export const requestTaken = (
  run: OpenRun,
  purpose: AutomationPurpose,
  { effectId, result, at }: Succeeded,
): OpenRun => {
  const mode = automationMode(run);
  // A look at what an attempt has left found nothing, or the order was gone before it.
  const job = jobOf(result['job'], at);
  if (mode === undefined || (job === undefined && result['queued'] !== true)) return run;
  const instance = effectId.slice(effectId.indexOf(':') + 1);
  const dot = instance.lastIndexOf('.');
  const [wording, repeats] = [instance.slice(0, dot), Number(instance.slice(dot + 1))];
  const wanted = repeats > 0 ? run.asked[purpose] : purpose === 'provision' ? firstRequest(run) : undefined;
  const former = repeats > 0 ? run.asked[purpose]?.job : undefined;
  const asked: Asked = {
    wording,
    repeats,
    at,
    ...(former === undefined ? {} : { failed: former }),
    ...(job === undefined ? {} : { job }),
    ...(wanted?.again === undefined ? {} : { again: wanted.again }),
  };
  const { otherChanged, ...kept } = run;
  const next: OpenRun = {
    ...kept,
    // A change that came after it was asked waits for the next request.
    ...(otherChanged === true && (purpose !== 'provision' || run.applied?.revision !== run.specRevision)
      ? { otherChanged }
      : {}),
    asked: { ...run.asked, [purpose]: asked },
    // The next look says how things are since.
    recordNext: true,
  };
  // It was not asked again: the request before shows after all.
  if (repeats > 0 && result['did'] === 'observed') return next;
  return isRetry(purpose, asked) ? next : withNews(next, ...requestNews(next, purpose, asked));
};

/** Another try at building it: counted, and told with its count once it has succeeded. */
const isRetry = (purpose: AutomationPurpose, { repeats }: Asked): boolean =>
  purpose === 'provision' && repeats > 0;

const requestNews = (run: OpenRun, purpose: AutomationPurpose, asked: Asked): readonly ClusterReport[] => {
  const mode = automationMode(run);
  const { at, repeats, job } = asked;
  const ran = job === undefined ? {} : { job: job.id, template: job.template };
  return mode === undefined ? [] : [{ type: 'RecordAutomationRequest', at, mode, purpose, repeats, ...ran }];
};

const jobOf = (shown: JsonObject[string] | undefined, seenAt: string): RunningJob | undefined => {
  if (!isObject(shown)) return undefined;
  const tail = stringAt(shown, 'outputTail');
  return {
    id: stringAt(shown, 'id'),
    workflow: shown['workflow'] === true,
    template: stringAt(shown, 'template'),
    state: stringAt(shown, 'state'),
    createdAt: stringAt(shown, 'createdAt') || seenAt,
    ...(tail === '' ? {} : { outputTail: tail }),
    seenAt,
  };
};

export const jobSeen = (
  run: OpenRun,
  {
    at,
    purpose,
    job: id,
    state,
    vanished,
    outputTail,
  }: Extract<RunEvent, { type: 'AutomationJobSeen' }>['data'],
): OpenRun => {
  const asked = run.asked[purpose];
  if (asked?.job?.id !== id) return run;
  const { vanished: _vanished, outputTail: _tail, ...kept } = asked.job;
  const tail = outputTail === undefined ? {} : { outputTail };
  const job = { ...kept, state, ...(vanished === true ? { vanished } : {}), ...tail, seenAt: at };
  const next = { ...run, asked: { ...run.asked, [purpose]: { ...asked, job } }, recordNext: true };
  const retry = isRetry(purpose, asked);
  if (retry && UNTOLD.includes(state)) return next;
  return withNews(next, ...(retry ? requestNews(next, purpose, { ...asked, job }) : []), {
    type: 'RecordJob',
    at,
    purpose,
    job: id,
    template: job.template,
    // Recorded from the platform's own closed list.
    state: state as JobState,
    ...tail,
  });
};

/** States of a retry's job that say nothing new: it runs, or it has failed like the ones before. */
const UNTOLD: readonly string[] = ['Pending', 'Waiting', 'Running', 'Failed', 'Canceled'];

/** Finalizer, namespace and rights are there. */
export const prepared = (run: OpenRun, { result, at }: Succeeded): OpenRun => {
  const created = listAt(result, 'created').map(textOf);
  return created.length === 0 ? run : withNews(run, { type: 'RecordPrepared', at, created });
};

/** The order's spec is as ordered again: which of its fields somebody had changed. */
export const driftCorrected = (run: OpenRun, { effectId, result, at }: Succeeded): OpenRun => {
  const isDrift = !effectId.endsWith('.0') && result['did'] === 'patched';
  const fields = listAt(result, 'fields').map(textOf);
  return isDrift ? withNews(run, { type: 'RecordDriftCorrected', at, fields }) : run;
};

/** A webhook of which the hub shows that it was carried out. */
export const withFinished = (run: OpenRun): OpenRun => {
  const { provision } = run.asked;
  const assessment = run.observation?.assessment;
  const isFinished =
    provision !== undefined &&
    provision.finished !== true &&
    assessment?.found === true &&
    assessment.work === 'finished' &&
    run.deletion === undefined &&
    run.observation !== undefined &&
    run.observation.at > provision.at &&
    run.applied?.revision === run.specRevision;
  if (!isFinished) return run;
  const next = { ...run, asked: { ...run.asked, provision: { ...provision, finished: true as const } } };
  return isRetry('provision', provision) ? withNews(next, ...requestNews(run, 'provision', provision)) : next;
};
