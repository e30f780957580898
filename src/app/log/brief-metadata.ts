import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { objectAt } from '../../domain/json-tools.ts';
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
  const { commandId, correlationId, requestHash, causationId, project } = metadata;
  const open = JSON.stringify({
    form: FORM,
    tenant: metadata.tenant,
    project: project === '' ? undefined : project,
    actor: briefActor(metadata.actor),
    source: metadata.source,
    instance: metadata.instance,
    correlationId: correlationId === commandId ? undefined : correlationId,
    ticket: metadata.ticket,
    traceparent: metadata.traceparent,
    requestHash: requestHash === commandId ? undefined : requestHash,
    command: metadata.command,
    commandId,
    causationId: causationId === commandId ? undefined : causationId,
    hub: metadata.hub,
    inputs: metadata.inputs,
    occurredAt: undefined,
  } satisfies { [Name in keyof Required<CommandMetadata>]: unknown } & { form: string }).slice(0, -1);
  return (data, schemaVersion, hidden) => {
    const version = schemaVersion === 1 ? '' : `,"schemaVersion":${schemaVersion}`;
    const cut = hidden === undefined ? '' : `,"hidden":${JSON.stringify(hidden)}`;
    return `${open}${timeText(metadata.occurredAt, data['at'])}${version}${cut}}`;
  };
};

const briefActor = (actor: Actor): object => {
  const { subjectId, roles, authMethod } = actor;
  const isSystem = subjectId === SYSTEM_SUBJECT && roles.length === 0 && authMethod === 'internal';
  return isSystem ? { ...actor, subjectId: undefined, roles: undefined, authMethod: undefined } : actor;
};

/** What an adapter parsed, with everything that was left out. Metadata in another form is as it is. */
export const completeMetadata = (stored: JsonObject, data: JsonObject): JsonObject => {
  if (stored['form'] !== FORM) return stored;
  const commandId = stored['commandId'] ?? '';
  const complete: { [name: string]: JsonValue } = {
    tenant: '',
    project: '',
    actor: {},
    command: '',
    commandId,
    requestHash: commandId,
    correlationId: commandId,
    causationId: commandId,
    occurredAt: '',
    instance: '',
    schemaVersion: 1,
  };
  for (const name in stored)
    if (name !== 'form' && name !== 'occurredAfterMs') complete[name] = stored[name] ?? null;
  const actor = objectAt(complete, 'actor');
  if (actor['subjectId'] === undefined)
    complete['actor'] = { subjectId: SYSTEM_SUBJECT, roles: [], authMethod: 'internal', ...actor };
  if (stored['occurredAt'] === undefined)
    complete['occurredAt'] = later(data['at'], stored['occurredAfterMs'] ?? 0) ?? '';
  return complete;
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
