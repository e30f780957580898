import type { Agenda } from '../../agenda.ts';
import { kubernetesTime, REACTION_MS } from '../../record.ts';
import type { Job, OrderObject, OrderRecord } from './status-view.ts';

/** Jobs of one order that can be told apart by id; more would need months. */
const JOBS_PER_ORDER = 100_000;
/** `OSAC_MAX_JOB_HISTORY`. */
const KEPT_JOBS = 10;
/** Retries: max(retry, 2 × gap), at most 30 min, as the operator's. */
const LONGEST_RETRY_MS = 30 * 60_000;
const TERMINAL: ReadonlySet<Job['state']> = new Set(['Succeeded', 'Failed', 'Canceled']);

export type LaunchedJob = {
  /** Counted from 1 over all jobs of the order. */
  readonly number: number;
  /** After so many milliseconds, unless a newer job was launched or the order is gone by then. */
  readonly later: (ms: number, run: () => void) => void;
};
export type Jobs = ReturnType<typeof createJobs>;

/** Automation jobs of one order: only the latest counts, earlier ones have ended or were canceled. */
export const createJobs = (record: OrderRecord, agenda: Agenda, order: OrderObject) => {
  const { retry } = record.life;
  let latest: { readonly launchedAt: number; active: boolean } | undefined;
  let launches = 0;
  let lastGap = 0;

  return {
    /** True while a job runs. */
    isActive: (): boolean => latest?.active === true,
    /** Nobody looks after the latest job any more. */
    abandon: (): void => {
      latest = undefined;
    },
    launch: (type: Job['type']): LaunchedJob => {
      launches += 1;
      const started = { launchedAt: agenda.now(), active: true };
      latest = started;
      const job: Job = {
        jobId: String(record.sequence * JOBS_PER_ORDER + launches),
        type,
        state: 'Pending',
        timestamp: kubernetesTime(agenda.now()),
        message: type === 'provision' ? 'Provisioning job triggered' : 'Deprovisioning job triggered',
        ...(type === 'provision' ? { configVersion: order.specVersion() } : {}),
      };
      order.note({ jobs: [...order.status().jobs, job].slice(-KEPT_JOBS) });
      return {
        number: launches,
        later: (ms, run) =>
          order.later(ms, () => {
            if (latest === started) run();
          }),
      };
    },
    /** Notes the state of the latest job; a terminal one ends it. */
    note: (state: Job['state'], message: string): void => {
      const { jobs } = order.status();
      const last = jobs.length - 1;
      order.note({ jobs: jobs.map((job, index) => (index === last ? { ...job, state, message } : job)) });
      if (latest !== undefined && TERMINAL.has(state)) latest.active = false;
    },
    /** Milliseconds until the operator launches again by itself; the pause counts from the launch. */
    retryDelay: (failed: boolean): number => {
      lastGap = failed ? Math.min(Math.max(retry, 2 * lastGap), Math.max(retry, LONGEST_RETRY_MS)) : retry;
      const since = agenda.now() - (latest?.launchedAt ?? agenda.now());
      return Math.max(REACTION_MS, lastGap - since);
    },
    succeeded: (): void => {
      lastGap = 0;
    },
  };
};
