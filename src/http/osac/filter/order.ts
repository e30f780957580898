import type { OrderTerm } from '../../../projections/filter/ast.ts';
import { isProblem, resolveField, type FilterTarget, type Step } from './fields.ts';
import { problemAt, quoted, type Source } from './parse.ts';

export const MAX_ORDER_LENGTH = 1024;
export const MAX_ORDER_TERMS = 8;

const SPACE = /\s*/y;
const FIELD = /([A-Za-z_]\w*)|\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]/y;
const DOT = /\./y;
const DIRECTION = /\s+(asc|desc)(?!\w)/iy;
const COMMA = /,/y;

/**
 * An order text (OSAC): field paths with an optional `asc` or `desc`, divided by commas; keys of maps may
 * stand in brackets. Checked against the message. Throws ApiError 400 with line and column.
 */
export const compileOrder = (text: string, target: FilterTarget): readonly OrderTerm[] => {
  const source: Source = { parameter: 'order', text };
  if (text.length > MAX_ORDER_LENGTH)
    throw problemAt(source, MAX_ORDER_LENGTH, `an order may have ${MAX_ORDER_LENGTH} characters`);
  const terms: OrderTerm[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const readSteps = (): Step[] => {
    const steps: Step[] = [];
    for (;;) {
      const start = at;
      const found = take(FIELD);
      const bracket = found !== null && found[1] === undefined;
      // A name follows a dot or begins the path, a key in brackets follows a name.
      if (found === null || bracket !== (steps.length > 0 && text[start] === '['))
        throw problemAt(source, start, 'a field is expected, for example metadata.name');
      steps.push({ name: found[1] ?? found[2] ?? found[3] ?? '', at: start, bracket });
      if (take(DOT) === null && text[at] !== '[') return steps;
    }
  };
  for (;;) {
    take(SPACE);
    const start = at;
    const steps = readSteps();
    const direction = take(DIRECTION)?.[1]?.toLowerCase();
    terms.push({ field: orderable(source, target, steps, start), descending: direction === 'desc' });
    if (terms.length > MAX_ORDER_TERMS)
      throw problemAt(source, start, `an order may have ${MAX_ORDER_TERMS} fields`);
    take(SPACE);
    if (at === text.length) return terms;
    if (take(COMMA) === null) throw problemAt(source, at, "'asc', 'desc' or a comma is expected");
  }
};

const orderable = (
  source: Source,
  target: FilterTarget,
  steps: readonly Step[],
  at: number,
): OrderTerm['field'] => {
  const [first, ...rest] = steps;
  const path = first?.name === target.root && rest.length > 0 ? rest : steps;
  const resolved = resolveField(target, path);
  if (isProblem(resolved)) throw problemAt(source, resolved.at, resolved.problem);
  const { field } = resolved;
  if (field.type === 'message' || field.type === 'list' || field.type === 'map')
    throw problemAt(source, at, `${quoted(field.path.join('.'))} has no order; name a field with one value`);
  return field;
};
