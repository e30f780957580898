import { timingSafeEqual } from 'node:crypto';
import { secretVersionOf } from '../../app/log/identifiers.ts';
import type { SecretStore } from '../../app/ports.ts';
import { actingKindOf } from '../../domain/acting-kinds.ts';
import { isOnlyItsOwn, refsOf, secretIdOf } from '../../app/secrets/stored-secrets.ts';
import { objectAt, own, valueAt, withoutValueAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { invalid } from '../errors.ts';
import type { UpdateMessage } from './call.ts';

/** What write-only fields read as; sent back, it keeps what is stored (OSAC). */
export const HIDDEN = '***';

/** Entries of one map of secrets; more is 400 before any of them is stored. */
const MAX_ENTRIES = 200;

type SecretRules = Pick<ResourceKind, 'kind' | 'secrets'>;
type SecretRule = ResourceKind['secrets'][number];

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
  const values: SecretValue[] = [];
  for (const rule of secrets) {
    for (const [path, text] of textsOf(rule, document)) {
      if (text === HIDDEN)
        throw invalid(`field '${path}' must hold the secret itself, not what reads show`, path);
      values.push(valueOf(rule, path, text));
    }
  }
  return { document: withoutSecrets({ secrets }, document), values };
};

/** The document without any write-only field, stored or sent. */
export const withoutSecrets = ({ secrets }: Pick<SecretRules, 'secrets'>, document: JsonObject): JsonObject =>
  secrets.reduce((rest, { path }) => withoutValueAt(rest, mapOf(path) ?? path), document);

export type SecretChanges = {
  readonly values: readonly SecretValue[];
  readonly removed: readonly string[];
};

/**
 * What an update does to secrets. `before` is the object as reads show it, `merged` the same with the caller's
 * changes, `stored` the paths that hold a secret now. An untouched or hidden value stays, a new one replaces, a cleared
 * one is removed. A map of secrets follows the update rule: named as a whole it is replaced, by a mask that names one
 * key only that key changes. What reads never show cannot be sent back, so leaving it out of a message that is sent
 * again keeps it.
 */
export const changedSecrets = (
  { secrets }: SecretRules,
  before: JsonObject,
  merged: JsonObject,
  message: Pick<UpdateMessage, 'present' | 'updateMask'>,
  stored: readonly string[],
): SecretChanges => {
  const values: SecretValue[] = [];
  const removed = new Set<string>();
  for (const rule of secrets) {
    const sent = new Map(textsOf(rule, merged));
    for (const [path, text] of sent) if (text !== HIDDEN) values.push(valueOf(rule, path, text));
    const has = stored.filter((path) => belongsTo(rule, path));
    for (const path of has)
      if (!sent.has(path) && isCleared(rule, path, before, merged, message)) removed.add(path);
  }
  return { values, removed: [...removed] };
};

/** True when the caller's words take away the secret at `path`, which the merged document does not hold. */
const isCleared = (
  { path: declared, reads }: SecretRule,
  path: string,
  before: JsonObject,
  merged: JsonObject,
  { present, updateMask }: Pick<UpdateMessage, 'present' | 'updateMask'>,
): boolean => {
  const map = mapOf(declared);
  // What reads show was sent back or left out on purpose.
  if (reads === HIDDEN && map === undefined) return valueAt(before, path) === HIDDEN;
  if (updateMask?.some((one) => isNamed(one, path, map)) === true) return true;
  const field = map ?? declared;
  const named = updateMask === undefined || updateMask.some((one) => field.startsWith(`${snake(one)}.`));
  if (!named) return false;
  const written = writtenAt(present, field);
  if (map !== undefined) return written !== 'untouched';
  return written === 'cleared' || parentGone(declared, before, merged);
};

/** A path of a mask that means exactly this secret, or the map it lies in. */
const isNamed = (mask: string, path: string, map: string | undefined): boolean =>
  map === undefined ? snake(mask) === path : snake(mask) === map || mask === path;

/** `clientSecret` → `client_secret`; keys of maps are compared as they are. */
const snake = (path: string): string => path.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camel = (name: string): string =>
  name.replaceAll(/_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase());

/** What the body as it was written says of a field: `null`, an empty text and `{}` on the way to it clear it. */
const writtenAt = (present: JsonObject, path: string): 'untouched' | 'cleared' | 'set' => {
  let node: JsonValue | undefined = present;
  for (const segment of path.split('.')) {
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return 'untouched';
    node = own(node, segment) ?? own(node, camel(segment)) ?? nullAt(node, segment);
    if (node === undefined) return 'untouched';
    if (node === null || node === '' || isEmpty(node)) return 'cleared';
  }
  return 'set';
};

const nullAt = (node: JsonObject, segment: string): null | undefined =>
  own(node, segment) === null || own(node, camel(segment)) === null ? null : undefined;

const isEmpty = (node: JsonValue): boolean =>
  typeof node === 'object' && node !== null && Object.keys(node).length === 0;

/** The message around it was there and is gone, and its secret with it. */
const parentGone = (path: string, before: JsonObject, merged: JsonObject): boolean => {
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('.')));
  return parent !== '' && valueAt(before, parent) !== undefined && valueAt(merged, parent) === undefined;
};

/** `data` of `data.*`; undefined for a single field. */
const mapOf = (path: string): string | undefined => (path.endsWith('.*') ? path.slice(0, -2) : undefined);

const belongsTo = ({ path: declared }: SecretRule, path: string): boolean => {
  const map = mapOf(declared);
  return map === undefined ? path === declared : path.startsWith(`${map}.`);
};

/** Texts that a document holds where secrets belong, by their paths. Throws ApiError 400 when a map has too many. */
const textsOf = ({ path }: SecretRule, document: JsonObject): readonly (readonly [string, string])[] => {
  const map = mapOf(path);
  if (map === undefined) {
    const text = valueAt(document, path);
    return typeof text === 'string' && text !== '' ? [[path, text]] : [];
  }
  const entries = Object.entries(mapAt(document, map));
  if (entries.length > MAX_ENTRIES)
    throw invalid(`field '${map}' may hold at most ${MAX_ENTRIES} entries`, map);
  return entries.flatMap(([key, text]) =>
    typeof text === 'string' ? [[`${map}.${key}`, text] as const] : [],
  );
};

const mapAt = (document: JsonObject, path: string): JsonObject => {
  const at = path.lastIndexOf('.');
  return at < 0
    ? objectAt(document, path)
    : objectAt(valueAt(document, path.slice(0, at)), path.slice(at + 1));
};

const valueOf = ({ kind, encoding, maxBytes }: SecretRule, path: string, text: string): SecretValue => {
  const value = Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8');
  if (maxBytes !== undefined && value.byteLength > maxBytes)
    throw invalid(`field '${path}' may have at most ${maxBytes} bytes`, path);
  return { path, kind, value };
};

/** The values that differ from what is stored: sending a secret again changes nothing. One that cannot be read is replaced. */
export const newValues = async (
  store: SecretStore,
  values: readonly SecretValue[],
  stored: { readonly [path: string]: SecretRef },
  tenant: string,
): Promise<readonly SecretValue[]> => {
  const changed: SecretValue[] = [];
  for (const value of values) {
    const ref = own(stored, value.path);
    const current =
      ref === undefined ? undefined : await store.reveal(ref, ref.tenant ?? tenant).catch(() => undefined);
    if (current === undefined || !isSame(current, value.value)) changed.push(value);
  }
  return changed;
};

const isSame = (left: Uint8Array, right: Uint8Array): boolean =>
  left.byteLength === right.byteLength && timingSafeEqual(left, right);

/**
 * Stores values before the append that refers to them; a retry of the same command overwrites its own. A
 * dry run gets references to nothing.
 */
export const storeSecrets = async (
  store: SecretStore,
  owner: { readonly kind: string; readonly id: string; readonly tenant: string },
  command: { readonly commandId: string; readonly requestHash: string; readonly dryRun?: true },
  values: readonly SecretValue[],
): Promise<{ readonly [path: string]: SecretRef }> => {
  const stored: [string, SecretRef][] = [];
  for (const { path, kind, value } of values) {
    const id = secretIdOf(owner.kind, owner.id, path);
    const version = secretVersionOf(command.commandId, command.requestHash, path);
    const ref =
      command.dryRun === true
        ? { id, version, kind, fingerprint: NO_FINGERPRINT }
        : await store.put({ id, version, kind, tenant: owner.tenant, value });
    stored.push([path, ref]);
  }
  return Object.fromEntries(stored);
};

/**
 * Removes what an object no longer has, once its event says so; what others may have taken over goes later, with what
 * a crash or a store that fails leaves here (`stored-secrets.ts`). Never throws: the write is done.
 */
export const forgetFormer = async (
  store: Pick<SecretStore, 'remove'>,
  kind: string,
  before: ResourceView,
  after: ResourceView,
): Promise<void> => {
  const gone = after.exists && after.archived;
  // An order's own value may still be on its way to a hub. What is in use elsewhere could not have been deleted.
  const alone = isOnlyItsOwn(kind) || (gone && actingKindOf(kind) === undefined);
  const kept = new Set(refsOf(after).map(keyOfRef));
  const former = alone ? refsOf(before).filter((ref) => !kept.has(keyOfRef(ref))) : [];
  for (const ref of former) await store.remove(ref).catch(() => undefined);
};

const keyOfRef = ({ id, version }: SecretRef): string => JSON.stringify([id, version]);

/** Where a dry run shows that a value would be stored. */
const NO_FINGERPRINT = '0'.repeat(16);
