/** What a tenant reads of a failed job of the hub's automation, whose own words are the provider's (`detail`). */
export const AUTOMATION_FAILED = "the provider's automation failed";

export type JobErrors = {
  /** By which the provider finds the order in log and history. */
  readonly correlationId: string;
  /** `LEDGER_TENANTS_SEE_JOB_ERRORS`: the words of the job, too. */
  readonly shown: boolean;
};

/** Most characters of a job's words that tenants are told: an output ends with what went wrong. */
const MOST_OF_JOB = 1_000;

/** Settled when it is recorded, so that status, timeline, watches, the past and Kafka all say the same. */
export const toldOfJob = <Failure extends { readonly message: string; readonly detail?: string }>(
  failure: Failure,
  errors: JobErrors | undefined,
): Failure => {
  if (errors === undefined || failure.message !== AUTOMATION_FAILED) return failure;
  const { detail = '' } = failure;
  const words = errors.shown && detail !== '' ? `: ${endOf(detail)}` : '';
  return { ...failure, message: `${AUTOMATION_FAILED}${words} (correlation id ${errors.correlationId})` };
};

const endOf = (text: string): string =>
  text.length <= MOST_OF_JOB ? text : `…${text.slice(1 - MOST_OF_JOB).toWellFormed()}`;
