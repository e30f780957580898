import { createBookkeeping } from './bookkeeping.ts';
import { WrongExpectedRevision, type EventStore } from './event-store.ts';
import type { Clock, Ids } from './ports.ts';

/**
 * The log belongs to one set of deployment keys (design §8, LEDGER_SECRETS_DIR). An instance with others could not
 * read the secrets that the log refers to and would not recognise repeated requests, so it must not start.
 */
export const DEPLOYMENT_STREAM = 'sys-deployment';
const TYPE = 'DeploymentBound' as const;

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

/** Binds an empty log to the fingerprint; throws DeploymentMismatch when the log is bound to another one. */
export const assertDeployment = async ({
  store,
  fingerprint,
  clock,
  ids,
  instance,
}: {
  store: EventStore;
  /** Of the deployment keys; says nothing about them. */
  fingerprint: string;
  clock: Clock;
  ids: Ids;
  instance: string;
}): Promise<void> => {
  const bound = (await boundTo(store)) ?? (await bind(store, fingerprint, { clock, ids, instance }));
  if (bound !== fingerprint) throw new DeploymentMismatch(bound, fingerprint);
};

const boundTo = async (store: EventStore): Promise<string | undefined> => {
  for await (const event of store.readStream(DEPLOYMENT_STREAM, { limit: 1 })) {
    const fingerprint = event.data['fingerprint'];
    if (event.type === TYPE && typeof fingerprint === 'string') return fingerprint;
  }
  return undefined;
};

/** Two instances may start at once: whoever comes second reads what the first one wrote. */
const bind = async (
  store: EventStore,
  fingerprint: string,
  { clock, ids, instance }: { clock: Clock; ids: Ids; instance: string },
): Promise<string> => {
  const bound = { type: TYPE, data: { at: clock.now(), fingerprint } };
  const event = createBookkeeping(instance)(DEPLOYMENT_STREAM, bound, 'BindDeployment', ids.uuidv7());
  try {
    await store.append(DEPLOYMENT_STREAM, 'no_stream', [event]);
    await store.setMaxCount(DEPLOYMENT_STREAM, 1);
    return fingerprint;
  } catch (error) {
    if (error instanceof WrongExpectedRevision) return (await boundTo(store)) ?? fingerprint;
    throw error;
  }
};
