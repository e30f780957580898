import {
  AutomationError,
  type Automation,
  type AutomationConnection,
  type AutomationJob,
  type AutomationPurpose,
} from '../../../app/automation/automation.ts';
import type { CallOptions } from '../../../app/hubs/management-cluster.ts';
import type { SecretStore } from '../../../app/ports.ts';
import { templateOf, type OwnedObject } from '../../../domain/hubs/hub-object.ts';
import { objectAt, stringAt, own } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { redacted, secretsInPullSecret, tailOf, withoutControls } from '../../../domain/redact.ts';
import { playbookSafe } from '../playbook-safe.ts';
import {
  nodePage,
  variablesOf,
  type JobAnswer,
  jobAnswer,
  jobOf,
  jobPage,
  templateClock,
  templatePage,
} from './answers.ts';
import { type Platform, createPlatform } from './platform.ts';

/** Characters of a failed job's output that are kept. */
export const MAX_TAIL = 4_000;
/** Read to find them: what is taken out must be whole to be recognised. */
const READ_BYTES = 512 * 1024;
const TOO_LARGE = 'Standard Output too large to display';

/**
 * The end of a failed job's output without anything that is or looks like a credential. A workflow has no output of its
 * own: then that of its first failed job. Empty when there is none; a job's state is worth more than its output, so
 * what goes wrong here is not thrown.
 */
const outputTailOf = async (
  platform: Platform,
  ref: { readonly id: string; readonly workflow: boolean },
  job: JobAnswer,
  call: CallOptions,
): Promise<string> => {
  const known = secretsOf(variablesOf(job));
  const clean = (text: string, secret: readonly string[]): string =>
    tailOf(redacted(withoutControls(text), [...known, ...secret]).trim(), MAX_TAIL);
  try {
    const id = ref.workflow ? await failedJobOf(platform, ref.id, call) : ref.id;
    const output = id === undefined ? undefined : await outputOf(platform, id, call);
    if (output !== undefined && output.text.trim() !== '') {
      // The first line is only a part of one when the beginning was left out.
      const whole = output.cut ? output.text.slice(output.text.indexOf('\n') + 1) : output.text;
      return clean(whole, output.secret);
    }
  } catch (error) {
    if (!(error instanceof AutomationError)) throw error;
  }
  return clean(job.result_traceback ?? '', []);
};

const outputOf = async (
  platform: Platform,
  id: string,
  call: CallOptions,
): Promise<Awaited<ReturnType<Platform['tail']>>> => {
  const shown = await platform.tail(`/jobs/${id}/stdout/?format=txt`, READ_BYTES, call);
  return shown?.text.startsWith(TOO_LARGE)
    ? platform.tail(`/jobs/${id}/stdout/?format=txt_download`, READ_BYTES, call)
    : shown;
};

const failedJobOf = async (
  platform: Platform,
  id: string,
  call: CallOptions,
): Promise<string | undefined> => {
  const nodes = await platform.get(`/workflow_jobs/${id}/workflow_nodes/?page_size=100`, nodePage, call);
  const failed = nodes?.value.results
    .map((node) => node.summary_fields?.job)
    .find((job) => job !== undefined && ['failed', 'error'].includes(job.status));
  return failed === undefined ? undefined : String(failed.id);
};

/** Credentials that the job was given with the order. */
const secretsOf = (variables: JsonObject): readonly string[] =>
  [
    objectAt(objectAt(variables, 'osac_job_vars'), 'resource'),
    objectAt(objectAt(objectAt(variables, 'ansible_eda'), 'event'), 'payload'),
  ].flatMap((order) => {
    const pullSecret = stringAt(objectAt(order, 'spec'), 'pullSecret');
    return pullSecret === '' ? [] : secretsInPullSecret(pullSecret);
  });

/** Extra variable by which a launch is found again; playbooks take no notice of it. */
export const EFFECT_VARIABLE = 'osac_effect_id';

type Template = {
  readonly id: number;
  readonly name: string;
  readonly workflow: boolean;
  readonly takesVariables: boolean;
};
type JobRef = { readonly id: string; readonly workflow: boolean };

const PAGE = 50;
/** Templates come rarely, and each is a question or two: they are looked for again with every so manieth look. */
const LOOKS_TO_TEMPLATES = 20;
/** Jobs of one template in the time of one doubt; more are not looked through, and the outcome stays unknown. */
const MAX_PAGES = 200;
/** Their clocks count whole seconds, and the answer that shows theirs was on its way for a while. */
const SINCE_MARGIN_MS = 60_000;

/** Ansible Automation Platform or AWX (OSAC's operator): templates are resolved, launched, polled, cancelled. */
export const createAapAutomation = (options: {
  readonly connection: AutomationConnection;
  readonly secrets: Pick<SecretStore, 'reveal'>;
}): Automation => {
  const { connection } = options;
  const platform = createPlatform(options);
  const names: { readonly [Purpose in AutomationPurpose]: string } = {
    provision: `${connection.templatePrefix}-create-hosted-cluster`,
    deprovision: `${connection.templatePrefix}-delete-hosted-cluster`,
  };
  /** Resolved once; a template that answers 404 was made anew under another id. */
  const templates = new Map<AutomationPurpose, Template>();

  const template = async (purpose: AutomationPurpose, call: CallOptions): Promise<Template> => {
    const found = templates.get(purpose) ?? (await resolveTemplate(platform, names[purpose], call));
    if (found === undefined) {
      throw new AutomationError(
        'not-found',
        `the automation platform has no job or workflow template called ${names[purpose]}`,
      );
    }
    templates.set(purpose, found);
    return found;
  };

  /** Names of templates that are missing, and how many looks ago they were looked for. */
  let missing: { readonly of: string; readonly names: ReadonlySet<string>; looks: number } | undefined;

  const missingOf = async (wanted: readonly string[], call: CallOptions): Promise<ReadonlySet<string>> => {
    const of = wanted.join();
    if (missing?.of === of && missing.looks < LOOKS_TO_TEMPLATES) {
      missing.looks += 1;
      return missing.names;
    }
    const found = new Set<string>();
    for (const name of wanted)
      if ((await resolveTemplate(platform, name, call)) === undefined) found.add(name);
    missing = { of, names: found, looks: 1 };
    return found;
  };

  const launch = async (
    purpose: AutomationPurpose,
    variables: JsonObject,
    call: CallOptions,
  ): Promise<AutomationJob> => {
    for (const again of [true, false]) {
      const target = await template(purpose, call);
      const path = `${pathOfTemplate(target)}launch/`;
      const { status, json } = await platform.post(path, { extra_vars: variables }, [404], call);
      if (status !== 404) return launched(platform, target, json, call);
      // Nothing was launched: the template has gone, and one of its name may have come.
      templates.delete(purpose);
      if (!again) break;
    }
    throw new AutomationError(
      'not-found',
      `template ${names[purpose]} is listed by the platform, but cannot be launched: it answers 404`,
    );
  };

  return {
    trigger: async ({ purpose, order }, call) => ({
      kind: 'launched',
      job: await launch(purpose, variablesFor(playbookSafe(order), call.effectId), call),
    }),

    findJobs: async ({ purpose, since }, call) => {
      const target = await template(purpose, call);
      return findJobs(platform, target, since, call);
    },

    job: async (ref, call) => {
      const read = await platform.get(pathOfJob(ref), jobAnswer, call);
      if (read === undefined) return undefined;
      const job = jobOf(read.value, { workflow: ref.workflow });
      if (job.state !== 'Failed') return job;
      const outputTail = await outputTailOf(platform, ref, read.value, call);
      return { ...job, ...(outputTail === '' ? {} : { outputTail }) };
    },

    cancel: async (ref, call) => {
      // 405: it has ended; 404: there is none any more (OSAC's operator).
      const { status } = await platform.post(`${pathOfJob(ref)}cancel/`, {}, [404, 405], call);
      return status !== 404 && status !== 405;
    },

    check: async (call) => {
      const problems: string[] = [];
      for (const name of Object.values(names)) {
        try {
          const found = await resolveTemplate(platform, name, call);
          if (found === undefined) problems.push(`job or workflow template ${name} not found`);
          else if (!found.takesVariables) problems.push(promptMissing(name));
        } catch (error) {
          if (!(error instanceof AutomationError)) throw error;
          // The second question would be answered alike.
          return { problems: [error.message] };
        }
      }
      return { problems };
    },

    lacking: async (kinds, { thorough, ...call }) => {
      if (thorough) missing = undefined;
      const nameOf = (kind: OwnedObject): string => `${connection.templatePrefix}-${templateOf(kind)}`;
      const absent = await missingOf(kinds.map(nameOf), call);
      return kinds
        .filter((kind) => absent.has(nameOf(kind)))
        .map((kind) => {
          const message = `the automation platform has no job or workflow template called ${nameOf(kind)}`;
          return { kind: kind.kind, code: 'TemplateMissing', message, subject: nameOf(kind) };
        });
    },
  };
};

/** Both shapes in which playbooks read the order, of today and from before August 2026 (OSAC's operator). */
const variablesFor = (order: JsonObject, effectId: string): JsonObject => ({
  osac_job_vars: { resource: order },
  ansible_eda: { event: { payload: order } },
  [EFFECT_VARIABLE]: effectId,
});

const promptMissing = (name: string): string =>
  `template ${name} does not take variables; switch on "prompt on launch" of its variables`;

const pathOfTemplate = ({ id, workflow }: Pick<Template, 'id' | 'workflow'>): string =>
  `/${workflow ? 'workflow_job_templates' : 'job_templates'}/${id}/`;

const pathOfJob = ({ id, workflow }: JobRef): string => {
  if (!/^\d{1,15}$/.test(id)) throw new AutomationError('invalid', 'ids of jobs are numbers');
  return `/${workflow ? 'workflow_jobs' : 'jobs'}/${id}/`;
};

/** By exact name, job templates first (OSAC's operator). */
const resolveTemplate = async (
  platform: Platform,
  name: string,
  call: CallOptions,
): Promise<Template | undefined> => {
  for (const workflow of [false, true]) {
    const list = workflow ? 'workflow_job_templates' : 'job_templates';
    const read = await platform.get(`/${list}/?name=${encodeURIComponent(name)}`, templatePage, call);
    const found = read?.value.results.find((each) => each.name === name);
    if (found !== undefined) {
      return { id: found.id, name, workflow, takesVariables: found.ask_variables_on_launch !== false };
    }
  }
  return undefined;
};

const launched = async (
  platform: Platform,
  { name, workflow }: Template,
  json: unknown,
  call: CallOptions,
): Promise<AutomationJob> => {
  const parsed = jobAnswer.safeParse(json);
  if (!parsed.success) {
    throw new AutomationError('unknown-outcome', `the answer to the launch of ${name} names no job`);
  }
  const job = jobOf(parsed.data, { workflow, template: name });
  const ignored = own(parsed.data.ignored_fields, 'extra_vars');
  if (ignored === undefined || !mentions(ignored, EFFECT_VARIABLE)) return job;
  // It runs without the order and would only fail in its own words, so it is stopped.
  await platform.post(`${pathOfJob(job)}cancel/`, {}, [404, 405], call);
  throw new AutomationError('invalid', promptMissing(name));
};

const mentions = (value: unknown, name: string): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name);

/**
 * The platform refuses a filter by extra_vars with 403, so the template's jobs since then are read page by page and
 * each
 * one's variables looked at. `since` is by our clock and is compared by theirs.
 */
const findJobs = async (
  platform: Platform,
  template: Template,
  since: string,
  call: CallOptions,
): Promise<readonly AutomationJob[]> => {
  const { name, workflow } = template;
  const clock = await platform.get(pathOfTemplate(template), templateClock, call);
  const from = new Date(Date.parse(since) + (clock?.clockSkewMs ?? 0) - SINCE_MARGIN_MS).toISOString();
  const list = `${pathOfTemplate(template)}${workflow ? 'workflow_jobs' : 'jobs'}/`;
  const found: AutomationJob[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const query = `created__gte=${encodeURIComponent(from)}&order_by=id&page_size=${PAGE}&page=${page}`;
    const read = await platform.get(`${list}?${query}`, jobPage, call);
    for (const answer of read?.value.results ?? []) {
      if (own(variablesOf(answer), EFFECT_VARIABLE) === call.effectId) {
        found.push(jobOf(answer, { workflow, template: name }));
      }
    }
    // A page past the end is a 404: jobs went away while they were read.
    if (read === undefined || !read.value.next) return found;
  }
  throw new AutomationError(
    'unavailable',
    `template ${name} has more than ${MAX_PAGES * PAGE} jobs since ${from}; they were not looked through`,
  );
};
