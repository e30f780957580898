import { fnv1a32 } from './hash.ts';
import { own } from './json-tools.ts';

/** A large map of a folded state: a change copies one bucket, not all of it. */
export type Buckets<Value> = { readonly [bucket: string]: { readonly [key: string]: Value } };

const BUCKETS = 256;
const bucketOf = (key: string): string => `b${fnv1a32(key) % BUCKETS}`;

export const entryOf = <Value>(buckets: Buckets<Value>, key: string): Value | undefined =>
  own(buckets[bucketOf(key)], key);

/** Undefined as value: without the entry. */
export const withEntry = <Value>(
  buckets: Buckets<Value>,
  key: string,
  value: Value | undefined,
): Buckets<Value> => {
  const bucket = bucketOf(key);
  const { [key]: _former, ...others } = buckets[bucket] ?? {};
  return { ...buckets, [bucket]: value === undefined ? others : { ...others, [key]: value } };
};

export const isEmpty = (buckets: Buckets<unknown>): boolean =>
  Object.values(buckets).every((bucket) => Object.keys(bucket).length === 0);

/** Buckets of several maps by `<map>/<bucket>`, each as it stands in the state: it is the same one while nothing in it changes. */
export type Parts = { readonly [name: string]: object };
export const partsOf = (maps: { readonly [map: string]: Buckets<unknown> }): Parts =>
  Object.fromEntries(
    Object.entries(maps).flatMap(([map, buckets]) =>
      Object.entries(buckets).map(([bucket, entries]) => [`${map}/${bucket}`, entries]),
    ),
  );
export const bucketsIn = <Value>(parts: Parts, map: string): Buckets<Value> =>
  Object.fromEntries(
    Object.entries(parts).flatMap(([name, entries]) =>
      name.startsWith(`${map}/`) ? [[name.slice(map.length + 1), entries]] : [],
    ),
  ) as Buckets<Value>;

export const entriesOf = <Value>(buckets: Buckets<Value>): readonly (readonly [string, Value])[] =>
  Object.values(buckets).flatMap((bucket) => Object.entries(bucket));
