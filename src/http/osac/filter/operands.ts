import type { DescEnum } from '@bufbuild/protobuf';
import { own } from '../../../domain/json-tools.ts';
import type { FieldPath, FieldType, FilterValue, Literal } from '../../../projections/filter/ast.ts';
import { isProblem, resolveField, type FilterTarget, type Step } from './fields.ts';
import { problemAt, problemOf, quoted, type Expr, type ParsedSource } from './parse.ts';

/** What compiling needs to know wherever it is; `count` refuses filters of too many terms. */
export type Compilation = {
  readonly source: ParsedSource;
  readonly target: FilterTarget;
  readonly count: (expr: Expr) => void;
};

export type OperandType =
  | 'string'
  | 'int'
  | 'double'
  | 'bool'
  | 'null'
  | 'timestamp'
  | 'enum'
  | 'message'
  | 'list'
  | 'map';

/** One side of a comparison, or what a function is called on. */
export type Operand = {
  readonly value: FilterValue;
  readonly type: OperandType;
  readonly expr: Expr;
  readonly field?: FieldPath;
  readonly enum?: DescEnum;
};

const TYPES: Readonly<Record<FieldType, OperandType>> = {
  string: 'string',
  bool: 'bool',
  int32: 'int',
  int64: 'int',
  double: 'double',
  enum: 'enum',
  timestamp: 'timestamp',
  message: 'message',
  list: 'list',
  map: 'map',
};

export const typeOfItems = (field: FieldPath): OperandType => TYPES[field.items ?? 'message'];

/** A value; a bare name is one of the enum that the other side has. Throws ApiError 400. */
export const operandOf = (expr: Expr, compilation: Compilation, beside?: DescEnum): Operand => {
  compilation.count(expr);
  const kind = expr.exprKind;
  switch (kind.case) {
    case 'constExpr':
      return literalOperand(expr, compilation);
    case 'identExpr':
      if (kind.value.name === 'now') return { value: { kind: 'now' }, type: 'timestamp', expr };
      if (kind.value.name === compilation.target.root) return rootOperand(expr, compilation);
      return enumConstant(expr, kind.value.name, compilation, beside);
    case 'selectExpr':
      if (!kind.value.testOnly) return fieldOperand(expr, compilation);
      break;
    case 'callExpr':
      if (kind.value.function === '_[_]') return fieldOperand(expr, compilation);
      if (Object.hasOwn(ARITHMETIC, kind.value.function)) return arithmeticOperand(expr, compilation);
      break;
    default:
  }
  throw problemOf(
    compilation.source,
    expr,
    `${describe(expr)} ${isResult(expr) ? 'cannot be compared' : 'is not supported'}`,
  );
};

const ARITHMETIC = { '_+_': '+', '_-_': '-', '_*_': '*', '_/_': '/', '_%_': '%' } as const;

const arithmeticOperand = (expr: Expr, compilation: Compilation): Operand => {
  const call = expr.exprKind.value as Extract<Expr['exprKind'], { case: 'callExpr' }>['value'];
  const [left, right] = call.args.map((argument) => {
    const operand = operandOf(argument, compilation);
    if (operand.type !== 'int')
      throw problemOf(
        compilation.source,
        argument,
        `arithmetic is on whole numbers, and this is ${NAMES[operand.type]}`,
      );
    return operand.value;
  });
  if (left === undefined || right === undefined)
    throw problemOf(compilation.source, expr, 'a number is missing');
  const op = ARITHMETIC[call.function as keyof typeof ARITHMETIC];
  return { value: { kind: 'arithmetic', op, left, right }, type: 'int', expr };
};

/** The whole object: there is nothing that it could be compared with. */
const rootOperand = (expr: Expr, { source, target }: Compilation): Operand => {
  throw problemOf(source, expr, `name a field, for example ${target.root}.id`);
};

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;

const literalOperand = (expr: Expr, { source }: Compilation): Operand => {
  const kind = expr.exprKind.case === 'constExpr' ? expr.exprKind.value.constantKind : undefined;
  const literal = (value: Literal | null, type: OperandType): Operand => ({
    value: { kind: 'literal', value },
    type,
    expr,
  });
  switch (kind?.case) {
    case 'stringValue':
      return literal(source.literal(kind.value), 'string');
    case 'boolValue':
      return literal(kind.value, 'bool');
    case 'nullValue':
      return literal(null, 'null');
    case 'int64Value':
      if (kind.value < MIN_INT64 || kind.value > MAX_INT64)
        throw problemOf(source, expr, 'the number does not fit into 64 bits');
      return literal(plainNumber(kind.value), 'int');
    case 'doubleValue':
      throw problemOf(source, expr, 'numbers with a fraction or an exponent are not supported');
    case 'uint64Value':
      throw problemOf(source, expr, "unsigned numbers are not supported; leave out the 'u'");
    case 'bytesValue':
      throw problemOf(source, expr, 'bytes are not supported');
    default:
      throw problemOf(source, expr, 'this literal is not supported');
  }
};
const plainNumber = (value: bigint): number | bigint =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : value;

const enumConstant = (
  expr: Expr,
  name: string,
  { source, target }: Compilation,
  beside: DescEnum | undefined,
): Operand => {
  const found = beside?.values.find((value) => value.name === name);
  if (found !== undefined)
    return {
      value: { kind: 'literal', value: found.number },
      type: 'enum',
      expr,
      ...(beside === undefined ? {} : { enum: beside }),
    };
  throw problemOf(
    source,
    expr,
    beside === undefined
      ? `unknown name ${quoted(name)}; fields begin with '${target.root}.'`
      : `${quoted(name)} is not a value of ${beside.typeName}`,
  );
};

/** `this.a.b['k']` as a field. Throws ApiError 400 for unknown ones. */
export const fieldOperand = (
  expr: Expr,
  compilation: Compilation,
): Operand & { readonly field: FieldPath } => {
  const { source, target } = compilation;
  const resolved = resolveField(target, stepsOf(expr, compilation));
  if (isProblem(resolved)) throw problemAt(source, resolved.at, resolved.problem);
  const { field } = resolved;
  return {
    value: { kind: 'field', field },
    type: TYPES[field.type],
    expr,
    field,
    ...(resolved.enum === undefined ? {} : { enum: resolved.enum }),
  };
};

/** From the root outwards; a loop, since a path may be as long as the text. */
const stepsOf = (expr: Expr, { source, target, count }: Compilation): Step[] => {
  const steps: Step[] = [];
  let node: Expr | undefined = expr;
  while (node !== undefined) {
    const at = source.offsetOf(node);
    const { exprKind }: Expr = node;
    if (exprKind.case === 'selectExpr') {
      steps.push({ name: exprKind.value.field, at, bracket: false });
      node = exprKind.value.operand;
    } else if (exprKind.case === 'callExpr' && exprKind.value.function === '_[_]') {
      const [of, key]: Expr[] = exprKind.value.args;
      const constant = key?.exprKind.case === 'constExpr' ? key.exprKind.value.constantKind : undefined;
      if (constant?.case !== 'stringValue')
        throw problemOf(
          source,
          key ?? node,
          'the key in brackets must be a string literal; list items cannot be picked',
        );
      steps.push({ name: source.literal(constant.value), at, bracket: true });
      node = of;
    } else {
      if (exprKind.case === 'identExpr' && exprKind.value.name === target.root) break;
      const what =
        exprKind.case === 'identExpr' ? `unknown name ${quoted(exprKind.value.name)}` : describe(node);
      throw problemAt(source, at, `${what}; fields begin with '${target.root}.'`);
    }
    count(node ?? expr);
  }
  return steps.reverse();
};

/** What kind of thing a type is, for error texts. */
export const NAMES: Readonly<Record<OperandType, string>> = {
  string: 'a string',
  int: 'a whole number',
  double: 'a number',
  bool: 'true or false',
  null: 'null',
  timestamp: 'a time',
  enum: 'an enum value',
  message: 'a message',
  list: 'a list',
  map: 'a map',
};

const FUNCTIONS: Readonly<Record<string, string>> = {
  '_?_:_': "the conditional operator '?:'",
  '-_': 'a minus sign before anything but a number',
  '_&&_': "the result of '&&'",
  '_||_': "the result of '||'",
  '!_': "the result of '!'",
  '@in': "the result of 'in'",
  '_==_': "the result of '=='",
  '_!=_': "the result of '!='",
  '_<_': "the result of '<'",
  '_<=_': "the result of '<='",
  '_>_': "the result of '>'",
  '_>=_': "the result of '>='",
};

/** True for what is supported as a condition, but not as a side of a comparison. */
const isResult = (expr: Expr): boolean => describe(expr).startsWith(RESULT);
const RESULT = 'the result of ';

/** An expression in words, for error texts that say it is not supported. */
export const describe = (expr: Expr): string => {
  const { exprKind } = expr;
  switch (exprKind.case) {
    case 'callExpr':
      return own(FUNCTIONS, exprKind.value.function) ?? `the function ${quoted(exprKind.value.function)}`;
    case 'comprehensionExpr':
      return "a macro over a list or map ('all', 'exists', 'exists_one', 'map', 'filter')";
    case 'structExpr':
      return 'a map or message literal';
    case 'listExpr':
      return "a list literal outside of 'in'";
    case 'selectExpr':
      return exprKind.value.testOnly ? "the result of 'has'" : 'a field';
    default:
      return 'this';
  }
};
