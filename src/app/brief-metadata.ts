import type { JsonObject } from '../domain/json.ts';
import { objectAt } from '../domain/json-tools.ts';
import type { HiddenFields } from './hidden-fields.ts';
import { SYSTEM_SUBJECT, type Actor, type CommandMetadata } from './metadata.ts';

/**
 * Metadata as stores keep it: without what the rest of the event says already. The adapters of the event store complete
 * what they read, so that nobody else meets this form: hashes, proofs and exports are of the complete one. The rules are
 * part of the storage format.
 *
 * | left out | when it is |
 * |---|---|
 * | `schemaVersion` | 1 |
 * | `project` | empty |
 * | `requestHash`, `correlationId`, `causationId` | the command's id |
 * | `subjectId`, `roles` and `authMethod` of `actor` | those of the service itself |
 * | `occurredAt` | the data's `at`, or `occurredAfterMs` milliseconds later |
 */
const FORM = 'brief';

/** What these events have in common comes first, and what many appends have in common before that: stores keep it once. */
export type BriefText = (data: JsonObject, schemaVersion: number, hidden: HiddenFields | undefined) => string;

/** The metadata of one command is serialised once; each event only adds what is its own. */
export const briefTextOf = (metadata: CommandMetadata): BriefText => {
  const { tenant, project, actor, source, instance, ticket, traceparent, occurredAt, ...others } = metadata;
  const { commandId, correlationId, requestHash, causationId, command, ...more } = others;
  const unlessCommand = (id: string): string | undefined => (id === commandId ? undefined : id);
  const open = JSON.stringify({
    form: FORM,
    tenant,
    project: project === '' ? undefined : project,
    actor: briefActor(actor),
    source,
    instance,
    correlationId: unlessCommand(correlationId),
    ticket,
    traceparent,
    requestHash: unlessCommand(requestHash),
    command,
    commandId,
    causationId: unlessCommand(causationId),
    ...more,
  }).slice(0, -1);
  return (data, schemaVersion, hidden) => {
    const version = schemaVersion === 1 ? '' : `,"schemaVersion":${schemaVersion}`;
    const cut = hidden === undefined ? '' : `,"hidden":${JSON.stringify(hidden)}`;
    return `${open}${timeText(occurredAt, data['at'])}${version}${cut}}`;
  };
};

/** What an adapter parsed, with everything that was left out. Metadata in another form is as it is. */
export const completeMetadata = (stored: JsonObject, data: JsonObject): JsonObject => {
  if (stored['form'] !== FORM) return stored;
  const { form: _form, occurredAfterMs = 0, commandId = '', ...said } = stored;
  const actor = objectAt(said, 'actor');
  return {
    project: '',
    requestHash: commandId,
    correlationId: commandId,
    causationId: commandId,
    schemaVersion: 1,
    occurredAt: later(data['at'], occurredAfterMs) ?? '',
    ...said,
    commandId,
    actor: actor['subjectId'] === undefined ? { ...SYSTEM, ...actor } : actor,
  };
};

const SYSTEM: JsonObject = { subjectId: SYSTEM_SUBJECT, roles: [], authMethod: 'internal' };

const briefActor = (actor: Actor): Partial<Actor> => {
  const { subjectId, roles, authMethod, ...others } = actor;
  const isSystem = subjectId === SYSTEM_SUBJECT && roles.length === 0 && authMethod === 'internal';
  return isSystem ? others : actor;
};

const timeText = (occurredAt: string, at: unknown): string => {
  if (at === occurredAt) return '';
  const ms = typeof at === 'string' ? Date.parse(occurredAt) - Date.parse(at) : Number.NaN;
  return ms !== 0 && later(at, ms) === occurredAt
    ? `,"occurredAfterMs":${ms}`
    : `,"occurredAt":${JSON.stringify(occurredAt)}`;
};

const later = (at: unknown, ms: unknown): string | undefined => {
  if (typeof at !== 'string' || typeof ms !== 'number') return undefined;
  if (ms === 0) return at;
  const time = new Date(Date.parse(at) + ms);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
};
