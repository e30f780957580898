import { z } from 'zod';
import type { AutomationJob } from '../../../app/automation/automation.ts';
import type { JsonObject } from '../../../domain/json.ts';

/** What is read of the platform's answers (OSAC's operator); the rest is not looked at. */
const id = z.int().positive();
const time = z.string().nullish();

export const templatePage = z.object({
  count: z.int(),
  results: z.array(
    z.object({ id, name: z.string(), ask_variables_on_launch: z.boolean().optional() }).loose(),
  ),
});

/** Read for its Date header only. */
export const templateClock = z.object({ id });

export const jobAnswer = z.object({
  id,
  /** That of its template. */
  name: z.string().optional(),
  status: z.string().default(''),
  created: time,
  started: time,
  finished: time,
  /** JSON as text. */
  extra_vars: z.string().nullish(),
  result_traceback: z.string().nullish(),
  /** Of a launch: what was sent and not taken. */
  ignored_fields: z.record(z.string(), z.unknown()).optional(),
});
export type JobAnswer = z.infer<typeof jobAnswer>;

export const jobPage = z.object({ next: z.string().nullish(), results: z.array(jobAnswer) });

export const nodePage = z.object({
  results: z.array(
    z.object({
      summary_fields: z
        .object({ job: z.object({ id, status: z.string(), type: z.string().optional() }).optional() })
        .optional(),
    }),
  ),
});

const STATES: ReadonlyMap<string, AutomationJob['state']> = new Map([
  ['pending', 'Pending'],
  ['waiting', 'Waiting'],
  ['running', 'Running'],
  ['successful', 'Succeeded'],
  ['failed', 'Failed'],
  ['error', 'Failed'],
  ['canceled', 'Canceled'],
]);

export const jobOf = (
  answer: JobAnswer,
  more: { readonly workflow: boolean; readonly template?: string },
): AutomationJob => ({
  id: String(answer.id),
  workflow: more.workflow,
  template: more.template ?? answer.name ?? '',
  // `new` and whatever comes in later releases: it is asked again.
  state: STATES.get(answer.status) ?? 'Unknown',
  createdAt: answer.created ?? '',
  ...(answer.started ? { startedAt: answer.started } : {}),
  ...(answer.finished ? { finishedAt: answer.finished } : {}),
});

/** Variables of a job as it was launched; empty when they are not the JSON that we send. */
export const variablesOf = ({ extra_vars: text }: JobAnswer): JsonObject => {
  try {
    const parsed: unknown = JSON.parse(text ?? '{}');
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
      ? (parsed as JsonObject)
      : {};
  } catch {
    return {};
  }
};
