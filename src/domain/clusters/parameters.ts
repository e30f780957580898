import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, listAt, own, stringAt } from '../json-tools.ts';

/** Template parameters of an order, after defaults (OSAC). */
export const parametersOf = (
  template: { readonly id: string; readonly document: JsonObject },
  given: JsonObject,
): { [name: string]: JsonObject } | Rejection => {
  const definitions = listAt(template.document, 'parameters').filter(isObject);
  const names = definitions.map((definition) => stringAt(definition, 'name'));
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const valid = names.length === 0 ? 'it has none' : `valid names are: ${[...names].sort().join(', ')}`;
    return refuse(
      'UNKNOWN_PARAMETER',
      unknown,
      `template '${template.id}' has no parameter '${unknown}'; ${valid}`,
    );
  }
  const parameters: [string, JsonObject][] = [];
  for (const definition of definitions) {
    const name = stringAt(definition, 'name');
    const value = own(given, name) ?? (definition['required'] === true ? undefined : definition['default']);
    const type = stringAt(definition, 'type');
    if (isObject(value)) {
      const actual = stringAt(value, '@type');
      if (actual !== type) {
        const message = `type of parameter '${name}' of template '${template.id}' should be '${type}', but it is '${actual}'`;
        return refuse('PARAMETER_TYPE', name, message);
      }
      parameters.push([name, value]);
    } else if (definition['required'] === true) {
      return refuse(
        'PARAMETER_REQUIRED',
        name,
        `parameter '${name}' of template '${template.id}' is mandatory`,
      );
    }
  }
  return Object.fromEntries(parameters);
};

const refuse = (code: string, name: string, message: string): Rejection =>
  invalid(code, `spec.template_parameters.${name}`, message);
