import type { CommandRunner } from '../../app/commands/command.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type {
  ResourceReader,
  ResourceRow,
  TimelineEntry,
  TimelineReader,
} from '../../projections/read-models.ts';
import { sees } from '../../projections/visibility.ts';
import { objectNotFound } from '../errors.ts';
import { BEFORE_EVERYTHING } from '../past-moments.ts';
import { recordTimelineLook, type LookServices } from '../audit-reads.ts';
import { notApplied, type Past } from './as-of.ts';
import { etagOf, type Answer, type ExtraMessage, type Handler, type IdMessage } from './call.ts';
import type { Surface } from './messages.ts';

/** Get of any kind: the stored JSON text. */
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

export type TimelineServices = LookServices & {
  readonly resources: ResourceReader;
  readonly runner: CommandRunner;
  readonly timeline: TimelineReader;
  readonly past: Pick<Past, 'moments' | 'told'>;
  readonly formatPosition: (position: string) => string;
};

/**
 * `GET …/{id}/timeline`, our addition: what happened to one order, oldest first. It can be read for as long as
 * the log is kept, also when the order is gone. Ids that never were and those of other tenants take the same way.
 */
export const timelineHandler =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    services: TimelineServices,
  ): Handler<ExtraMessage> =>
  async (call) => {
    const { surface, principal, message } = call;
    const { resources, runner, timeline, past, formatPosition } = services;
    let tenant = resources.get(kind.kind, message.id, principal.visibility)?.tenant;
    if (tenant === undefined) {
      const view = kind.view((await runner.load(aggregateOf(kind), message.id)).state);
      if (!view.exists || !sees(principal.visibility, kind.kind, view)) throw objectNotFound(message.id);
      tenant = view.tenant;
    }
    const audience = surface === 'private' && principal.admin ? 'provider' : 'tenant';
    const { id, limit, after: begin, asOf } = message;
    const upTo = asOf === undefined ? undefined : await past.moments.resolve(asOf, 'as_of');
    if (upTo !== undefined) {
      if (upTo !== BEFORE_EVERYTHING && !(await past.told(upTo))) throw notApplied();
      // What had not begun then is as absent as the object itself.
      if (timeline.of(kind.kind, id, { limit: 1, audience, upTo }).length === 0) throw objectNotFound(id);
    }
    if (principal.admin)
      await recordTimelineLook(
        call,
        { kind: kind.kind, id, tenant, ...(asOf === undefined ? {} : { asOf }) },
        services,
      );
    const read = (rest: number, after: string | undefined): readonly TimelineEntry[] =>
      rest <= 0
        ? []
        : timeline.of(kind.kind, id, {
            limit: rest,
            audience,
            characters: CHARACTERS_AT_ONCE,
            ...(after === undefined ? {} : { after }),
            ...(upTo === undefined ? {} : { upTo }),
          });
    const text = (entry: TimelineEntry): string => entryText(entry, formatPosition);
    const first = read(limit, begin);
    const last = first.at(-1);
    const more = last === undefined ? [] : read(limit - first.length, last.position);
    if (more.length > 0) return { body: '', parts: timelineParts(first, limit, read, text) };
    return {
      body: last === undefined ? '{}' : `{"size":${first.length},"items":[${first.map(text).join(',')}]}`,
    };
  };

/** Data of entries that are read in one turn of the thread; more are sent in parts, with the size at the end. */
const CHARACTERS_AT_ONCE = 256 * 1024;

function* timelineParts(
  first: readonly TimelineEntry[],
  limit: number,
  read: (rest: number, after: string | undefined) => readonly TimelineEntry[],
  text: (entry: TimelineEntry) => string,
): Generator<string> {
  let size = 0;
  for (let entries = first; entries.length > 0; entries = read(limit - size, entries.at(-1)?.position)) {
    yield `${size === 0 ? '{"items":[' : ','}${entries.map(text).join(',')}`;
    size += entries.length;
  }
  yield `],"size":${size}}`;
}

const entryText = (entry: TimelineEntry, formatPosition: (position: string) => string): string =>
  `{"position":${JSON.stringify(formatPosition(entry.position))},"at":${JSON.stringify(entry.at)},"type":${JSON.stringify(entry.type)},` +
  `"summary":${JSON.stringify(entry.summary)},"actor":${JSON.stringify(entry.actor)},` +
  `"correlation_id":${JSON.stringify(entry.correlationId)},"data":${entry.data || '{}'}}`;
