import type { Encrypted } from '../../domain/personal.ts';
import type { HiddenFields } from './hidden-fields.ts';

/**
 * Metadata v1, complete from the first event. Absent optional fields are left out, never `undefined`.
 */
export type { Encrypted };

/** What a token says about a person; absent parts are left out. */
export type PersonalData = {
  readonly userName?: string;
  readonly email?: string;
  /** Of whom another issuer vouches for: whose subject it is said to be. That may name a person as well. */
  readonly issuer?: string;
};
/** Where a request came from. */
export type RequestSource = { readonly ip?: string; readonly userAgent?: string };

export type Actor = {
  /** UUIDv5(tenant, issuer, sub); the User's id and `metadata.creator`. For our own work: `system`. */
  readonly subjectId: string;
  readonly roles: readonly string[];
  /** `anonymous`: nobody knows who called; only what is refused has such an actor. */
  readonly authMethod: 'jwt' | 'service-account' | 'internal' | 'anonymous';
  readonly tokenIdHash?: string;
  /**
   * The subject for whom it was done, where that is another: of a call the token's subject whose rights were used
   * (RFC 8693,
   * claim `act`), of what the service does by itself who asked for it.
   */
  readonly onBehalfOf?: string;
  /**
   * Issuer of the token, where that says who acts and names somebody of another issuer: it is the word of this one
   * alone, and
   * `subjectId` is nobody's whom the other one knows.
   */
  readonly vouchedBy?: string;
  /** Where the command came in: `http`, `workflow:<name>`, `cli`, `repair`. */
  readonly via?: string;
  /** User name, e-mail and issuer that was named, encrypted under the subject's key. */
  readonly personal?: Encrypted;
};

export type EventMetadata = {
  /** On whose behalf. */
  readonly tenant: string;
  readonly project: string;
  readonly actor: Actor;
  /** Name of the command, for example `OrderCluster`. */
  readonly command: string;
  readonly commandId: string;
  /** HMAC-SHA-256 over the canonical request, hex; equal for equal requests. */
  readonly requestHash: string;
  readonly correlationId: string;
  readonly causationId: string;
  readonly ticket?: string;
  readonly occurredAt: string;
  readonly schemaVersion: number;
  readonly traceparent?: string;
  /** Name of the process incarnation that wrote it. */
  readonly instance: string;
  readonly hub?: string;
  readonly source?: Encrypted;
  /**
   * Run events only: up to which revision the run's subject was folded when this was appended. It is the place of
   * the event among those of the subject.
   */
  readonly inputs?: { readonly [stream: string]: number };
  /** Only where tenants may see a part of the event: never shown to them, the salt is in it. */
  readonly hidden?: HiddenFields;
};

/** Metadata of one command: everything but what belongs to each event alone. */
export type CommandMetadata = Omit<EventMetadata, 'schemaVersion' | 'hidden'>;

/**
 * Everything about a command but the command itself. `commandId`: UUIDv5(scope, Idempotency-Key) or a fresh UUIDv7;
 * workflows
 * derive it from run and key. The same one with another `requestHash` is refused.
 */
export type CommandContext = Omit<CommandMetadata, 'command' | 'occurredAt' | 'instance' | 'inputs'> & {
  /** Names of the fields that the request set, for the record of a refusal: no values, and no keys that the caller chose. */
  readonly fields?: () => readonly string[];
  /** Refuses with `conflict` when the document's version or the stream's revision differs (If-Match, lock=true). */
  readonly ifRevision?: number;
  readonly ifVersion?: number;
  readonly signal?: AbortSignal;
};

/** `occurredAt` is the wall clock at the decision (ISO), `instance` names this process incarnation. */
export const commandMetadata = (
  {
    fields: _fields,
    ifRevision: _ifRevision,
    ifVersion: _ifVersion,
    signal: _signal,
    ...said
  }: CommandContext,
  command: string,
  occurredAt: string,
  instance: string,
): CommandMetadata => ({ ...said, command, occurredAt, instance });

/** Subject of the service itself. */
export const SYSTEM_SUBJECT = 'system';

/**
 * The actor of everything that the service does on its own. `via`: `repair`, `workflow:<name>` … `onBehalfOf`: who
 * asked for
 * it, where that is known.
 */
export const systemActor = (via: string, onBehalfOf?: string): Actor => ({
  subjectId: SYSTEM_SUBJECT,
  roles: [],
  authMethod: 'internal',
  ...(onBehalfOf !== undefined && { onBehalfOf }),
  via,
});

/** The actor of everything that a workflow does, `hub-registry` and the like included. */
export const workflowActor = (workflow: string, onBehalfOf?: string): Actor =>
  systemActor(`workflow:${workflow}`, onBehalfOf);

/** Whose doing it is in the end: for whom the actor acts, else the actor. */
export const principalIn = ({ subjectId, onBehalfOf }: Actor): string => onBehalfOf ?? subjectId;

/** Context of a command by which the service itself looks after a hub, or what is on it, on somebody's behalf. */
export const hubContext = (
  commandId: string,
  by: string,
  hub: string,
  { tenant, project }: Pick<CommandContext, 'tenant' | 'project'>,
): CommandContext => ({
  tenant,
  project,
  actor: workflowActor(by),
  commandId,
  requestHash: commandId,
  correlationId: commandId,
  causationId: commandId,
  hub,
});

/** Context of a command that the service gives itself. `causationId`: the event or command that led to it. */
export const systemContext = (
  commandId: string,
  via: string,
  cause: {
    readonly tenant?: string;
    readonly project?: string;
    readonly causationId?: string;
    readonly onBehalfOf?: string;
  } = {},
): CommandContext => ({
  tenant: cause.tenant ?? '',
  project: cause.project ?? '',
  actor: systemActor(via, cause.onBehalfOf),
  commandId,
  // There is no request: a repeated command id is the same command.
  requestHash: '',
  correlationId: cause.causationId ?? commandId,
  causationId: cause.causationId ?? commandId,
});

/** Metadata of the service's own bookkeeping in `sys-` streams. */
export const systemMetadata = (
  commandId: string,
  command: string,
  occurredAt: string,
  instance: string,
): CommandMetadata => commandMetadata(systemContext(commandId, 'bookkeeping'), command, occurredAt, instance);
