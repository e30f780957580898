import type { RecordedEvent } from '../../app/event-store.ts';
import {
  ERASED_MARK,
  opened,
  openedText,
  revealsActor,
  shownTo,
  type AuditAudience,
} from '../../app/audit/shown.ts';
import type { AuditLeaf } from '../../app/audit/tree.ts';
import { listAt, objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isEncrypted, type OpenPersonal } from '../../domain/personal.ts';
import type { AuditServices } from './services.ts';

/** An event as this audience may see it, personal data in clear or marked as erased; undefined: it may not. */
export const eventJson = (
  leaf: AuditLeaf,
  event: RecordedEvent,
  audience: AuditAudience,
  { words, positions }: Pick<AuditServices, 'words' | 'positions'>,
): JsonObject | undefined => {
  const visible = shownTo(event, audience, words);
  if (visible === undefined) return undefined;
  const { metadata } = event;
  return {
    id: event.id,
    event: `${event.stream}@${event.revision}`,
    index: leaf.index,
    position: positions.format(event.position),
    stream: event.stream,
    revision: event.revision,
    type: event.type,
    tenant: leaf.tenant,
    ...some(metadata, 'project', 'project'),
    ...(leaf.kind === '' ? {} : { kind: leaf.kind, resource_id: leaf.resourceId }),
    ...alsoAbout(leaf, audience),
    outcome: leaf.outcome,
    occurred_at: stringAt(metadata, 'occurredAt'),
    recorded_at: event.recordedAt,
    actor: actorJson(event, audience, words.open),
    ...sourceJson(metadata, audience, words.open),
    ...some(metadata, 'command', 'command'),
    ...some(metadata, 'commandId', 'command_id'),
    ...some(metadata, 'correlationId', 'correlation_id'),
    ...some(metadata, 'causationId', 'causation_id'),
    ...some(metadata, 'ticket', 'ticket'),
    ...some(metadata, 'traceparent', 'traceparent'),
    shown: visible.shown,
    data: opened(visible.data, words.open),
  };
};

/** Objects under which the event is found, too. */
const alsoAbout = ({ also = [] }: AuditLeaf, audience: AuditAudience): JsonObject => {
  const shown = also.filter(({ hidden }) => audience === 'provider' || !hidden);
  if (shown.length === 0) return {};
  return { also_about: shown.map(({ kind, resourceId }) => ({ kind, resource_id: resourceId })) };
};

const some = (from: JsonObject, key: string, name: string): JsonObject => {
  const text = stringAt(from, key);
  return text === '' ? {} : { [name]: text };
};

const actorJson = (
  { metadata }: Pick<RecordedEvent, 'metadata'>,
  audience: AuditAudience,
  open: OpenPersonal,
): JsonObject => {
  const actor = objectAt(metadata, 'actor');
  return {
    subject: stringAt(actor, 'subjectId'),
    roles: [...listAt(actor, 'roles')],
    ...some(actor, 'authMethod', 'auth_method'),
    ...some(actor, 'via', 'via'),
    ...some(actor, 'onBehalfOf', 'on_behalf_of'),
    ...some(actor, 'vouchedBy', 'vouched_by'),
    ...(revealsActor(metadata, audience) ? personal(actor, 'personal', PERSON, open) : {}),
  };
};

const sourceJson = (metadata: JsonObject, audience: AuditAudience, open: OpenPersonal): JsonObject =>
  revealsActor(metadata, audience) ? personal(metadata, 'source', SOURCE, open) : {};

const PERSON = { userName: 'user_name', email: 'email', issuer: 'issuer' } as const;
const SOURCE = { ip: 'ip', userAgent: 'user_agent' } as const;

/** What is encrypted in metadata is JSON of a few fields. */
const personal = (
  from: JsonObject,
  key: string,
  names: { readonly [field: string]: string },
  open: OpenPersonal,
): JsonObject => {
  const value: JsonValue | undefined = own(from, key);
  if (!isEncrypted(value)) return {};
  const text = openedText(value, open);
  if (text === undefined) return { [key]: ERASED_MARK };
  const fields = JSON.parse(text) as JsonObject;
  return {
    [key]: Object.fromEntries(
      Object.entries(names).flatMap(([field, name]) => {
        const clear = stringAt(fields, field);
        return clear === '' ? [] : [[name, clear]];
      }),
    ),
  };
};
