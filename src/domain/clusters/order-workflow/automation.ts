import { defined } from '../../json-tools.ts';
import { doubled, later, type Backoff } from '../../process/effects.ts';
import type { AutomationPurpose, RunningJob } from '../state.ts';
import type { HubWork } from '../observed.ts';
import { RUNNING } from '../observed-facts.ts';
import { automationMode, onItsHub, provisionWording, type OrderRun } from './run.ts';

/**
 * When the automation of a hub is asked, and asked again. In aap mode a job tells how it ended; in eda mode a webhook
 * that was taken is a promise of nothing (OSAC's operator): what came of it is read off the hub.
 */
export type Request = {
  readonly wording: string;
  readonly repeats: number;
  readonly notBefore?: string;
  /** The cluster was built before: what of it is to be changed. */
  readonly again?: 'nodes' | 'other';
  /** When it was asked for the same before and nothing came of it: to be looked at again before it is repeated. */
  readonly since?: string;
  /** What came of it took the HostedCluster away and left Ansible's mark: that it is gone shows nothing of a repetition. */
  readonly cleaning?: true;
};

const MINUTE = 60_000;
/** As the operator does after a failed job: 2 to 30 minutes, doubling. */
const RETRY: Backoff = { firstMs: 2 * MINUTE, maxMs: 30 * MINUTE };
/** A webhook of which nothing is to be seen for so long may have been lost with its rulebook. */
const REPOST: Backoff = { firstMs: 5 * MINUTE, maxMs: 30 * MINUTE };
/** Cleaning up after a HostedCluster may take that long. */
const CLEANING: Backoff = { firstMs: 30 * MINUTE, maxMs: 120 * MINUTE };
/** A webhook's playbook that is still at work is not disturbed for so long: it holds a lock that the next one needs. */
const PLAYBOOK_MS = 60 * MINUTE;

/** A job that may still do something; one without a record counts as ended. */
export const isRunning = (job: RunningJob | undefined): job is RunningJob =>
  job !== undefined && job.vanished !== true && RUNNING.includes(job.state);

/** Still worth looking at: also a job whose state is not known may show one again. */
export const isUnsettled = (job: RunningJob | undefined): job is RunningJob =>
  job !== undefined && (job.state === 'Unknown' || RUNNING.includes(job.state));

const hasEndedBadly = (job: RunningJob | undefined): job is RunningJob =>
  job?.state === 'Failed' || job?.state === 'Canceled';

/** The first request for the present wording; undefined while the job before it is known to be running. */
export const firstRequest = (run: OrderRun): Request | undefined => {
  const { asked, otherChanged, seen } = onItsHub(run) ?? { asked: {} };
  const { provision } = asked;
  const first: Request = { wording: provisionWording(run), repeats: 0 };
  if (provision === undefined) return first;
  const request: Request = { ...first, again: otherChanged === true ? 'other' : 'nodes' };
  if (automationMode(run) === 'aap') return isRunning(provision.job) ? undefined : request;
  if (provision.finished === true) return request;
  const wait = seen?.work === 'busy' ? PLAYBOOK_MS : REPOST.firstMs;
  return { ...request, notBefore: later(provision.at, wait) };
};

/** Another request for the same; undefined while the last one needs none. */
export const repeatedRequest = (run: OrderRun, purpose: AutomationPurpose): Request | undefined => {
  const { asked: all, seen } = onItsHub(run) ?? { asked: {} };
  const asked = all[purpose];
  if (asked === undefined) return undefined;
  const { wording, repeats, job, again } = asked;
  const next = defined({ wording, repeats: repeats + 1, again });
  if (automationMode(run) === 'aap') {
    return hasEndedBadly(job)
      ? { ...next, notBefore: later(job.seenAt, doubled(RETRY, repeats)) }
      : undefined;
  }
  const work = seen?.work;
  const wait = patience(purpose, work, repeats);
  if (wait === undefined) return undefined;
  return { ...next, ...notShownBy(purpose, work, again), notBefore: later(asked.at, wait), since: asked.at };
};

/** What stands there already, and so says nothing of a repetition. */
const notShownBy = (
  purpose: AutomationPurpose,
  work: HubWork | undefined,
  again: Request['again'],
): Pick<Request, 'again' | 'cleaning'> => {
  if (purpose === 'deprovision') return work === 'cleaning' ? { cleaning: true } : {};
  // Finalizer and HostedCluster stand, and node pools are left out.
  return work === 'resting' && again === undefined ? { again: 'nodes' } : {};
};

const patience = (
  purpose: AutomationPurpose,
  work: HubWork | undefined,
  repeats: number,
): number | undefined => {
  if (work === 'nothing' || (purpose === 'provision' && work === 'resting')) {
    return doubled(REPOST, repeats);
  }
  const cleans = purpose === 'deprovision' && work === 'cleaning';
  return cleans ? doubled(CLEANING, repeats) : undefined;
};

/** Something may have been built: the automation was asked for it, or may have been. */
export const wasAsked = (run: OrderRun): boolean =>
  onItsHub(run)?.asked.provision !== undefined || run.effects['trigger'] !== undefined;
