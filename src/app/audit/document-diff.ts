import { sameJson } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';

/** One difference between two documents, at a JSON Pointer (RFC 6901). */
export type DocumentChange = {
  readonly path: string;
  readonly op: 'add' | 'remove' | 'replace';
  readonly before?: JsonValue;
  readonly after?: JsonValue;
};

/**
 * What turns one document into the other, as deep as objects go; lists differ as a whole. In the order of the keys of the
 * first one, then of what is new.
 */
export const differences = (before: JsonObject, after: JsonObject, path = ''): readonly DocumentChange[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const place = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const had = Object.hasOwn(before, key) ? before[key] : undefined;
    const has = Object.hasOwn(after, key) ? after[key] : undefined;
    if (had === undefined) return has === undefined ? [] : [{ path: place, op: 'add' as const, after: has }];
    if (has === undefined) return [{ path: place, op: 'remove' as const, before: had }];
    if (isPlain(had) && isPlain(has)) return differences(had, has, place);
    return sameJson(had, has) ? [] : [{ path: place, op: 'replace' as const, before: had, after: has }];
  });

const isPlain = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
