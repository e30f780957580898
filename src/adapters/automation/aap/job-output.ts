import { AutomationError } from '../../../app/automation/automation.ts';
import type { CallOptions } from '../../../app/hubs/management-cluster.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, stringAt } from '../../../domain/json-tools.ts';
import { redacted, secretsInPullSecret, tailOf, withoutControls } from '../../../domain/redact.ts';
import { nodePage, variablesOf, type JobAnswer } from './answers.ts';
import type { Platform } from './platform.ts';

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
export const outputTailOf = async (
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
