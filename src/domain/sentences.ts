import type { JsonObject, JsonValue } from './json.ts';

/**
 * Sentences of the timeline, for people: one per event type. Each is written from the event as its reader may see it: what was
 * redacted for that audience is absent in `data`, and the sentence must still be one.
 */
export type Sentence = string | ((data: JsonObject) => string);
export type Sentences = { readonly [type: string]: Sentence };

export const textOf = (value: JsonValue | undefined): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : '';
export const objectOf = (value: JsonValue | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
export const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value : [];
export const nameOf = (value: JsonValue | undefined): string => {
  const { name, id } = objectOf(value);
  return textOf(name) || textOf(id);
};
export const from = (text: string, before: string): string => (text === '' ? '' : `${before}${text}`);
export const quoted = (value: JsonValue | undefined): string => {
  const text = textOf(value);
  return text === '' ? '' : ` "${text}"`;
};
/** The message of the event, or its reason, without the full stop that the sentence ends with anyway. */
export const because = (data: JsonObject): string =>
  from((textOf(data['message']) || textOf(data['reason'])).replace(/\.$/, ''), ': ');
