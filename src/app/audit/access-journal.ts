import type { Asked } from '../../domain/audit/events.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { EventCodec } from '../event-codec.ts';
import type { Position } from '../event-store.ts';
import { eventId } from '../identifiers.ts';
import { commandMetadata, type CommandContext } from '../metadata.ts';
import type { Clock } from '../ports.ts';
import { eachAtOnce } from './at-once.ts';
import { dayStream, type DayJournal } from './day-journal.ts';

/** `auditAccess-<tenant>.<day>`: who looked at what, written before they see it (design §7). */
export type AccessJournal = {
  /**
   * In the history of the reader's tenant. Resolves to where that stands in the log. The context's command id names the
   * look; its tenant is that of the reader.
   */
  record(
    look: {
      readonly what: string;
      readonly query: JsonObject;
      /** Whose history; undefined: everybody's. */
      readonly tenants: readonly string[] | undefined;
      /** What of the question the tenant may know in whose history it stands. */
      readonly asked?: Asked;
    },
    context: CommandContext,
  ): Promise<Position>;
  /** In the histories of other tenants of which the look shows something: that it did, and who looked. */
  notice(
    look: {
      readonly what: string;
      /** With the object that was looked at, where it was one, or the kind of those that were asked for. */
      readonly tenants: ReadonlyMap<string, { readonly kind: string; readonly id?: string } | undefined>;
      /** By what else. */
      readonly asked?: Asked;
    },
    context: CommandContext,
  ): Promise<void>;
};

export const ACCESS_CATEGORY = 'auditAccess';

/** Tenants that are told at once of one look: it waits for all of them, and others write, too. */
const AT_ONCE = 16;

export const createAccessJournal = ({
  journal,
  codec,
  clock,
  instance,
}: {
  readonly journal: DayJournal;
  readonly codec: Pick<EventCodec, 'encode'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly instance: string;
}): AccessJournal => {
  const write = (
    event: Parameters<EventCodec['encode']>[0],
    at: string,
    context: CommandContext,
  ): Promise<Position> => {
    const stream = dayStream(ACCESS_CATEGORY, context.tenant, at);
    return journal.append(stream, [
      codec.encode(
        event,
        eventId(context.commandId, stream, 0),
        commandMetadata(context, 'ReadAudit', at, instance),
      ),
    ]);
  };
  return {
    record: ({ what, query, tenants, asked }, context) => {
      const at = clock.now();
      const { subjectId } = context.actor;
      const data = {
        at,
        subjectId,
        what,
        query,
        ...(tenants === undefined ? {} : { tenants: [...tenants] }),
        ...saidOf(asked),
      };
      return write({ type: 'AuditRead', data }, at, context);
    },
    notice: async ({ what, tenants, asked }, context) => {
      const at = clock.now();
      const { subjectId } = context.actor;
      await eachAtOnce(tenants, AT_ONCE, ([tenant, object]) => {
        const about =
          object === undefined
            ? {}
            : { kind: object.kind, ...(object.id === undefined ? {} : { resourceId: object.id }) };
        const data = { at, subjectId, what, ...about, ...saidOf(asked) };
        return write({ type: 'AuditReadNoticed', data }, at, asTold(context, tenant));
      });
    },
  };
};

const saidOf = (asked: Asked = {}): { asked?: Asked } => (Object.keys(asked).length === 0 ? {} : { asked });

/** Who looked, by the subject alone: name, address, ticket and what was asked belong into the reader's own history. */
const asTold = (
  { ticket: _ticket, source: _source, actor, ...context }: CommandContext,
  tenant: string,
): CommandContext => {
  const { personal: _personal, tokenIdHash: _token, ...known } = actor;
  return { ...context, tenant, actor: known, requestHash: '' };
};
