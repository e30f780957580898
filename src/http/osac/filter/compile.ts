import type { FilterNode, Literal } from '../../../projections/filter/ast.ts';
import type { FilterTarget } from './fields.ts';
import {
  describe,
  fieldOperand,
  NAMES,
  operandOf,
  typeOfItems,
  type Compilation,
  type Operand,
} from './operands.ts';
import { parseFilter, problemOf, quoted, type Expr } from './parse.ts';

/** Most terms (fields, literals, operators) of a filter: bounds the statement that it becomes. */
export const MAX_FILTER_TERMS = 500;

/**
 * A filter text as a checked tree (OSAC): the documented part of CEL, every name resolved against the
 * target's message, every comparison between fitting types. Anything else throws ApiError 400 with line and column.
 */
export const compileFilter = (text: string, target: FilterTarget): FilterNode => {
  const { expr, source } = parseFilter(text);
  let terms = 0;
  const count = (at: Expr): void => {
    terms += 1;
    if (terms > MAX_FILTER_TERMS)
      throw problemOf(source, at, `a filter may have ${MAX_FILTER_TERMS} terms; ask in several requests`);
  };
  return condition(expr, { source, target, count });
};

/** An expression that must be true or false. */
const condition = (expr: Expr, compilation: Compilation): FilterNode => {
  compilation.count(expr);
  const { exprKind } = expr;
  switch (exprKind.case) {
    case 'callExpr':
      return call(expr, exprKind.value, compilation);
    case 'selectExpr':
      if (exprKind.value.testOnly) return has(expr, compilation);
      return truth(expr, compilation);
    case 'constExpr': {
      const { constantKind } = exprKind.value;
      if (constantKind.case === 'boolValue') return { op: 'constant', value: constantKind.value };
      return truth(expr, compilation);
    }
    case 'identExpr':
      return truth(expr, compilation);
    default:
      throw problemOf(compilation.source, expr, `${describe(expr)} is not supported`);
  }
};

type Call = Extract<Expr['exprKind'], { case: 'callExpr' }>['value'];

const call = (expr: Expr, of: Call, compilation: Compilation): FilterNode => {
  const [first, second] = of.args;
  if (of.target !== undefined) return textTest(expr, of, compilation);
  switch (of.function) {
    case '_&&_':
    case '_||_': {
      const op = of.function === '_&&_' ? 'and' : 'or';
      const [head, ...rest] = of.args.map((argument) => condition(argument, compilation));
      if (head === undefined) break;
      return rest.reduce((left, right) => ({ op, left, right }), head);
    }
    case '!_':
      if (first === undefined) break;
      return { op: 'not', of: condition(first, compilation) };
    case '@in':
      if (first === undefined || second === undefined) break;
      return membership(first, second, compilation);
    case '_[_]':
      return truth(expr, compilation);
    case 'has':
      throw problemOf(compilation.source, first ?? expr, "'has' takes a field, for example has(this.spec)");
    default: {
      const op = COMPARISONS.get(of.function);
      if (op !== undefined && first !== undefined && second !== undefined)
        return comparison(expr, op, first, second, compilation);
      if (ARITHMETIC.has(of.function)) return truth(expr, compilation);
    }
  }
  throw problemOf(compilation.source, expr, `${describe(expr)} is not supported`);
};

type ComparisonOp = '==' | '!=' | '<' | '<=' | '>' | '>=';
const COMPARISONS: ReadonlyMap<string, ComparisonOp> = new Map([
  ['_==_', '=='],
  ['_!=_', '!='],
  ['_<_', '<'],
  ['_<=_', '<='],
  ['_>_', '>'],
  ['_>=_', '>='],
]);
const ARITHMETIC: ReadonlySet<string> = new Set(['_+_', '_-_', '_*_', '_/_', '_%_']);

/** A value standing alone must be a bool. */
const truth = (expr: Expr, compilation: Compilation): FilterNode => {
  const operand = operandOf(expr, compilation);
  if (operand.type === 'bool') return { op: 'truth', of: operand.value };
  throw problemOf(
    compilation.source,
    expr,
    `a condition must be true or false, and this is ${NAMES[operand.type]}`,
  );
};

const comparison = (
  expr: Expr,
  op: ComparisonOp,
  first: Expr,
  second: Expr,
  compilation: Compilation,
): FilterNode => {
  const [left, right] = bothSides(first, second, compilation);
  const isEquality = op === '==' || op === '!=';
  if (left.type === 'null' || right.type === 'null') {
    if (!isEquality) throw problemOf(compilation.source, expr, "null is only compared by '==' and '!='");
    return { op, left: left.value, right: right.value };
  }
  checkComparable(left, compilation);
  checkComparable(right, compilation);
  if (!fits(left, right))
    throw problemOf(
      compilation.source,
      expr,
      `${NAMES[left.type]} cannot be compared with ${NAMES[right.type]}${hint(left, right)}`,
    );
  checkEnumNumber(left, right, compilation);
  checkEnumNumber(right, left, compilation);
  return { op, left: left.value, right: right.value };
};

/** A bare name is a value of the enum on the other side, so that side is looked at first. */
const bothSides = (first: Expr, second: Expr, compilation: Compilation): [Operand, Operand] => {
  if (isBareName(first, compilation) && !isBareName(second, compilation)) {
    const right = operandOf(second, compilation);
    return [operandOf(first, compilation, right.enum), right];
  }
  const left = operandOf(first, compilation);
  return [left, operandOf(second, compilation, left.enum)];
};
const isBareName = ({ exprKind }: Expr, { target }: Compilation): boolean =>
  exprKind.case === 'identExpr' && exprKind.value.name !== target.root && exprKind.value.name !== 'now';

const checkComparable = ({ type, expr }: Operand, { source }: Compilation): void => {
  if (type === 'message')
    throw problemOf(source, expr, 'a message is only compared with null; name one of its fields');
  if (type === 'list' || type === 'map')
    throw problemOf(source, expr, `${NAMES[type]} is only compared with null; use 'in'`);
};

const isNumeric = ({ type }: Operand): boolean => type === 'int' || type === 'double';

const fits = (left: Operand, right: Operand): boolean => {
  if (left.type === 'enum' && right.type === 'enum') return left.enum?.typeName === right.enum?.typeName;
  if (left.type === 'enum') return isIntLiteral(right);
  if (right.type === 'enum') return isIntLiteral(left);
  return left.type === right.type || (isNumeric(left) && isNumeric(right));
};

const isIntLiteral = ({ type, value }: Operand): boolean => type === 'int' && value.kind === 'literal';

const hint = (left: Operand, right: Operand): string => {
  const types = [left.type, right.type];
  if (types.includes('enum') && types.includes('string')) return '; write the name without quotes';
  return types.includes('timestamp') ? "; times are compared with 'now' and each other" : '';
};

const checkEnumNumber = (side: Operand, literal: Operand, { source }: Compilation): void => {
  if (side.enum === undefined || literal.type !== 'int' || literal.value.kind !== 'literal') return;
  const { value } = literal.value;
  if (side.enum.values.some(({ number }) => number === value)) return;
  throw problemOf(source, literal.expr, `${String(value)} is not a value of ${side.enum.typeName}`);
};

const membership = (first: Expr, second: Expr, compilation: Compilation): FilterNode => {
  const { source } = compilation;
  if (second.exprKind.case === 'listExpr')
    return inLiterals(first, second.exprKind.value.elements, compilation);
  const container = operandOf(second, compilation);
  if (container.field === undefined || (container.type !== 'list' && container.type !== 'map'))
    throw problemOf(source, second, `'in' takes a list or a map, and this is ${NAMES[container.type]}`);
  const value = operandOf(first, compilation, container.enum);
  const items: Operand =
    container.type === 'map'
      ? { ...container, type: 'string' }
      : { ...container, type: typeOfItems(container.field) };
  checkComparable(items, compilation);
  if (value.type === 'null' || !fits(value, items))
    throw problemOf(
      source,
      first,
      `${NAMES[value.type]} is not what ${container.type === 'map' ? 'keys are' : 'the list holds'}`,
    );
  checkEnumNumber(items, value, compilation);
  return { op: 'in-field', value: value.value, field: container.field };
};

const inLiterals = (first: Expr, elements: readonly Expr[], compilation: Compilation): FilterNode => {
  const { source } = compilation;
  const value = operandOf(first, compilation);
  checkComparable(value, compilation);
  const list = elements.map((element): Literal => {
    const item = operandOf(element, compilation, value.enum);
    if (item.value.kind !== 'literal') throw problemOf(source, element, 'the list may hold literals only');
    if (item.value.value === null) throw problemOf(source, element, 'null is only compared by == and !=');
    if (!fits(value, item))
      throw problemOf(source, element, `${NAMES[item.type]} is in the list of ${NAMES[value.type]}`);
    checkEnumNumber(value, item, compilation);
    return item.value.value;
  });
  return { op: 'in', value: value.value, list };
};

const TEXT_TESTS = ['contains', 'startsWith', 'endsWith'] as const;

const textTest = (expr: Expr, of: Call, compilation: Compilation): FilterNode => {
  const { source } = compilation;
  const op = TEXT_TESTS.find((name) => name === of.function);
  if (op === undefined || of.target === undefined)
    throw problemOf(source, expr, `the function ${quoted(of.function)} is not supported`);
  const on = operandOf(of.target, compilation);
  if (on.field === undefined || on.type !== 'string')
    throw problemOf(source, expr, `'${op}' is called on a field that is a string`);
  const [argument] = of.args;
  const constant = argument?.exprKind.case === 'constExpr' ? argument.exprKind.value.constantKind : undefined;
  if (of.args.length !== 1 || constant?.case !== 'stringValue')
    throw problemOf(source, argument ?? expr, `'${op}' takes one string literal`);
  return { op, of: on.value, text: source.literal(constant.value) };
};

/** What every object has, whether or not its document shows it (OSAC). */
const ALWAYS_THERE = [
  'id',
  'metadata',
  'metadata.name',
  'metadata.project',
  'metadata.creation_timestamp',
  'metadata.labels',
];

const has = (expr: Expr, compilation: Compilation): FilterNode => {
  const { field } = fieldOperand(expr, compilation);
  return compilation.target.root === 'this' && ALWAYS_THERE.includes(field.path.join('.'))
    ? { op: 'constant', value: true }
    : { op: 'has', field };
};
