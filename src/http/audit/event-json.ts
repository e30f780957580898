import type { RecordedEvent } from '../../app/log/event-store.ts';
import {
  ERASED_MARK,
  opened,
  openedText,
  revealsActor,
  shownTo,
  type AuditAudience,
} from '../../app/audit/shown-event.ts';
import type { AuditLeaf } from '../../app/audit/tree.ts';
import { listAt, objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isEncrypted, type OpenPersonal } from '../../domain/personal.ts';
import { snakeCase } from '../ledger/forms.ts';
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
    ...textsIn(metadata, ['project']),
    ...(leaf.kind === '' ? {} : { kind: leaf.kind, resource_id: leaf.resourceId }),
    ...alsoAbout(leaf, audience),
    outcome: leaf.outcome,
    occurred_at: stringAt(metadata, 'occurredAt'),
    recorded_at: event.recordedAt,
    actor: actorJson(event, audience, words.open),
    ...sourceJson(metadata, audience, words.open),
    ...textsIn(metadata, METADATA),
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

/** Those of the texts that there are, under their names in answers. */
const textsIn = (from: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    names.map((name) => [snakeCase(name), stringAt(from, name)]).filter(([, text]) => text !== ''),
  ) as JsonObject;

const METADATA = ['command', 'commandId', 'correlationId', 'causationId', 'ticket', 'traceparent'];
const ACTOR = ['authMethod', 'via', 'onBehalfOf', 'vouchedBy'];
const PERSON = ['userName', 'email', 'issuer'];
const SOURCE = ['ip', 'userAgent'];

const actorJson = (
  { metadata }: Pick<RecordedEvent, 'metadata'>,
  audience: AuditAudience,
  open: OpenPersonal,
): JsonObject => {
  const actor = objectAt(metadata, 'actor');
  return {
    subject: stringAt(actor, 'subjectId'),
    roles: [...listAt(actor, 'roles')],
    ...textsIn(actor, ACTOR),
    ...(revealsActor(metadata, audience) ? personal(actor, 'personal', PERSON, open) : {}),
  };
};

const sourceJson = (metadata: JsonObject, audience: AuditAudience, open: OpenPersonal): JsonObject =>
  revealsActor(metadata, audience) ? personal(metadata, 'source', SOURCE, open) : {};

/** What is encrypted in metadata is JSON of a few fields. */
const personal = (
  from: JsonObject,
  key: string,
  names: readonly string[],
  open: OpenPersonal,
): JsonObject => {
  const value: JsonValue | undefined = own(from, key);
  if (!isEncrypted(value)) return {};
  const text = openedText(value, open);
  if (text === undefined) return { [key]: ERASED_MARK };
  return { [key]: textsIn(JSON.parse(text) as JsonObject, names) };
};
