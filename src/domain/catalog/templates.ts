import { invalid, reject, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { isObject, listAt, own, stringAt } from '../json-tools.ts';
import { TEMPLATE_ID } from './limits.ts';

/** What templates of every kind have in common (OSAC): their ids, and the parameters that they define. */
export const templateIdFrom = (uuid: string): string => `template_${uuid.replaceAll('-', '_')}`;

/** A hub takes no other id as `templateID`. */
export const templateIdRejection = (id: string): Rejection | undefined => {
  if (id.length > 253)
    return reject('invalid', 'INVALID_ID', 'the id of a template has at most 253 characters', {
      field: 'id',
    });
  return isOrderableTemplateId(id)
    ? undefined
    : reject(
        'invalid',
        'INVALID_ID',
        "field 'id' of a template must begin with a letter or an underscore and hold only letters, digits, dots and underscores: no hub accepts another one as template id",
        { field: 'id' },
      );
};

/** True when a hub accepts the id as `templateID`. */
export const isOrderableTemplateId = (id: string): boolean => TEMPLATE_ID.test(id);

export const definedParametersRejection = (document: JsonObject): Rejection | undefined => {
  const seen = new Set<string>();
  for (const [index, parameter] of listAt(document, 'parameters').entries()) {
    const field = `parameters.${index}`;
    const name = stringAt(parameter, 'name');
    const problem = parameterProblem(parameter as JsonObject, name, seen);
    if (problem !== undefined) return reject('invalid', 'INVALID_PARAMETER', problem, { field });
    seen.add(name);
  }
  return undefined;
};

const parameterProblem = (
  parameter: JsonObject,
  name: string,
  seen: ReadonlySet<string>,
): string | undefined => {
  if (name === '') return 'every template parameter needs a name';
  if (seen.has(name)) return `template parameter '${name}' is defined twice`;
  const type = stringAt(parameter, 'type');
  if (type === '') return `template parameter '${name}' needs a type`;
  const fallback = parameter['default'];
  if (fallback === undefined) return undefined;
  const given = stringAt(fallback, '@type');
  return given === type
    ? undefined
    : `default of template parameter '${name}' should be of type '${type}', but it is '${given}'`;
};

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
    return refuseParameter(
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
        return refuseParameter('PARAMETER_TYPE', name, message);
      }
      parameters.push([name, value]);
    } else if (definition['required'] === true) {
      return refuseParameter(
        'PARAMETER_REQUIRED',
        name,
        `parameter '${name}' of template '${template.id}' is mandatory`,
      );
    }
  }
  return Object.fromEntries(parameters);
};

const refuseParameter = (code: string, name: string, message: string): Rejection =>
  invalid(code, `spec.template_parameters.${name}`, message);
