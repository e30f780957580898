/**
 * Compares an answer with what a fixture expects. Placeholders inside expected texts: `<uuid>`, `<time>`, `<text>`
 * (anything but nothing), `<any>` (any value), `<NAME>` in capitals (captured at first sight, the same afterwards),
 * `<NAME:uuid>` (captured, and of that form). The key `...` in an object allows more keys than are named.
 */
export type Captures = Map<string, string>;

const FORMS: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  time: /^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}|\d{9}))?Z$/,
  text: /^[^]+$/,
  event: /^[A-Za-z0-9-]+\.\d+\.\d+$/,
  etag: /^"[A-Za-z]+-\d+"$/,
};
const PLACEHOLDER = /<([A-Z][A-Z0-9_]*)(?::([a-z]+))?>|<([a-z]+)>/g;

/** The first difference in words; undefined: it is as expected. */
export const difference = (
  expected: unknown,
  actual: unknown,
  captures: Captures,
  at = 'body',
): string | undefined => {
  if (typeof expected === 'string') return textDifference(expected, actual, captures, at);
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return `${at}: a list was expected, not ${show(actual)}`;
    if (actual.length !== expected.length)
      return `${at}: ${expected.length} entries were expected, not ${actual.length}: ${show(actual)}`;
    return first(expected.map((item, i) => () => difference(item, actual[i], captures, `${at}[${i}]`)));
  }
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null || Array.isArray(actual))
      return `${at}: an object was expected, not ${show(actual)}`;
    const open = Object.hasOwn(expected, '...');
    const keys = Object.keys(expected).filter((key) => key !== '...');
    const found = actual as Record<string, unknown>;
    const more = Object.keys(found).filter((key) => !keys.includes(key));
    const missing = keys.filter((key) => !Object.hasOwn(found, key));
    if (missing.length > 0) return `${at}: ${missing.join(', ')} missing in ${show(actual)}`;
    if (!open && more.length > 0) return `${at}: ${more.join(', ')} not expected in ${show(actual)}`;
    return first(
      keys.map(
        (key) => () =>
          difference((expected as Record<string, unknown>)[key], found[key], captures, `${at}.${key}`),
      ),
    );
  }
  return Object.is(expected, actual)
    ? undefined
    : `${at}: ${show(expected)} was expected, not ${show(actual)}`;
};

const first = (checks: readonly (() => string | undefined)[]): string | undefined => {
  for (const check of checks) {
    const found = check();
    if (found !== undefined) return found;
  }
  return undefined;
};

const show = (value: unknown): string => JSON.stringify(value)?.slice(0, 600) ?? 'nothing';

const textDifference = (
  expected: string,
  actual: unknown,
  captures: Captures,
  at: string,
): string | undefined => {
  if (expected === '<any>') return actual === undefined ? `${at}: nothing there` : undefined;
  if (typeof actual !== 'string') return `${at}: ${show(expected)} was expected, not ${show(actual)}`;
  const names: string[] = [];
  let pattern = '';
  let end = 0;
  for (const match of expected.matchAll(PLACEHOLDER)) {
    const [whole, name, form, plain] = match;
    pattern += escape(expected.slice(end, match.index));
    end = match.index + whole.length;
    const known = name === undefined ? undefined : captures.get(name);
    if (known !== undefined) pattern += escape(known);
    else {
      names.push(name ?? '');
      pattern += `(${bare(FORMS[form ?? plain ?? 'text'] ?? unknownForm(whole))})`;
    }
  }
  pattern += escape(expected.slice(end));
  const found = new RegExp(`^${pattern}$`).exec(actual);
  if (found === null) return `${at}: ${show(expected)} was expected, not ${show(actual)}`;
  for (const [i, name] of names.entries()) if (name !== '') captures.set(name, found[i + 1] ?? '');
  return undefined;
};

const bare = (form: RegExp): string => form.source.replace(/^\^|\$$/g, '').replace(/\((?!\?)/g, '(?:');
const unknownForm = (placeholder: string): never => {
  throw new Error(`${placeholder} is no placeholder`);
};
const nothingCaptured = (placeholder: string): never => {
  throw new Error(`nothing was captured for ${placeholder}`);
};
const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Fills captured values into what is sent: `{NAME}`. Throws where nothing was captured under the name. */
export const fill = <T>(value: T, captures: Captures): T => {
  if (typeof value === 'string')
    return value.replace(
      /\{([A-Z][A-Z0-9_]*)\}/g,
      (whole, name: string) => captures.get(name) ?? nothingCaptured(whole),
    ) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => fill(item, captures)) as T;
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [fill(key, captures), fill(inner as unknown, captures)]),
    ) as T;
  return value;
};
