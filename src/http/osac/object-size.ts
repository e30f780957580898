import type { SecretStore } from '../../app/ports.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { MAX_BODY_BYTES } from '../body.ts';
import { invalid, type ApiError } from '../errors.ts';
import type { SecretChanges } from './secrets.ts';

/**
 * One body bounds what it creates; many changes could still add up to more. Whatever an object holds is in every event,
 * row, list and watch of it, and in the memory of whoever uses its secrets.
 */
export const MAX_OBJECT_BYTES = MAX_BODY_BYTES;
/** Values of one map of secrets together, bytes before they are encoded: what one body can hold, and a little more. */
export const MAX_SECRET_BYTES = 256 * 1024;

/** Throws ApiError 400 when a change makes an object larger than it may be; one that is larger may become smaller. */
export const assertMayGrow = (before: JsonObject, after: JsonObject): void => {
  const bytes = sizeOf(after);
  if (bytes > MAX_OBJECT_BYTES && bytes > sizeOf(before))
    throw tooLarge(`an object may have at most ${MAX_OBJECT_BYTES} bytes, but this change makes it ${bytes}`);
};

const sizeOf = (document: JsonObject): number => Buffer.byteLength(JSON.stringify(document));

/**
 * Throws ApiError 400 when new values and those that stay are too large together. Those that stay are looked at only
 * when there are both: nothing else says how large they are.
 */
export const assertSecretsFit = async (
  { secrets }: Pick<ResourceKind, 'secrets'>,
  store: Pick<SecretStore, 'reveal'>,
  { values, removed }: SecretChanges,
  stored: { readonly [path: string]: SecretRef },
  tenant: string,
): Promise<void> => {
  for (const { path } of secrets) {
    if (!path.endsWith('.*')) continue;
    const map = path.slice(0, -2);
    const isInMap = (one: string): boolean => one.startsWith(`${map}.`);
    const changed = values.filter((value) => isInMap(value.path));
    if (changed.length === 0) continue;
    const gone = new Set([...removed, ...changed.map((value) => value.path)]);
    let bytes = changed.reduce((sum, { value }) => sum + value.byteLength, 0);
    for (const [at, ref] of Object.entries(stored))
      if (isInMap(at) && !gone.has(at)) bytes += await sizeOfSecret(store, ref, tenant);
    if (bytes > MAX_SECRET_BYTES)
      throw tooLarge(`the values of field '${map}' may have at most ${MAX_SECRET_BYTES} bytes together`, map);
  }
};

/** One that cannot be read counts for nothing: it does not keep its object from being mended. */
const sizeOfSecret = async (
  store: Pick<SecretStore, 'reveal'>,
  ref: SecretRef,
  tenant: string,
): Promise<number> => {
  const value = await store.reveal(ref, ref.tenant ?? tenant).catch(() => undefined);
  return value?.byteLength ?? 0;
};

const tooLarge = (message: string, field?: string): ApiError => invalid(message, field, 'OBJECT_TOO_LARGE');
