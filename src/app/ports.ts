import type { SecretRef } from '../domain/secret-ref.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Actor, Encrypted, PersonalData, RequestSource } from './log/metadata.ts';

/** Small ports that make time, identity and threads replaceable (simulation, tests). */

export type Clock = {
  /** Wall clock, ISO 8601 UTC with milliseconds. */
  now(): string;
  /** Monotonic milliseconds; only differences mean something. */
  monotonicMs(): number;
};

export type Timers = {
  /** Calls `run` once after `ms` milliseconds of monotonic time; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
};

export type Ids = {
  /** UUIDv7: sorts by creation time. */
  uuidv7(): string;
};

export type Logger = {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
};

/** What most parts of the service run on. */
export type Runtime = {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly ids: Ids;
  /** Name of this process incarnation, written into the metadata of every event. */
  readonly instance: string;
  readonly logger: Logger;
};

/** Refused and failed calls are recorded from the start; the audit context stores them. */
export type RejectionRecord = {
  readonly tenant: string;
  readonly project?: string;
  /** Empty: nobody knows who called. */
  readonly subjectId: string;
  readonly command: string;
  readonly commandId?: string;
  readonly outcome: 'rejected' | 'denied' | 'unauthenticated';
  readonly code: string;
  /** What kind of refusal it is, of the few that there are (`ERROR_OF` in refusals.ts): the same words for everybody. */
  readonly error?: string;
  readonly message: string;
  /** True: the message repeats nothing of what the caller sent. */
  readonly plain?: true;
  readonly at: string;
  /** The call that was refused, and its trace: what its log lines and events carry. */
  readonly correlationId?: string;
  readonly traceparent?: string;
  readonly ticket?: string;
  /** Who called, as events say it; absent: nobody knows. */
  readonly actor?: Actor;
  /** From where, as events say it. */
  readonly source?: Encrypted;
  /** Both in clear, where nobody has concealed them yet: never to be stored or logged. */
  readonly clear?: { readonly person: PersonalData; readonly source: RequestSource };
  /** What it was about: kind and id of the object, where that is known. */
  readonly kind?: string;
  readonly resourceId?: string;
  /** HMAC of the request, where it was made already. */
  readonly requestHash?: string;
  /** The request as it was read: may hold secrets, so that only its hash may be kept. */
  readonly body?: () => JsonObject;
  /** Names of the fields that it set: of the service's own ones alone, no key that the caller chose. */
  readonly fields?: () => readonly string[];
};
export type RecordRejection = (record: RejectionRecord) => void;

export type SecretStore = {
  /** Stores the value under (id, version); the version is derived from the command id, so a retry overwrites. */
  put(secret: {
    id: string;
    version: string;
    kind: SecretRef['kind'];
    tenant: string;
    value: Uint8Array;
  }): Promise<SecretRef>;
  /** Undefined when there is no such value. Throws when it was tampered with. */
  reveal(ref: SecretRef, tenant: string): Promise<Uint8Array | undefined>;
  remove(ref: Pick<SecretRef, 'id' | 'version'>): Promise<void>;
  /** Every stored (id, version) with the time it was stored, for sweeping orphans. */
  list(): AsyncIterable<{ id: string; version: string; storedAt: string }>;
};

/** One AES-256-GCM key per data subject; destroying it erases that person's data everywhere. */
export type KeyStore = {
  /** Creates the subject's key when it does not exist yet. */
  encrypt(subjectId: string, plaintext: string): Promise<Encrypted>;
  /** Undefined when the key was destroyed. */
  decrypt(value: Encrypted): Promise<string | undefined>;
  /** Whether the subject has a key: none was made yet, or it was destroyed. Never from a cache. */
  has(subjectId: string): Promise<boolean>;
  destroy(subjectId: string): Promise<void>;
};
