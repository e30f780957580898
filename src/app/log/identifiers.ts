import { hash } from 'node:crypto';
import { parse } from 'uuid';

const bytesOf = (uuid: string): Buffer => Buffer.from(parse(uuid));

/**
 * Every derived id of the service, each kind in its own namespace. The namespaces are part of the storage format:
 * a changed one would break the idempotency of everything already stored.
 */
const NAMESPACES = {
  event: bytesOf('3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11'),
  command: bytesOf('8a7be5d0-1c0b-4d52-9b1a-2e64f10c9d23'),
  creation: bytesOf('c2b6a1f4-90d7-4c39-8e57-7d1f3a6b5e35'),
  derivedCommand: bytesOf('5d9e8c17-2a4f-4b66-8c0d-9f3b7e21a447'),
  subject: bytesOf('e71f0b3a-4d68-4f95-a2c1-60d8c5b49e59'),
  secretVersion: bytesOf('17c3f9d2-b58e-4e0a-9d74-38a6e0f2bc6b'),
};

/** The digit of the variant (RFC 9562 §4.1) by the digit that stands in its place: its upper two bits are 10. */
const VARIANT = '89ab';

/**
 * UUIDv5 of the parts, joined as a JSON array so that no part can imitate a separator. An order takes a hundred of them
 * to READY: with the one-shot hash, and written down by hand, each costs a twentieth of what the library's own `v5`
 * does (RFC 9562 §5.5).
 */
const derive = (namespace: keyof typeof NAMESPACES, parts: readonly (string | number)[]): string => {
  const name = JSON.stringify(parts);
  const prefix = NAMESPACES[namespace];
  const input = Buffer.allocUnsafe(prefix.length + Buffer.byteLength(name));
  prefix.copy(input);
  input.write(name, prefix.length, 'utf8');
  const hex = hash('sha1', input, 'hex');
  const variant = VARIANT[Number.parseInt(hex[16] ?? '', 16) & 3] ?? '';
  const [low, mid, high] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(13, 16)];
  return `${low}-${mid}-5${high}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

const DERIVED = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** True for ids that look like those of `derive`, which anybody can compute: callers may not choose them. */
export const isDerivedForm = (id: string): boolean => DERIVED.test(id);

/** Id of the `index`-th event that a command appends to a stream: the same for every retry. */
export const eventId = (commandId: string, stream: string, index: number): string =>
  derive('event', [commandId, stream, index]);

/** What a keyed request is scoped by: the same key of another caller or route is another command. */
export type IdempotencyScope = {
  readonly tenant: string;
  readonly subjectId: string;
  readonly method: string;
  /** The matched path with its ids filled in, so that one key on two objects is two commands. */
  readonly route: string;
};

const scoped = (scope: IdempotencyScope, key: string): readonly string[] => [
  scope.tenant,
  scope.subjectId,
  scope.method,
  scope.route,
  key,
];

export const keyedCommandId = (scope: IdempotencyScope, key: string): string =>
  derive('command', scoped(scope, key));

/** Id of the object that a keyed POST creates. */
export const keyedCreationId = (scope: IdempotencyScope, key: string): string =>
  derive('creation', scoped(scope, key));

/** Id of a step that belongs to a command but is an append of its own (a name reservation, its release). */
export const derivedCommandId = (commandId: string, ...step: readonly (string | number)[]): string =>
  derive('derivedCommand', [commandId, ...step]);

/** A person's or service's id in events, documents and key names: holds no personal text. */
export const subjectIdOf = (tenant: string, issuer: string, sub: string): string =>
  derive('subject', [tenant, issuer, sub]);

/**
 * Id of whom one issuer says to be a subject of another: of that one's own subjects it is none, since their issuer
 * has not
 * said that they act.
 */
export const vouchedSubjectIdOf = (
  tenant: string,
  { vouchedBy, issuer, sub }: { readonly vouchedBy: string; readonly issuer: string; readonly sub: string },
): string => derive('subject', [tenant, vouchedBy, issuer, sub]);

/**
 * Version of a secret value. A retry of the same request overwrites it; a request that reuses the command id with
 * another body (and will be refused) cannot, because its hash differs.
 */
export const secretVersionOf = (commandId: string, requestHash: string, path: string): string =>
  derive('secretVersion', [commandId, requestHash, path]);
