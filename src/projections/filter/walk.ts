import type { FieldPath, FilterNode, FilterValue } from './ast.ts';

/** Every field that a filter asks about, in the order of its text. */
export const fieldsOf = (node: FilterNode): readonly FieldPath[] => {
  switch (node.op) {
    case 'and':
    case 'or':
      return [...fieldsOf(node.left), ...fieldsOf(node.right)];
    case 'not':
      return fieldsOf(node.of);
    case 'constant':
      return [];
    case 'has':
      return [node.field];
    case 'in-field':
      return [...fieldsOfValue(node.value), node.field];
    case 'in':
      return fieldsOfValue(node.value);
    case 'truth':
    case 'contains':
    case 'startsWith':
    case 'endsWith':
      return fieldsOfValue(node.of);
    default:
      return [...fieldsOfValue(node.left), ...fieldsOfValue(node.right)];
  }
};

const fieldsOfValue = (value: FilterValue): readonly FieldPath[] => {
  if (value.kind === 'field') return [value.field];
  return value.kind === 'arithmetic' ? [...fieldsOfValue(value.left), ...fieldsOfValue(value.right)] : [];
};

/** Whether a filter asks about a field or something inside it. */
export const mentions = (node: FilterNode, path: string): boolean =>
  fieldsOf(node).some((field) => {
    const here = field.path.join('.');
    return here === path || here.startsWith(`${path}.`);
  });
