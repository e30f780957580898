import { reject, type Rejection } from './decider.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { codePoints, isObject } from './json-tools.ts';

/** Rules of `metadata` that hold for every kind (OSAC). */
export const NAME_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$';
const NAME = new RegExp(NAME_PATTERN);
const PREFIX = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;
const LABEL_CHARACTER = /[a-z0-9._-]/;
const ALPHANUMERIC = /[a-z0-9]/;

const MAX_NAME = 63;
const MAX_PREFIX = 253;
const MAX_DISPLAY_NAME = 63;
const MAX_DESCRIPTION = 256;
/**
 * Labels, annotations and finalizers of one object; the original sets no bound. Whatever a document holds is in every
 * event, row and watch of it. The size of annotations is what Kubernetes allows.
 */
export const MAX_LABELS = 128;
export const MAX_ANNOTATIONS = 128;
export const MAX_ANNOTATION_BYTES = 256 * 1024;
export const MAX_FINALIZERS = 64;
const MAX_FINALIZER = 253;
/** Characters of a key that an answer repeats. */
const MAX_SHOWN_KEY = 64;

type Violation = { readonly field: string; readonly problem: string };

/** One rejection for one or more schema violations, in the form that OSAC's clients recognise by its prefix. */
export const validationFailed = (violations: readonly Violation[]): Rejection => {
  const texts = violations.map(({ field, problem }) => `${field}: ${problem}`);
  const message =
    texts.length === 1
      ? `validation failed: validation error: ${texts[0]}`
      : `validation failed: validation errors:${texts.map((text) => `\n - ${text}`).join('')}`;
  return reject('invalid', 'VALIDATION_FAILED', message, { field: violations[0]?.field ?? 'object' });
};

/** Undefined when the name is a DNS label of 1 to 63 characters. */
export const nameRejection = (name: string, field = 'object.metadata.name'): Rejection | undefined => {
  const violations: Violation[] = [];
  if (name.length === 0) violations.push({ field, problem: 'must be at least 1 characters' });
  if (name.length > MAX_NAME) violations.push({ field, problem: `must be at most ${MAX_NAME} characters` });
  if (!NAME.test(name))
    violations.push({ field, problem: `does not match regex pattern \`${NAME_PATTERN}\`` });
  return violations.length === 0 ? undefined : validationFailed(violations);
};

/** Labels, annotations, display name, description and finalizers; the name has its own rule. */
export const metadataRejection = (metadata: JsonObject): Rejection | undefined =>
  textRejection(metadata['display_name'], 'object.metadata.display_name', MAX_DISPLAY_NAME) ??
  textRejection(metadata['description'], 'object.metadata.description', MAX_DESCRIPTION) ??
  labelsRejection(metadata['labels']) ??
  annotationsRejection(metadata['annotations']) ??
  finalizersRejection(metadata['finalizers']);

export const labelsRejection = (labels: JsonValue | undefined): Rejection | undefined => {
  if (!isObject(labels)) return undefined;
  if (Object.keys(labels).length > MAX_LABELS) return tooMany('metadata.labels', 'labels', MAX_LABELS);
  for (const [key, value] of Object.entries(labels)) {
    const found = keyRejection('metadata.labels', key) ?? labelValueRejection(key, value);
    if (found !== undefined) return found;
  }
  return undefined;
};

export const annotationsRejection = (annotations: JsonValue | undefined): Rejection | undefined => {
  if (!isObject(annotations)) return undefined;
  const field = 'metadata.annotations';
  const entries = Object.entries(annotations);
  if (entries.length > MAX_ANNOTATIONS) return tooMany(field, 'annotations', MAX_ANNOTATIONS);
  let bytes = 0;
  for (const [key, text] of entries) {
    const found = keyRejection(field, key);
    if (found !== undefined) return found;
    bytes += bytesOf(key) + (typeof text === 'string' ? bytesOf(text) : 0);
  }
  return bytes <= MAX_ANNOTATION_BYTES
    ? undefined
    : reject(
        'invalid',
        'TOO_LARGE',
        `field '${field}' may hold at most ${MAX_ANNOTATION_BYTES} bytes of keys and values, but it holds ${bytes}`,
        { field },
      );
};

const finalizersRejection = (finalizers: JsonValue | undefined): Rejection | undefined => {
  if (!Array.isArray(finalizers)) return undefined;
  const field = 'metadata.finalizers';
  if (finalizers.length > MAX_FINALIZERS) return tooMany(field, 'finalizers', MAX_FINALIZERS);
  const wrong = finalizers.some(
    (one) => typeof one !== 'string' || one.length === 0 || one.length > MAX_FINALIZER,
  );
  return wrong
    ? reject('invalid', 'INVALID_FINALIZER', `every finalizer must have 1 to ${MAX_FINALIZER} characters`, {
        field,
      })
    : undefined;
};

const tooMany = (field: string, what: string, most: number): Rejection =>
  reject('invalid', 'TOO_MANY', `field '${field}' may hold at most ${most} ${what}`, { field });

/** Of the text in UTF-8. */
const bytesOf = (text: string): number => new TextEncoder().encode(text).byteLength;

/** A field that keeps the value it was created with; several are named in one sentence. */
export const immutableRejection = (paths: readonly string[]): Rejection => {
  const quoted = paths.map((path) => `'${path}'`);
  const message =
    quoted.length === 1
      ? `field ${quoted[0]} is immutable`
      : `fields ${quoted.slice(0, -1).join(', ')} and ${quoted.at(-1)} are immutable`;
  return reject('invalid', 'IMMUTABLE_FIELD', message, { field: paths[0] ?? '' });
};

const textRejection = (text: JsonValue | undefined, field: string, max: number): Rejection | undefined =>
  // Counting code points is left out where the text is too long however they are counted.
  typeof text === 'string' && (text.length > 2 * max || codePoints(text).length > max)
    ? validationFailed([{ field, problem: `must be at most ${max} characters` }])
    : undefined;

const keyRejection = (field: string, key: string): Rejection | undefined => {
  const slash = key.indexOf('/');
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  const name = slash < 0 ? key : key.slice(slash + 1);
  const say = (problem: string): Rejection =>
    reject('invalid', 'INVALID_KEY', `field '${field}' key '${clip(key)}' ${problem}`, { field });
  if (prefix !== undefined) {
    if (prefix.length === 0) return say('prefix must not be empty');
    if (prefix.length > MAX_PREFIX) return say(`prefix must be at most ${MAX_PREFIX} characters long`);
    if (!PREFIX.test(prefix)) return say('prefix must be a DNS name in lower case');
  }
  const problem = labelTextProblem(name);
  return problem === undefined ? undefined : say(`name ${problem}`);
};

const labelValueRejection = (key: string, value: JsonValue | undefined): Rejection | undefined => {
  if (value === '' || typeof value !== 'string') return undefined;
  const problem = labelTextProblem(value);
  return problem === undefined
    ? undefined
    : reject(
        'invalid',
        'INVALID_LABEL_VALUE',
        `field 'metadata.labels' key '${clip(key)}' value ${problem}`,
        {
          field: 'metadata.labels',
        },
      );
};

const clip = (key: string): string =>
  key.length <= MAX_SHOWN_KEY ? key : `${key.slice(0, MAX_SHOWN_KEY - 3)}...`;

/** What is wrong with the name part of a key or with a label value. */
const labelTextProblem = (text: string): string | undefined => {
  if (text.length === 0) return 'must not be empty';
  if (text.length > MAX_NAME) return `must be at most ${MAX_NAME} characters long`;
  const bad = codePoints(text).findIndex((character) => !LABEL_CHARACTER.test(character));
  if (bad >= 0) {
    return (
      'must only contain lowercase letters (a-z), digits (0-9), hyphens (-), underscores (_) or dots (.), ' +
      `but contains '${codePoints(text)[bad]}' at position ${bad}`
    );
  }
  if (!ALPHANUMERIC.test(text[0] ?? '')) return 'must start with a letter or a digit';
  if (!ALPHANUMERIC.test(text.at(-1) ?? '')) return 'must end with a letter or a digit';
  return undefined;
};
