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

export const entriesOf = <Value>(buckets: Buckets<Value>): readonly (readonly [string, Value])[] =>
  Object.values(buckets).flatMap((bucket) => Object.entries(bucket));
