import { AutomationError } from '../../app/automation.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject, objectAt, stringAt } from '../../domain/json-tools.ts';

/**
 * Text that Ansible would carry out as a template when it meets it in a variable: `{{ lookup('pipe', …) }}` in an order
 * runs on the listener's machine. Seen with ansible-core 2.19 (test/real/rulebook.test.ts), the header line as well.
 */
const TEMPLATE = /\{[{%#]|^#jinja2:/;

/**
 * The order as playbooks may be given it. What a tenant wrote (`spec`) is refused when it holds a template; in what the
 * hub's own controllers wrote, error texts for example, templates are broken up. Throws AutomationError `invalid`.
 */
export const playbookSafe = (order: JsonObject): JsonObject => {
  const { spec, ...rest } = order;
  if (spec === undefined) return brokenUp(rest) as JsonObject;
  const found = templateAt(spec, 'spec') ?? templateInParameters(objectAt(order, 'spec'));
  if (found === undefined) return { ...(brokenUp(rest) as JsonObject), spec };
  throw new AutomationError(
    'invalid',
    `${found} of the order holds an Ansible template ({{, {%, {# or #jinja2:), which the hub's playbooks would carry out; nothing was sent`,
  );
};

/** Path of the first text with a template in it; names of fields are texts, too. */
const templateAt = (value: JsonValue, path: string): string | undefined => {
  if (typeof value === 'string') return TEMPLATE.test(value) ? path : undefined;
  if (Array.isArray(value)) return firstOf(value.entries(), (n, item) => templateAt(item, `${path}[${n}]`));
  if (!isObject(value)) return undefined;
  return firstOf(Object.entries(value), (key, item) =>
    TEMPLATE.test(key) ? `the name of a field in ${path}` : templateAt(item, `${path}.${key}`),
  );
};

const firstOf = <Key, Item>(
  entries: Iterable<readonly [Key, Item]>,
  look: (key: Key, item: Item) => string | undefined,
): string | undefined => {
  for (const [key, item] of entries) {
    const found = look(key, item);
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Parameters are JSON in a text: a template in them may be written with escapes. */
const templateInParameters = (spec: JsonObject): string | undefined => {
  try {
    const parameters = JSON.parse(stringAt(spec, 'templateParameters') || '{}') as JsonValue;
    return templateAt(parameters, 'spec.templateParameters');
  } catch {
    return undefined;
  }
};

const brokenUp = (value: JsonValue): JsonValue => {
  if (typeof value === 'string') {
    return value.replaceAll(/\{(?=[{%#])/g, '{ ').replace(/^#jinja2:/, '# jinja2:');
  }
  if (Array.isArray(value)) return value.map(brokenUp);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, brokenUp(item)]));
};
