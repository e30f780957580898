import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { CommandRunner } from '../../app/commands/command.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { isObject, numberAt, objectAt, own, sameJson, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import { ApiError } from '../errors.ts';
import type { Call, UpdateMessage } from './call.ts';
import { canonicalDocument, fieldOf } from './messages.ts';
import { asObject, isEntered } from './update-rule.ts';
import { shownDocument } from './write-context.ts';

/**
 * Update by a whole object, without a mask, as gRPC clients send it. Protobuf leaves out empty maps, texts and zeros, so
 * that a field which is absent was either cleared or never meant. An object that was read says which: the change is what
 * differs from the object as it was read. Works on canonical JSON documents.
 */

/**
 * What the caller had read: the object on the same surface at its `metadata.version`. Undefined: the object carries no
 * creation timestamp, which only the service sets, so it was never read. Throws ApiError 409 where the log does not
 * answer for that version.
 */
export const objectAsRead = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  schema: DescMessage,
  now: { readonly creationTimestamp: string; readonly version: number },
  call: Call<UpdateMessage>,
  { runner }: { readonly runner: Pick<CommandRunner, 'loadVersion'> },
): Promise<JsonObject | undefined> => {
  const { id, object, whole } = call.message;
  const metadata = objectAt(object, 'metadata');
  const created = stringAt(metadata, 'creation_timestamp');
  if (whole !== true || created === '') return undefined;
  const aborted = (reason: string, what: string): ApiError =>
    new ApiError('ABORTED', `object with identifier '${id}' ${what}: read it again and repeat the change`, {
      reason,
    });
  if (Date.parse(created) !== Date.parse(now.creationTimestamp))
    throw aborted('OBJECT_REPLACED', 'is not the one that was read, which was created at another time');
  const version = numberAt(metadata, 'version');
  if (version < 0 || version > now.version)
    throw aborted('VERSION_UNKNOWN', `has no version ${version}, its current version is ${now.version}`);
  const loaded = await runner.loadVersion(aggregateOf(kind), id, version, { signal: call.signal });
  const past = loaded === undefined ? undefined : kind.view(loaded.state);
  if (past === undefined || !past.exists)
    throw aborted('VERSION_NOT_KEPT', `has version ${now.version}, and version ${version} is no longer kept`);
  const read = canonicalDocument(schema, shownDocument(kind, past.document, version, call.surface));
  return withoutEmptyMessages(schema, read);
};

/**
 * Number from which on fields are additions of this service. Clients of OSAC's messages do not know them and may drop them,
 * so that an absent one stays; a mask clears it.
 */
const FIRST_OWN_FIELD = 1000;

/**
 * Carries what differs between `read` and `sent` over to `stored`. What others changed since then stays; where both
 * changed one value, the one that was sent wins. Maps are compared key by key, lists and references as a whole.
 */
export const applyDifference = (
  schema: DescMessage,
  read: JsonObject,
  sent: JsonObject,
  stored: JsonObject,
): JsonObject => {
  const merged: JsonObject = { ...stored };
  for (const field of schema.fields) {
    const { name } = field;
    const value = mergedValue(field, read[name], sent[name], stored[name]);
    if (value === undefined) delete merged[name];
    else merged[name] = value;
  }
  return merged;
};

const mergedValue = (
  field: DescField,
  read: JsonValue | undefined,
  sent: JsonValue | undefined,
  stored: JsonValue | undefined,
): JsonValue | undefined => {
  if (sameJson(read, sent)) return stored;
  if (sent === undefined && field.number >= FIRST_OWN_FIELD) return stored;
  const entered = field.message !== undefined && isEntered(field.message) ? field.message : undefined;
  if (field.fieldKind === 'map') return mergedMap(entered, asObject(read), asObject(sent), asObject(stored));
  if (field.name === 'finalizers') return mergedSet(read, sent, stored);
  if (field.fieldKind === 'message') return mergedMessage(entered, read, sent, stored);
  return sent;
};

/** What was cleared goes as a whole, and what others took away comes back as a whole: a half of it means nothing. */
const mergedMessage = (
  entered: DescMessage | undefined,
  read: JsonValue | undefined,
  sent: JsonValue | undefined,
  stored: JsonValue | undefined,
): JsonValue | undefined => {
  if (entered === undefined || !isObject(sent) || !isObject(stored)) return sent;
  return applyDifference(entered, asObject(read), sent, stored);
};

const mergedMap = (
  entered: DescMessage | undefined,
  read: JsonObject,
  sent: JsonObject,
  stored: JsonObject,
): JsonObject | undefined => {
  const merged = new Map(Object.entries(stored));
  for (const key of new Set([...Object.keys(read), ...Object.keys(sent)])) {
    const [before, after] = [own(read, key), own(sent, key)];
    if (sameJson(before, after)) continue;
    const value = mergedMessage(entered, before, after, merged.get(key));
    if (value === undefined) merged.delete(key);
    else merged.set(key, value);
  }
  return merged.size === 0 ? undefined : Object.fromEntries(merged);
};

/** Each controller adds and removes its own finalizer, so that none may be lost over another one. */
const mergedSet = (
  read: JsonValue | undefined,
  sent: JsonValue | undefined,
  stored: JsonValue | undefined,
): JsonValue[] | undefined => {
  const [before, after] = [asList(read), asList(sent)];
  const kept = asList(stored).filter((item) => after.includes(item) || !before.includes(item));
  const added = after.filter((item) => !before.includes(item) && !kept.includes(item));
  return kept.length + added.length === 0 ? undefined : [...kept, ...added];
};

/** A message without a field says as little as an absent one; an entry of a map is there by its key. */
export const withoutEmptyMessages = (schema: DescMessage, document: JsonObject): JsonObject => {
  const entries = Object.entries(document).map(([name, value]) => {
    const field = fieldOf(schema, name);
    const { message } = field ?? {};
    if (field === undefined || message === undefined || !isObject(value)) return [name, value] as const;
    if (field.fieldKind === 'message') return [name, withoutEmptyMessages(message, value)] as const;
    const inner = Object.entries(value).map(
      ([key, entry]) => [key, isObject(entry) ? withoutEmptyMessages(message, entry) : entry] as const,
    );
    return [name, Object.fromEntries(inner)] as const;
  });
  return Object.fromEntries(entries.filter(([name, value]) => !isEmptyMessage(fieldOf(schema, name), value)));
};

const isEmptyMessage = (field: DescField | undefined, value: JsonValue): boolean =>
  field?.fieldKind === 'message' && isObject(value) && Object.keys(value).length === 0;

const asList = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : []);
