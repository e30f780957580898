import type { ResourceReader, ResourceRow, TimelineReader } from '../../projections/read-models.ts';
import { objectNotFound } from '../errors.ts';
import {
  etagOf,
  type Answer,
  type ExtraMessage,
  type Handler,
  type IdMessage,
  type ListMessage,
} from './call.ts';
import type { Surface } from './messages.ts';

/** Get and List of any kind: stored JSON texts, put together without being parsed (design §7). */
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

export const listHandler =
  (kind: string, resources: ResourceReader): Handler<ListMessage> =>
  ({ surface, principal, message }) => {
    const { documents, total } = resources.listDocuments(kind, principal.visibility, message, surface);
    return { body: listText(documents, total) };
  };

/** `size`, `total` and `items` as the list message renders: zero and empty are left out (osac-api.md §3). */
const listText = (documents: readonly string[], total: number): string => {
  if (documents.length === 0) return total === 0 ? '{}' : `{"total":${total}}`;
  return `{"size":${documents.length},"total":${total},"items":[${documents.join(',')}]}`;
};

/** `GET …/clusters/{id}/timeline`, our addition: what happened to one order, oldest first. */
export const timelineHandler =
  (
    kind: string,
    resources: ResourceReader,
    timeline: TimelineReader,
    formatPosition: (position: string) => string,
  ): Handler<ExtraMessage> =>
  ({ surface, principal, message }) => {
    if (resources.get(kind, message.id, principal.visibility) === undefined) throw objectNotFound(message.id);
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
