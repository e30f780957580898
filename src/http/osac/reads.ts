import type { CommandRunner } from '../../app/command.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type {
  ResourceReader,
  ResourceRow,
  TimelineReader,
  Visibility,
} from '../../projections/read-models.ts';
import { objectNotFound } from '../errors.ts';
import { etagOf, type Answer, type ExtraMessage, type Handler, type IdMessage } from './call.ts';
import type { Surface } from './messages.ts';

/** Get of any kind: the stored JSON text (design §7). */
export const getHandler =
  (kind: string, resources: ResourceReader): Handler<IdMessage> =>
  ({ surface, principal, message }) => {
    const row = resources.get(kind, message.id, principal.visibility);
    if (row === undefined) throw objectNotFound(message.id);
    return rowAnswer(row, surface);
  };

export const rowAnswer = (row: ResourceRow, surface: Surface): Answer => ({
  body: surface === 'public' ? row.publicJson : row.privateJson,
  etag: etagOf(row.kind, row.revision),
});

/**
 * `GET …/clusters/{id}/timeline`, our addition: what happened to one order, oldest first. It can be read for as long as
 * the log is kept, also when the order is gone. Ids that never were and those of other tenants take the same way.
 */
export const timelineHandler =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    { resources, runner }: { readonly resources: ResourceReader; readonly runner: CommandRunner },
    timeline: TimelineReader,
    formatPosition: (position: string) => string,
  ): Handler<ExtraMessage> =>
  async ({ surface, principal, message }) => {
    if (resources.get(kind.kind, message.id, principal.visibility) === undefined) {
      const view = kind.view((await runner.load(aggregateOf(kind), message.id)).state);
      if (!view.exists || !sees(principal.visibility, view.tenant)) throw objectNotFound(message.id);
    }
    const audience = surface === 'private' && principal.admin ? 'provider' : 'tenant';
    const { id, limit, after } = message;
    const entries = timeline.of(id, { limit, audience, ...(after === undefined ? {} : { after }) });
    const items = entries.map(
      (entry) =>
        `{"position":${JSON.stringify(formatPosition(entry.position))},"at":${JSON.stringify(entry.at)},"type":${JSON.stringify(entry.type)},` +
        `"summary":${JSON.stringify(entry.summary)},"actor":${JSON.stringify(entry.actor)},` +
        `"correlation_id":${JSON.stringify(entry.correlationId)},"data":${entry.data || '{}'}}`,
    );
    return { body: items.length === 0 ? '{}' : `{"size":${items.length},"items":[${items.join(',')}]}` };
  };

const sees = (visibility: Visibility, tenant: string): boolean =>
  'all' in visibility || visibility.tenants.includes(tenant);
