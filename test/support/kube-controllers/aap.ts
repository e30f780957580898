import type { JsonObject } from '../../../src/domain/json.ts';
import type { PlayClock } from './clock.ts';
import type { PlayedAnsible, PlaybookRun } from './ansible.ts';

/** What the operator needs of an automation service. Errors are thrown; they keep it from writing any status. */
export type Automation = {
  /** The job's id. */
  launch(kind: 'create' | 'delete', order: JsonObject): Promise<string>;
  /** AAP's word for the state; undefined: it knows no such job. */
  poll(id: string): Promise<{ readonly status: string; readonly traceback: string } | undefined>;
  cancel(id: string): Promise<void>;
};

export type AapTimings = {
  readonly pending: number;
  readonly waiting: number;
};

export const AAP_TIMINGS: AapTimings = { pending: 400, waiting: 400 };

type Job = {
  readonly id: string;
  readonly kind: 'create' | 'delete';
  readonly order: JsonObject;
  readonly launchedAt: number;
  run: PlaybookRun | undefined;
  canceled: boolean;
};

/** Plays the Automation Platform: jobs that wait, run a playbook and end. No idempotency: each launch is a job. */
export const playAap = (ansible: PlayedAnsible, clock: PlayClock, timings: AapTimings) => {
  const jobs = new Map<string, Job>();
  let next = 101;
  let down = false;
  let losing = 0;

  const requireUp = (): void => {
    if (down) throw new Error('the automation service answers 503');
  };

  const statusOf = (job: Job): string => {
    if (job.canceled) return 'canceled';
    const age = clock.now() - job.launchedAt;
    if (job.run === undefined) return age < timings.pending ? 'pending' : 'waiting';
    return job.run.result() ?? 'running';
  };

  const automation: Automation = {
    launch: async (kind, order) => {
      await Promise.resolve();
      requireUp();
      const id = String(next);
      next += 1;
      jobs.set(id, { id, kind, order, launchedAt: clock.now(), run: undefined, canceled: false });
      if (losing > 0) {
        losing -= 1;
        throw new Error(`the answer to the launch of job ${id} was lost`);
      }
      return id;
    },
    poll: async (id) => {
      await Promise.resolve();
      requireUp();
      const job = jobs.get(id);
      return job === undefined ? undefined : { status: statusOf(job), traceback: job.run?.traceback() ?? '' };
    },
    cancel: async (id) => {
      await Promise.resolve();
      requireUp();
      cancel(id);
    },
  };

  const cancel = (id: string): void => {
    const job = jobs.get(id);
    if (job === undefined || job.run?.result() !== undefined) return;
    job.canceled = true;
    job.run?.cancel();
  };

  return {
    automation,
    /** One pass: waiting jobs begin when their time has come. */
    step: (): void => {
      for (const job of jobs.values()) {
        const due = clock.now() - job.launchedAt >= timings.pending + timings.waiting;
        if (job.run === undefined && !job.canceled && due) job.run = ansible.start(job.kind, job.order);
      }
    },
    /** Refuses everything until `up`. */
    down: (): void => void (down = true),
    up: (): void => void (down = false),
    /** The next launch is accepted and its answer lost: what an operator meets that dies in between (k3). */
    loseNext: (): void => void (losing += 1),
    /** Somebody cancels a job in AAP. */
    cancel,
    /** The record of a job is gone: polls find nothing. */
    forget: (id: string): void => void jobs.delete(id),
    /** Every launch so far, oldest first. */
    launches: (): readonly { readonly id: string; readonly kind: string; readonly order: JsonObject }[] => [
      ...jobs.values(),
    ],
  };
};

export type PlayedAap = ReturnType<typeof playAap>;
