import { isObject, own, sameJson } from '../../../../src/domain/json-tools.ts';
import { badRequest, StatusError } from '../errors.ts';
import type { JsonObject, JsonValue } from '../types.ts';

/** RFC 7386: null removes, objects merge, everything else replaces. */
export const mergePatch = (target: JsonValue | undefined, patch: JsonValue): JsonValue => {
  if (!isObject(patch)) return patch;
  // By a map: a key may be `__proto__`.
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
};

type Operation = {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: JsonValue;
};

/** RFC 6902. A `test` that fails, or a path that is not there, is a 422 of the whole patch. */
export const jsonPatch = (target: JsonObject, operations: JsonValue): JsonValue => {
  if (!Array.isArray(operations)) throw badRequest('json patch: the body must be a list of operations');
  const document = structuredClone(target) as JsonObject;
  return (operations as unknown as readonly Operation[]).reduce<JsonValue>(applyOne, document);
};

const applyOne = (document: JsonValue, operation: Operation): JsonValue => {
  const { op, path, from, value } = operation;
  switch (op) {
    case 'add':
      return write(document, tokens(path), value ?? null, true);
    case 'replace':
      read(document, tokens(path));
      return write(document, tokens(path), value ?? null, false);
    case 'remove':
      return remove(document, tokens(path));
    case 'test':
      if (!sameJson(read(document, tokens(path)), value ?? null))
        throw refused(`testing value ${path} failed`);
      return document;
    case 'copy':
      return write(document, tokens(path), structuredClone(read(document, tokens(from ?? ''))), true);
    case 'move': {
      const moved = read(document, tokens(from ?? ''));
      return write(remove(document, tokens(from ?? '')), tokens(path), moved, true);
    }
    default:
      throw badRequest(`json patch: unexpected operation ${JSON.stringify(op)}`);
  }
};

const tokens = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));

const refused = (why: string): StatusError =>
  new StatusError(422, 'Invalid', `the server rejected our request due to an error in our request: ${why}`);

const read = (document: JsonValue, path: readonly string[]): JsonValue =>
  path.reduce<JsonValue>((node, token) => {
    const found = Array.isArray(node) ? node[Number(token)] : isObject(node) ? own(node, token) : undefined;
    if (found === undefined) throw refused(`path ${path.join('/')} does not exist`);
    return found;
  }, document);

const write = (
  document: JsonValue,
  path: readonly string[],
  value: JsonValue,
  insert: boolean,
): JsonValue => {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : Number(last);
    if (!(index >= 0 && index <= parent.length)) throw refused(`index ${last} is out of bounds`);
    parent.splice(index, insert ? 0 : 1, value);
  } else if (isObject(parent)) {
    Object.defineProperty(parent, last, { value, enumerable: true, configurable: true, writable: true });
  } else throw refused(`path ${path.join('/')} does not exist`);
  return document;
};

const remove = (document: JsonValue, path: readonly string[]): JsonValue => {
  read(document, path);
  const last = path.at(-1) ?? '';
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else if (isObject(parent)) delete parent[last];
  return document;
};
