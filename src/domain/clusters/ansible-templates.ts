import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, stringAt } from '../json-tools.ts';
import { clusterOrderSpec, type OrderedSpec } from './cluster-order-manifest.ts';

/**
 * Text that Ansible carries out as a template when it meets it in a variable: `{{ lookup('pipe', …) }}` in an order would
 * run on the machine of a hub's automation. Seen with ansible-core 2.19 (test/real/rulebook.test.ts), the header line as
 * well. Where we call the automation ourselves (modes `eda` and `aap`) such an order is never handed to it; an operator
 * decides for itself.
 */
const TEMPLATE = /\{[{%#]|^#jinja2:/;

export const isTemplate = (text: string): boolean => TEMPLATE.test(text);

/** Path of the first text with a template in a ClusterOrder's spec; undefined: there is none. */
export const templateInSpec = (spec: JsonValue): string | undefined =>
  templateAt(spec, 'spec') ?? (isObject(spec) ? templateInParameters(spec) : undefined);

/** The same of an order that has no ClusterOrder yet, in the words of who ordered it. The pull secret is not looked into. */
export const templateInOrder = (order: OrderedSpec): string | undefined => {
  const found = templateInSpec(clusterOrderSpec(order) as unknown as JsonObject);
  return found?.replace(/spec\.(\w+)/, (all, field: string) =>
    ORDERED_AS.has(field) ? `spec.${ORDERED_AS.get(field)}` : all,
  );
};
const ORDERED_AS: ReadonlyMap<string, string> = new Map([
  ['templateID', 'template'],
  ['templateParameters', 'template_parameters'],
  ['nodeRequests', 'node_sets'],
  ['sshPublicKey', 'ssh_public_key'],
  ['releaseImage', 'release_image'],
]);

/** Names of fields are texts, too. */
const templateAt = (value: JsonValue, path: string): string | undefined => {
  if (typeof value === 'string') return isTemplate(value) ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, item] of Object.entries(value)) {
    if (isTemplate(key)) return `the name of a field in ${path}`;
    const found = templateAt(item, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
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
