import { isStoredCluster, type ClusterState } from '../domain/clusters/state.ts';
import type { DomainEvent } from '../domain/decider.ts';
import { parseStreamName } from '../domain/stream-name.ts';
import { isMadeHere } from './audit/known-ids.ts';
import type { CommandHooks } from './command-runner.ts';
import type { Logger, RejectionRecord } from './ports.ts';

/** What an operator is told of an order as it happens; everything else stands in its timeline. */
const TOLD: ReadonlyMap<string, string> = new Map([
  ['ClusterBecameReady', 'order ready'],
  ['ClusterFailed', 'order failed'],
  ['ClusterChangeFailed', 'change of an order failed'],
]);

/**
 * One line at `info` for each such event that this instance stores. Names and projects are what people typed, and no erasure
 * reaches this log; messages are those that tenants read: what a hub said in full stays in the events.
 */
export const orderLog =
  (logger: Logger): NonNullable<CommandHooks['onStored']> =>
  (stream, events, { correlationId }, state) => {
    const { category, id } = parseStreamName(stream);
    if (category !== 'cluster') return;
    for (const event of events) {
      const message = TOLD.get(event.type);
      if (message !== undefined)
        logger.info({ cluster: id, ...whose(state as ClusterState), ...why(event), correlationId }, message);
    }
  };

/** The same of a rule that says no to an order. Logs the record itself, `rejection`, where it is about something else. */
export const logRefusal = (
  logger: Logger,
  { kind, outcome, resourceId = '' }: Pick<RejectionRecord, 'kind' | 'outcome' | 'resourceId'>,
  rejection: object,
): void => {
  if (kind !== 'cluster' || outcome !== 'rejected') return logger.info({ rejection }, 'refused');
  return logger.info(
    { ...(isMadeHere(resourceId) ? { cluster: resourceId } : {}), ...rejection },
    'order refused',
  );
};

const whose = (state: ClusterState): object => {
  if (!isStoredCluster(state)) return {};
  const hub = 'hub' in state ? state.hub?.id : undefined;
  return { tenant: state.tenant, ...(hub === undefined ? {} : { hub }) };
};

const why = ({ data }: DomainEvent): object => {
  const { reason, message } = data as { reason?: unknown; message?: unknown };
  return reason === undefined ? {} : { reason, why: message };
};
