import type { JsonObject } from '../../../src/domain/json.ts';
import { sleep } from '../stand-in/server.ts';

export type AapStatus =
  | 'new'
  | 'pending'
  | 'waiting'
  | 'running'
  | 'successful'
  | 'failed'
  | 'error'
  | 'canceled';

export type AapTemplate = {
  readonly id: number;
  readonly name: string;
  readonly workflow: boolean;
  /** "Prompt on launch" of its variables. */
  readonly asksVariables: boolean;
};

export type AapJob = {
  readonly id: number;
  readonly template: AapTemplate;
  readonly variables: JsonObject;
  readonly created: string;
  status: AapStatus;
  started?: string;
  finished?: string;
  stdout: string;
  traceback: string;
  /** Its record was removed: it answers 404. */
  vanished: boolean;
  /** Of a workflow: the job that does the work. */
  readonly inner?: AapJob;
};

/** How a job ends. */
export type AapEnd = {
  readonly status: 'successful' | 'failed' | 'error';
  readonly stdout?: string;
  readonly traceback?: string;
};

/** Milliseconds in each state; `by-hand`: a job moves only when it is told to. */
export type AapPace =
  | { readonly pendingMs: number; readonly waitingMs: number; readonly runningMs: number }
  | 'by-hand';

export type AapJobs = {
  readonly all: readonly AapJob[];
  add(template: AapTemplate, variables: JsonObject): AapJob;
  /** To the next state; the last step ends it as it was told, or successfully. */
  advance(id: number): Promise<AapStatus>;
  /** How the jobs that end next do so, in order. */
  endNext(end: AapEnd): void;
  /** False: it had ended. */
  cancel(job: AapJob): boolean;
  stop(): void;
};

const ENDED: readonly AapStatus[] = ['successful', 'failed', 'error', 'canceled'];
export const hasEnded = ({ status }: AapJob): boolean => ENDED.includes(status);

/** pending → waiting → running → end; what the playbook does happens while it runs. */
export const aapJobs = (options: {
  readonly pace: AapPace;
  readonly now: () => string;
  readonly playbook: (job: AapJob) => Promise<void>;
}): AapJobs => {
  const { pace, now, playbook } = options;
  const all: AapJob[] = [];
  const ends: AapEnd[] = [];
  let ids = 100;
  let stopped = false;

  const end = (job: AapJob, { status, stdout = 'ok', traceback = '' }: AapEnd): void => {
    for (const each of [job.inner, job]) {
      if (each === undefined) continue;
      Object.assign(each, { status, stdout, traceback, finished: now() });
    }
  };

  const advance = async (job: AapJob): Promise<AapStatus> => {
    if (hasEnded(job)) return job.status;
    if (job.status === 'new') job.status = 'pending';
    else if (job.status === 'pending') job.status = 'waiting';
    else if (job.status === 'waiting') {
      job.status = 'running';
      job.started = now();
      await playbook(job).catch((error: unknown) => {
        if (!hasEnded(job)) end(job, { status: 'failed', stdout: String(error) });
      });
    } else end(job, ends.shift() ?? { status: 'successful' });
    return job.status;
  };

  const run = async (job: AapJob): Promise<void> => {
    if (pace === 'by-hand') return;
    for (const ms of [pace.pendingMs, pace.waitingMs, pace.runningMs]) {
      await sleep(ms);
      if (stopped) return;
      await advance(job);
    }
  };

  const made = (template: AapTemplate, variables: JsonObject): AapJob => ({
    id: (ids += 1),
    template,
    variables,
    created: now(),
    status: 'pending',
    stdout: '',
    traceback: '',
    vanished: false,
  });

  return {
    all,
    add: (template, variables) => {
      const inner = template.workflow ? { inner: made({ ...template, workflow: false }, variables) } : {};
      const job = { ...made(template, variables), ...inner };
      all.push(job);
      void run(job);
      return job;
    },
    advance: async (id) => {
      const job = all.find((each) => each.id === id);
      if (job === undefined) throw new Error(`there is no job ${id}`);
      return advance(job);
    },
    endNext: (next) => void ends.push(next),
    cancel: (job) => {
      if (hasEnded(job)) return false;
      Object.assign(job, { status: 'canceled', finished: now() });
      return true;
    },
    stop: () => {
      stopped = true;
    },
  };
};
