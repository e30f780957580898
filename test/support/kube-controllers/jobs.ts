import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';

export type JobType = 'provision' | 'deprovision';

/** The jobs that an order's status lists, oldest first. */
export const jobsOf = (order: JsonObject): JsonObject[] => {
  const { provisioningJobs } = objectAt(order, 'status');
  return Array.isArray(provisioningJobs) ? (provisioningJobs as JsonValue[]).filter(isObject) : [];
};

export const latestJob = (jobs: readonly JsonObject[], type: JobType): JsonObject | undefined =>
  jobs.findLast((job) => job['type'] === type);

const STATES: { readonly [status: string]: string } = {
  pending: 'Pending',
  waiting: 'Waiting',
  running: 'Running',
  successful: 'Succeeded',
  failed: 'Failed',
  error: 'Failed',
  canceled: 'Canceled',
};

export const jobState = (status: string): string =>
  Object.hasOwn(STATES, status) ? (STATES[status] ?? 'Unknown') : 'Unknown';

export const isTerminal = (job: JsonObject): boolean =>
  ['Succeeded', 'Failed', 'Canceled'].includes(stringAt(job, 'state'));

const MINUTE = 60_000;

/**
 * When an unsuccessful job is launched again: all times count from launches. Two minutes, or twice the gap between
 * the last two failures, half an hour at most; a canceled one is no failure (OSAC's operator).
 */
export const retryAt = (jobs: readonly JsonObject[], type: JobType, configVersion: string): number => {
  const failed = jobs.filter(
    (job) =>
      job['type'] === type &&
      job['state'] === 'Failed' &&
      (job['configVersion'] ?? configVersion) === configVersion,
  );
  const launched = (job: JsonObject | undefined): number => Date.parse(stringAt(job ?? {}, 'timestamp'));
  const last = latestJob(jobs, type);
  if (last?.['state'] === 'Canceled' || failed.length < 2) return launched(last) + 2 * MINUTE;
  const gap = launched(failed.at(-1)) - launched(failed.at(-2));
  return launched(last) + Math.min(Math.max(2 * MINUTE, 2 * gap), 30 * MINUTE);
};

/** At most ten are kept. */
export const withJob = (jobs: readonly JsonObject[], job: JsonObject): JsonObject[] => {
  const known = jobs.some((one) => one['jobID'] === job['jobID']);
  const all = known ? jobs.map((one) => (one['jobID'] === job['jobID'] ? job : one)) : [...jobs, job];
  return all.slice(-10);
};
