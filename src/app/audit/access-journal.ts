import type { JsonObject } from '../../domain/json.ts';
import type { EventCodec } from '../event-codec.ts';
import type { Position } from '../event-store.ts';
import { eventId } from '../identifiers.ts';
import { commandMetadata, type CommandContext } from '../metadata.ts';
import type { Clock } from '../ports.ts';
import { dayStream, type DayJournal } from './day-journal.ts';

/**
 * `auditAccess-<tenant of the reader>.<day>`: who looked at what, written before they see it (design §7).
 * Resolves to where that stands in the log.
 */
export type AccessJournal = (
  look: {
    readonly what: string;
    readonly query: JsonObject;
    /** Whose history; undefined: everybody's. */
    readonly tenants: readonly string[] | undefined;
  },
  context: CommandContext,
) => Promise<Position>;

export const ACCESS_CATEGORY = 'auditAccess';

/** The context's command id names the look; its tenant is that of the reader. */
export const createAccessJournal =
  ({
    journal,
    codec,
    clock,
    instance,
  }: {
    readonly journal: DayJournal;
    readonly codec: Pick<EventCodec, 'encode'>;
    readonly clock: Pick<Clock, 'now'>;
    readonly instance: string;
  }): AccessJournal =>
  async ({ what, query, tenants }, context) => {
    const at = clock.now();
    const stream = dayStream(ACCESS_CATEGORY, context.tenant, at);
    const { subjectId } = context.actor;
    const data = { at, subjectId, what, query, ...(tenants === undefined ? {} : { tenants: [...tenants] }) };
    return journal.append(stream, [
      codec.encode(
        { type: 'AuditRead', data },
        eventId(context.commandId, stream, 0),
        commandMetadata(context, 'ReadAudit', at, instance),
      ),
    ]);
  };
