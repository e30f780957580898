import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { own, stringAt } from '../../domain/json-tools.ts';
import type { ResourceView } from '../../domain/resource.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import { isMadeHere } from '../audit/known-ids.ts';
import type { CommandHooks } from '../commands/command-runner.ts';
import type { Logger, RejectionRecord } from '../ports.ts';

/**
 * One line at `info` for each event that its kind declares so (`logged`) and this instance stores: what an operator is told as
 * it happens. Everything else stands in the timeline. Names and projects are what people typed, and no erasure
 * reaches this log; messages are those that tenants read: what a hub said in full stays in the events.
 */
export const orderLog =
  (logger: Logger): NonNullable<CommandHooks['onStored']> =>
  (stream, events, { correlationId }, state) => {
    const { category, id } = parseStreamName(stream);
    const kind = actingKindOf(category);
    if (kind === undefined) return;
    for (const event of events) {
      const message = own(kind.logged, event.type);
      if (message !== undefined)
        logger.info({ [category]: id, ...whose(kind.view(state)), ...why(event), correlationId }, message);
    }
  };

/** The same of a rule that says no to an order. Logs the record itself, `rejection`, where it is about something else. */
export const logRefusal = (
  logger: Logger,
  { kind, outcome, resourceId = '' }: Pick<RejectionRecord, 'kind' | 'outcome' | 'resourceId'>,
  rejection: object,
): void => {
  if (kind === undefined || actingKindOf(kind) === undefined || outcome !== 'rejected')
    return logger.info({ rejection }, 'refused');
  return logger.info(
    { ...(isMadeHere(resourceId) ? { [kind]: resourceId } : {}), ...rejection },
    'order refused',
  );
};

const whose = (view: ResourceView): object => {
  if (!view.exists) return {};
  const hub = stringAt(view.document['status'], 'hub');
  return { tenant: view.tenant, ...(hub === '' ? {} : { hub }) };
};

const why = ({ data }: DomainEvent): object => {
  const { reason, message } = data as { reason?: unknown; message?: unknown };
  return reason === undefined ? {} : { reason, why: message };
};
