import { valueAt } from '../../../../src/domain/json-tools.ts';
import { badRequest } from '../errors.ts';
import type { JsonObject, Kind, KubeObject } from '../types.ts';

export type Selector = (object: KubeObject) => boolean;

/** `a=b,c!=d,e in (f,g),h notin (i),j,!k`; undefined or empty: everything. Throws 400 on anything else. */
export const labelSelector = (text: string | undefined): Selector => {
  const terms = splitTerms(text ?? '').map(labelTerm);
  return (object) => terms.every((term) => term(object.metadata.labels ?? {}));
};

type Labels = { readonly [key: string]: string };

const labelTerm = (term: string): ((labels: Labels) => boolean) => {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const values = new Set(list.split(',').map((one) => one.trim()));
    return operator === 'in'
      ? (labels) => Object.hasOwn(labels, key) && values.has(labels[key] ?? '')
      : (labels) => !Object.hasOwn(labels, key) || !values.has(labels[key] ?? '');
  }
  const unequal = /^([^=!\s]+)\s*!=\s*(\S*)$/.exec(term);
  if (unequal !== null) {
    const [, key = '', value = ''] = unequal;
    return (labels) => !Object.hasOwn(labels, key) || labels[key] !== value;
  }
  const equal = /^([^=!\s]+)\s*==?\s*([^=\s]*)$/.exec(term);
  if (equal !== null) {
    const [, key = '', value = ''] = equal;
    return (labels) => Object.hasOwn(labels, key) && labels[key] === value;
  }
  const absent = /^!\s*(\S+)$/.exec(term);
  if (absent !== null) return (labels) => !Object.hasOwn(labels, absent[1] ?? '');
  if (/^[^\s=!()]+$/.test(term)) return (labels) => Object.hasOwn(labels, term);
  throw badRequest(`unable to parse requirement: found '${term}'`);
};

/** At commas outside parentheses. */
const splitTerms = (text: string): string[] => {
  const terms: string[] = [];
  let depth = 0;
  let term = '';
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === ',' && depth === 0) {
      terms.push(term.trim());
      term = '';
    } else term += character;
  }
  return [...terms, term.trim()].filter((one) => one !== '');
};

/** Custom resources know `metadata.name` and `metadata.namespace`; secrets also their type, namespaces their phase. */
export const fieldSelector = (kind: Kind, text: string | undefined): Selector => {
  const terms = splitTerms(text ?? '').map((term) => {
    const [, field = '', operator = '', value = ''] = /^([^=!]+)(!=|==?)(.*)$/.exec(term) ?? [];
    if (operator === '') throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
    if (!isSelectable(kind, field)) {
      throw badRequest(`field label not supported: ${field}`);
    }
    return { field, equal: operator !== '!=', value };
  });
  return (object) =>
    terms.every(
      ({ field, equal, value }) =>
        ((valueAt(object as unknown as JsonObject, field) ?? '') === value) === equal,
    );
};

const isSelectable = ({ group, plural }: Kind, field: string): boolean =>
  field === 'metadata.name' ||
  field === 'metadata.namespace' ||
  (group === '' && plural === 'secrets' && field === 'type') ||
  (group === '' && plural === 'namespaces' && field === 'status.phase');
