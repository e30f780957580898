import { TEMPLATE_WORDS } from '../../domain/hubs/placement.ts';
import { AutomationError } from '../../app/automation/automation.ts';
import { templateInSpec } from '../../domain/clusters/ansible-templates.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject } from '../../domain/json-tools.ts';

/**
 * The order as playbooks may be given it. What a tenant wrote (`spec`) is refused when it holds a template; in what the
 * hub's own controllers wrote, error texts for example, templates are broken up. Throws AutomationError `invalid`.
 */
export const playbookSafe = (order: JsonObject): JsonObject => {
  const { spec, ...rest } = order;
  if (spec === undefined) return brokenUp(rest) as JsonObject;
  const found = templateInSpec(spec);
  if (found === undefined) return { ...(brokenUp(rest) as JsonObject), spec };
  throw new AutomationError(
    'invalid',
    `${found} of the order holds ${TEMPLATE_WORDS}, which the hub's playbooks would carry out; nothing was sent`,
  );
};

const brokenUp = (value: JsonValue): JsonValue => {
  if (typeof value === 'string') {
    return value.replaceAll(/\{(?=[{%#])/g, '{ ').replace(/^#jinja2:/, '# jinja2:');
  }
  if (Array.isArray(value)) return value.map(brokenUp);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, brokenUp(item)]));
};
