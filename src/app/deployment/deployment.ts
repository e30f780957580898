import type { DeploymentData } from '../../domain/bookkeeping/events.ts';
import { createBookkeeping } from '../log/bookkeeping.ts';
import { WrongExpectedRevision, type EventStore, type ExpectedRevision } from '../log/event-store.ts';
import type { Clock, Ids } from '../ports.ts';

/**
 * The log belongs to one deployment: an id that its mark on the hubs carries (docs/hubs.md "One driver per hub"), a name that
 * people know it by, and one set of keys (LEDGER_SECRETS_DIR). An instance with other keys could not read the secrets that
 * the log refers to and would not recognise repeated requests, so it must not start.
 */
export const DEPLOYMENT_STREAM = 'sys-deployment';
const TYPE = 'DeploymentBound' as const;
/** Each event says everything; the older ones only show what it was before. */
const MAX_COUNT = 100;
/** Instances that start together with different names give up after so many rounds. */
const TRIES = 5;

/**
 * Grows by one when an event that was already stored would be misread. From the first release on events are lifted from
 * version to version instead, and this number stays.
 */
export const LOG_FORM = 3;

export type Deployment = Omit<DeploymentData, 'at' | 'form'>;

export class LogOfAnotherForm extends Error {
  override readonly name = 'LogOfAnotherForm';
  constructor(found: number) {
    super(
      `the event log was written by another version of this service (form ${found}, this version reads form ${LOG_FORM}): ` +
        'name another LEDGER_DATA_DIR, with EventStoreDB another LEDGER_EVENT_STORE, or run the version that wrote it',
    );
  }
}

export class DeploymentMismatch extends Error {
  override readonly name = 'DeploymentMismatch';
  constructor(expected: string, actual: string) {
    super(
      'LEDGER_SECRETS_DIR: the keys in this directory are not those of this event log ' +
        `(log ${expected}, directory ${actual}). Point LEDGER_SECRETS_DIR at the directory that the other ` +
        'instances use, or restore it from its backup.',
    );
  }
}

type Writer = { readonly clock: Pick<Clock, 'now'>; readonly ids: Ids; readonly instance: string };

/**
 * Gives an empty log its deployment id and binds it to the fingerprint; records a changed name. Throws DeploymentMismatch
 * when the log is bound to another fingerprint, and LogOfAnotherForm.
 */
export const assertDeployment = async ({
  store,
  fingerprint,
  name,
  ...writer
}: Writer & {
  readonly store: EventStore;
  /** Of the deployment keys; says nothing about them. */
  readonly fingerprint: string;
  /** LEDGER_DEPLOYMENT_NAME. */
  readonly name: string;
}): Promise<Deployment> => {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const { revision, bound } = await newest(store);
    if (bound !== undefined && bound.fingerprint !== fingerprint)
      throw new DeploymentMismatch(bound.fingerprint, fingerprint);
    if (bound?.name === name) return bound;
    const next =
      bound === undefined
        ? { fingerprint, deploymentId: writer.ids.uuidv7(), name, formerIds: [] }
        : { ...bound, name };
    if (await bind(store, revision, next, writer)) return next;
  }
  throw new Error(`${DEPLOYMENT_STREAM}: other instances keep on changing it; start this one again`);
};

/** The deployment that a log belongs to; undefined: no service has started on it yet. Throws LogOfAnotherForm. */
export const readDeployment = async (
  store: Pick<EventStore, 'readStream'>,
): Promise<Deployment | undefined> => (await newest(store)).bound;

/**
 * Puts a restored log under a new deployment id, which takes the hubs over from the former one. Throws where no service
 * has ever started on the log, or one starts on it at the same moment, and LogOfAnotherForm.
 */
export const rebindDeployment = async (
  store: EventStore,
  { deploymentId, ...writer }: Writer & { /** Default: a new one. */ readonly deploymentId?: string },
): Promise<Deployment> => {
  const { revision, bound } = await newest(store);
  if (bound === undefined) throw new Error('no service has started on this event log yet');
  const next = {
    ...bound,
    deploymentId: deploymentId ?? writer.ids.uuidv7(),
    formerIds: [...bound.formerIds, bound.deploymentId],
  };
  if (await bind(store, revision, next, writer)) return next;
  throw new Error(`${DEPLOYMENT_STREAM}: a service writes to this event log; stop it first`);
};

const newest = async (
  store: Pick<EventStore, 'readStream'>,
): Promise<{ readonly revision: ExpectedRevision; readonly bound: Deployment | undefined }> => {
  for await (const { revision, data } of store.readStream(DEPLOYMENT_STREAM, {
    direction: 'backward',
    limit: 1,
  })) {
    const { form, fingerprint, deploymentId, name, formerIds } = data as unknown as Partial<DeploymentData> &
      Deployment;
    // Form 1 did not say so.
    if (form !== LOG_FORM) throw new LogOfAnotherForm(form ?? 1);
    return { revision, bound: { fingerprint, deploymentId, name, formerIds } };
  }
  return { revision: 'no_stream', bound: undefined };
};

/** False: somebody else was faster. */
const bind = async (
  store: EventStore,
  expected: ExpectedRevision,
  deployment: Deployment,
  { clock, ids, instance }: Writer,
): Promise<boolean> => {
  const bound = { type: TYPE, data: { at: clock.now(), form: LOG_FORM, ...deployment } };
  const event = createBookkeeping(instance)(DEPLOYMENT_STREAM, bound, 'BindDeployment', ids.uuidv7());
  try {
    if (expected === 'no_stream') await store.setMaxCount(DEPLOYMENT_STREAM, MAX_COUNT);
    await store.append(DEPLOYMENT_STREAM, expected, [event]);
    return true;
  } catch (error) {
    if (error instanceof WrongExpectedRevision) return false;
    throw error;
  }
};
