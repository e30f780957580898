import { secretVersionOf } from '../../app/identifiers.ts';
import type { SecretStore } from '../../app/ports.ts';
import { valueAt, withoutValueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { invalid } from '../errors.ts';

/** What write-only fields read as; sent back, it keeps what is stored (osac-api.md §11 ClusterSpec). */
export const HIDDEN = '***';

type SecretRules = Pick<ResourceKind, 'kind' | 'secrets'>;

export type SecretValue = {
  readonly path: string;
  readonly kind: SecretRef['kind'];
  readonly value: Uint8Array;
};

/** The write-only values of a new object, and the object without them. Throws ApiError 400. */
export const takeSecrets = (
  { secrets }: SecretRules,
  document: JsonObject,
): { readonly document: JsonObject; readonly values: readonly SecretValue[] } => {
  let rest = document;
  const values: SecretValue[] = [];
  for (const { path, kind, encoding } of secrets) {
    const text = valueAt(document, path);
    if (text === undefined) continue;
    rest = withoutValueAt(rest, path);
    if (typeof text !== 'string' || text === '') continue;
    if (text === HIDDEN)
      throw invalid(`field '${path}' must hold the secret itself, not what reads show`, path);
    values.push({ path, kind, value: Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8') });
  }
  return { document: rest, values };
};

export type SecretChanges = {
  readonly document: JsonObject;
  readonly values: readonly SecretValue[];
  /** Paths whose secret is to be forgotten. */
  readonly removed: readonly string[];
};

/**
 * What an update does to secrets. `before` is the object as reads show it, `merged` the same with the caller's
 * changes: an untouched or hidden value stays, a new one replaces, a cleared one is removed.
 */
export const changedSecrets = (
  { secrets }: SecretRules,
  before: JsonObject,
  merged: JsonObject,
  present: JsonObject,
): SecretChanges => {
  let rest = merged;
  const values: SecretValue[] = [];
  const removed: string[] = [];
  for (const { path, kind, encoding, reads } of secrets) {
    const text = valueAt(merged, path);
    rest = withoutValueAt(rest, path);
    if (typeof text === 'string' && text !== '' && text !== HIDDEN)
      values.push({ path, kind, value: Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8') });
    else if (reads === '***' && text !== HIDDEN && valueAt(before, path) === HIDDEN) removed.push(path);
    else if (reads === 'absent' && writtenEmpty(present, path)) removed.push(path);
  }
  return { document: rest, values, removed };
};

/** A field that reads never show is removed only when the caller writes null or an empty text. */
const writtenEmpty = (present: JsonObject, path: string): boolean => {
  const written = valueAt(present, path);
  return written === null || written === '';
};

/**
 * Stores values before the append that refers to them; a retry of the same command overwrites its own (design §4). A
 * dry run gets references to nothing.
 */
export const storeSecrets = async (
  store: SecretStore,
  owner: { readonly kind: string; readonly id: string; readonly tenant: string },
  command: { readonly commandId: string; readonly requestHash: string; readonly dryRun?: true },
  values: readonly SecretValue[],
): Promise<{ readonly [path: string]: SecretRef }> => {
  const stored: Record<string, SecretRef> = {};
  for (const { path, kind, value } of values) {
    const id = `${owner.kind}.${owner.id}.${path}`;
    const version = secretVersionOf(command.commandId, command.requestHash, path);
    stored[path] =
      command.dryRun === true
        ? { id, version, kind, fingerprint: NO_FINGERPRINT }
        : await store.put({ id, version, kind, tenant: owner.tenant, value });
  }
  return stored;
};

/** Where a dry run shows that a value would be stored. */
const NO_FINGERPRINT = '0'.repeat(16);
