import type { Asked, OperatorActEvent } from '../../domain/audit/events.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defined } from '../../domain/json-tools.ts';
import type { EventCodec } from '../log/event-codec.ts';
import type { Position } from '../log/event-store.ts';
import { eventId } from '../log/identifiers.ts';
import { commandMetadata, type CommandContext } from '../log/metadata.ts';
import type { Clock } from '../ports.ts';
import { eachAtOnce } from './bounded-parallel.ts';
import { dayStream, type DayJournal } from './day-journal.ts';

/**
 * `auditAccess-<tenant>.<day>`: who looked at what, written before they see it; `operatorAct-<tenant>.<day>`: what operators
 * had the service do, written before it is done.
 */
export type AccessJournal = {
  /**
   * In the history of the context's tenant. Resolves to where that stands in the log. The context's command id names the look.
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
  /** In the history of the context's tenant. The context's command id names the act. */
  act(act: Act, context: CommandContext): Promise<Position>;
};

/** An act of an operator, but for who and when. */
export type Act = Omit<OperatorActEvent['data'], 'at' | 'subjectId'>;

export const ACCESS_CATEGORY = 'auditAccess';
export const ACT_CATEGORY = 'operatorAct';

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
    { category, command } = { category: ACCESS_CATEGORY, command: 'ReadAudit' },
  ): Promise<Position> => {
    const stream = dayStream(category, context.tenant, at);
    const metadata = commandMetadata(context, command, at, instance);
    return journal.append(stream, [codec.encode(event, eventId(context.commandId, stream, 0), metadata)]);
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
        ...defined({ tenants: tenants && [...tenants] }),
        ...saidOf(asked),
      };
      return write({ type: 'AuditRead', data }, at, context);
    },
    act: (act, context) => {
      const at = clock.now();
      const data = { at, subjectId: context.actor.subjectId, ...act };
      const kept = { category: ACT_CATEGORY, command: 'OperateService' };
      return write({ type: 'OperatorActed', data }, at, context, kept);
    },
    notice: async ({ what, tenants, asked }, context) => {
      const at = clock.now();
      const { subjectId } = context.actor;
      await eachAtOnce(tenants, AT_ONCE, ([tenant, object]) => {
        const about = defined({ kind: object?.kind, resourceId: object?.id });
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
