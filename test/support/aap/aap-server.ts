import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import type { LoopbackTls } from '../http/loopback-tls.ts';
import { behaviours, bodyOf, sleep, standInServer } from '../stand-in/server.ts';
import { aapJobs, hasEnded, type AapJob, type AapJobs, type AapPace, type AapTemplate } from './aap-jobs.ts';

/**
 * How a launch is met. `work`: 201 with the job. `lose`: the job is launched, but the connection breaks before the
 * answer.
 * `drop`: it breaks and nothing is launched. `late`: launched, answered after so many milliseconds. `status`: refused.
 */
export type LaunchBehaviour =
  | 'work'
  | 'lose'
  | 'drop'
  | { readonly late: number }
  | { readonly status: number; readonly retryAfter?: number };

export type AapRequest = { readonly method: string; readonly path: string; readonly status: number | 'cut' };

export type AapStandIn = Pick<AapJobs, 'advance' | 'endNext'> & {
  /** Up to but without `/v2`. */
  readonly url: string;
  readonly jobs: readonly AapJob[];
  readonly requests: readonly AapRequest[];
  nextLaunch(behaviour: LaunchBehaviour, times?: number): void;
  alwaysLaunch(behaviour: LaunchBehaviour): void;
  /** The record of a job goes. */
  vanish(id: number): void;
  /** One more template. */
  addTemplate(template: Omit<AapTemplate, 'id'>): void;
  /** A template gets another id, as when it was removed and made again. */
  remakeTemplate(name: string): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
  close(): Promise<void>;
};

export type AapOptions = {
  readonly token?: string;
  readonly tls?: LoopbackTls;
  readonly port?: number;
  /** Default: both of prefix `osac`, as workflows (OSAC's operator). */
  readonly templates?: readonly Omit<AapTemplate, 'id'>[];
  /** Default: at once, one state after the other. */
  readonly pace?: AapPace;
  readonly playbook?: (job: AapJob) => Promise<void>;
  /** Milliseconds that its clock is ahead of this machine's. */
  readonly clockAheadMs?: number;
};

const BASE = '/api/controller';
const TEMPLATES: readonly Omit<AapTemplate, 'id'>[] = [
  { name: 'osac-create-hosted-cluster', workflow: true, asksVariables: true },
  { name: 'osac-delete-hosted-cluster', workflow: true, asksVariables: true },
];

type Answer = readonly [status: number, body: JsonValue | string | undefined];
const NOT_FOUND: Answer = [404, { detail: 'Not found.' }];

/** The parts of an automation controller that a launcher meets (OSAC's operator), on a server of our own. */
export const startAap = async (options: AapOptions = {}): Promise<AapStandIn> => {
  const now = (): string => new Date(Date.now() + (options.clockAheadMs ?? 0)).toISOString();
  const launches = behaviours<LaunchBehaviour>('work');
  const requests: AapRequest[] = [];
  let templates = (options.templates ?? TEMPLATES).map((template, n) => ({ ...template, id: n + 7 }));
  const jobs = aapJobs({
    pace: options.pace ?? { pendingMs: 0, waitingMs: 0, runningMs: 0 },
    now,
    playbook: options.playbook ?? (() => Promise.resolve()),
  });

  const launch = async (
    template: AapTemplate,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Answer | undefined> => {
    const { extra_vars: sent } = JSON.parse(String(await bodyOf(request))) as { extra_vars?: JsonObject };
    const behaviour = launches.take();
    if (typeof behaviour === 'object' && 'status' in behaviour) {
      if (behaviour.retryAfter !== undefined) response.setHeader('Retry-After', behaviour.retryAfter);
      return [behaviour.status, { detail: 'refused' }];
    }
    if (behaviour === 'drop') {
      response.destroy();
      return undefined;
    }
    const job = jobs.add(template, template.asksVariables ? (sent ?? {}) : {});
    if (behaviour === 'lose') {
      response.destroy();
      return undefined;
    }
    if (typeof behaviour === 'object') await sleep(behaviour.late);
    const ignored = template.asksVariables ? {} : { extra_vars: sent ?? {} };
    return [201, { ...shownJob(job), job: job.id, ignored_fields: ignored }];
  };

  const templateRoute = async (
    [id, what]: readonly string[],
    workflow: boolean,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Answer | undefined> => {
    const ofKind = templates.filter((template) => template.workflow === workflow);
    if (id === undefined || id === '') {
      const name = query.get('name');
      const results = ofKind.filter((template) => name === null || template.name === name).map(shownTemplate);
      return [200, { count: results.length, next: null, previous: null, results }];
    }
    const template = ofKind.find((each) => each.id === Number(id));
    if (template === undefined) return NOT_FOUND;
    if (what === 'launch' && request.method === 'POST') return launch(template, request, response);
    if (what === (workflow ? 'workflow_jobs' : 'jobs')) {
      return page(
        jobs.all.filter((job) => job.template.name === template.name),
        query,
      );
    }
    return what === undefined || what === '' ? [200, shownTemplate(template)] : NOT_FOUND;
  };

  const jobRoute = (
    [id, what]: readonly string[],
    workflow: boolean,
    query: URLSearchParams,
    method: string,
  ): Answer => {
    const inner = workflow ? [] : jobs.all.flatMap((job) => (job.inner === undefined ? [] : [job.inner]));
    const all = [...jobs.all.filter((job) => job.template.workflow === workflow), ...inner];
    if (id === undefined || id === '') return page(all, query);
    const job = all.find((each) => each.id === Number(id));
    if (job === undefined || job.vanished) return NOT_FOUND;
    if (what === 'cancel') {
      if (method === 'GET') return [200, { can_cancel: !hasEnded(job) }];
      return jobs.cancel(job) ? [202, undefined] : [405, { detail: 'Method "POST" not allowed.' }];
    }
    if (what === 'stdout' && !workflow) return [200, job.stdout];
    if (what === 'workflow_nodes' && job.inner !== undefined) {
      const { id: innerId, status } = job.inner;
      return [200, { count: 1, next: null, results: [{ summary_fields: { job: { id: innerId, status } } }] }];
    }
    return what === undefined || what === '' ? [200, shownJob(job)] : NOT_FOUND;
  };

  const answerTo = async (
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Answer | undefined> => {
    const url = new URL(request.url ?? '/', 'http://platform');
    const { token } = options;
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return [401, { detail: 'Authentication credentials were not provided.' }];
    }
    if (!url.pathname.startsWith(`${BASE}/v2/`)) return [404, '<html>no such page</html>'];
    const [kind, ...rest] = url.pathname.slice(BASE.length + 4).split('/');
    const query = url.searchParams;
    switch (kind) {
      case 'job_templates':
      case 'workflow_job_templates':
        return templateRoute(rest, kind === 'workflow_job_templates', query, request, response);
      case 'jobs':
      case 'workflow_jobs':
        return jobRoute(rest, kind === 'workflow_jobs', query, request.method ?? 'GET');
      default:
        return NOT_FOUND;
    }
  };

  const server = await standInServer(async (request, response) => {
    const answer = await answerTo(request, response);
    const { method = 'GET', url: path = '' } = request;
    requests.push({ method, path: path.slice(BASE.length), status: answer?.[0] ?? 'cut' });
    if (answer === undefined) return;
    const [status, body] = answer;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' ? 'text/plain' : 'application/json';
    response.writeHead(status, { 'Content-Type': type, Date: new Date(now()).toUTCString() });
    response.end(text);
  }, options);

  return {
    url: `${server.url}${BASE}`,
    jobs: jobs.all,
    requests,
    advance: jobs.advance,
    endNext: jobs.endNext,
    nextLaunch: launches.next,
    alwaysLaunch: launches.always,
    vanish: (id) => {
      for (const job of jobs.all) if (job.id === id) job.vanished = true;
    },
    addTemplate: (template) => {
      templates = [...templates, { ...template, id: templates.length + 7 }];
    },
    remakeTemplate: (name) => {
      templates = templates.map((each) => (each.name === name ? { ...each, id: each.id + 1000 } : each));
    },
    kill: server.close,
    restart: server.listen,
    close: async () => {
      jobs.stop();
      await server.close();
    },
  };
};

/** A page of a list; AWX refuses to filter by what may hold secrets. */
const page = (jobs: readonly AapJob[], query: URLSearchParams): Answer => {
  if ([...query.keys()].some((key) => key.startsWith('extra_vars'))) {
    return [403, { detail: 'Filtering on extra_vars is not allowed.' }];
  }
  const from = Date.parse(query.get('created__gte') ?? '1970-01-01T00:00:00Z');
  const found = jobs
    .filter((job) => !job.vanished && Date.parse(job.created) >= from)
    .toSorted((left, right) => left.id - right.id);
  const size = Math.min(Number(query.get('page_size') ?? 25), 200);
  const number = Number(query.get('page') ?? 1);
  const results = found.slice((number - 1) * size, number * size).map(shownJob);
  if (number > 1 && results.length === 0) return [404, { detail: 'Invalid page.' }];
  const more = found.length > number * size;
  return [200, { count: found.length, next: more ? `/api/v2/jobs/?page=${number + 1}` : null, results }];
};

const shownTemplate = ({ id, name, asksVariables }: AapTemplate): JsonObject => ({
  id,
  name,
  ask_variables_on_launch: asksVariables,
});

const shownJob = (job: AapJob): JsonObject => ({
  id: job.id,
  type: job.template.workflow ? 'workflow_job' : 'job',
  name: job.template.name,
  status: job.status,
  created: job.created,
  started: job.started ?? null,
  finished: job.finished ?? null,
  extra_vars: JSON.stringify(job.variables),
  result_traceback: job.traceback,
});

/** The order that a job was given. */
export const orderOfJob = ({ variables }: AapJob): JsonObject =>
  objectAt(objectAt(variables, 'osac_job_vars'), 'resource');
