import type { FieldPath, FieldType, FilterNode, FilterValue, OrderTerm } from './ast.ts';
import { DOT_FOR_ORDER, isDotted, isMapValue, isNull, nowText, type Comparison } from './evaluate.ts';

/** A piece of SQL and the values of its question marks, in their order. Values never become text of the statement. */
export type Sql = { readonly sql: string; readonly values: readonly SqlValue[] };
export type SqlValue = string | number | bigint | null | Uint8Array;

/** Alias of the table `resources` in what is made here. */
export const ROW = 'r';
const DOCUMENT = `${ROW}.private_json`;

/** Kept beside the document, so that nothing has to be parsed. The public document differs in no field it shows. */
const COLUMNS: ReadonlyMap<string, string> = new Map([
  ['id', 'id'],
  ['metadata.name', 'name'],
  ['metadata.project', 'project'],
  ['metadata.tenant', 'tenant'],
]);

/** A function that every connection for such SQL must have: the argument when it is a whole number, else null. */
export const WHOLE_FUNCTION = 'whole';

/** A checked filter as a condition on `resources AS r`; matches what `evaluate` matches. Pure. */
export const conditionOf = (node: FilterNode, nowMs: number): Sql => {
  switch (node.op) {
    case 'constant':
      return { sql: node.value ? '1' : '0', values: [] };
    case 'and':
    case 'or': {
      const word = node.op === 'and' ? 'AND' : 'OR';
      return join`(${conditionOf(node.left, nowMs)} ${raw(word)} ${conditionOf(node.right, nowMs)})`;
    }
    case 'not':
      return join`(NOT ${conditionOf(node.of, nowMs)})`;
    case 'truth':
      return valueOf(node.of, nowMs);
    case 'has':
      return join`(coalesce(${typeAt(node.field)}, 'null') <> 'null')`;
    case 'in':
      return isListed(node, nowMs);
    case 'in-field':
      return isHeld(node.value, node.field, nowMs);
    case 'contains':
    case 'startsWith':
    case 'endsWith':
      return textTest(node.op, valueOf(node.of, nowMs), node.text);
    default:
      return comparison(node, nowMs);
  }
};

/** What a row is ordered by, first to last; what the document leaves out comes first. */
export const sortKeyOf = ({ field }: OrderTerm): Sql => fieldValue(field);

const OPERATORS: Readonly<Record<Comparison['op'], string>> = {
  '==': '=',
  '!=': '<>',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
};

const comparison = ({ op, left, right }: Comparison, nowMs: number): Sql => {
  if (isNull(left) || isNull(right)) {
    const other = isNull(left) ? right : left;
    return join`(${valueOf(other, nowMs)} ${raw(op === '==' ? 'IS NULL' : 'IS NOT NULL')})`;
  }
  const dotted = isDotted(left) || isDotted(right);
  const side = (value: FilterValue): Sql => {
    const read = valueOf(value, nowMs);
    return dotted && op !== '==' && op !== '!=' ? join`replace(${read}, '.', ${bound(DOT_FOR_ORDER)})` : read;
  };
  const compared = join`(${side(left)} ${raw(OPERATORS[op])} ${side(right)})`;
  if (!isMapValue(left) && !isMapValue(right)) return compared;
  if (op === '==') return join`coalesce(${compared}, 0)`;
  return op === '!=' ? join`coalesce(${compared}, 1)` : compared;
};

const isListed = ({ value, list }: Extract<FilterNode, { op: 'in' }>, nowMs: number): Sql => {
  if (list.length === 0) return { sql: '0', values: [] };
  const found = join`(${valueOf(value, nowMs)} IN (${raw(list.map(() => '?').join(', '), list.map(literal))}))`;
  return isMapValue(value) ? join`coalesce(${found}, 0)` : found;
};

const isHeld = (value: FilterValue, field: FieldPath, nowMs: number): Sql => {
  const wanted = valueOf(value, nowMs);
  const item = field.type === 'map' ? raw('e.key') : typed(raw('e.value'), field.items ?? 'message', field);
  const held = join`EXISTS (SELECT 1 FROM ${eachAt(field.path)} AS e WHERE ${item} = ${wanted})`;
  return join`(CASE WHEN ${wanted} IS NULL THEN NULL ELSE ${held} END)`;
};

/** Bytes are compared, since SQLite's text functions stop at a character 0. */
const textTest = (op: 'contains' | 'startsWith' | 'endsWith', of: Sql, text: string): Sql => {
  if (text === '') return join`(${of} = ${of})`;
  if (op === 'contains') return join`(instr(${of}, ${bound(text)}) > 0)`;
  if (op === 'startsWith') return join`(instr(${of}, ${bound(text)}) = 1)`;
  const bytes = Buffer.from(text, 'utf8');
  const end = join`substr(CAST(${of} AS BLOB), ${bound(BigInt(-bytes.length))})`;
  // Of no bytes at all substr gives null, as if there were no text.
  return join`(CASE WHEN ${of} = '' THEN 0 ELSE ${end} = ${bound(new Uint8Array(bytes))} END)`;
};

const valueOf = (value: FilterValue, nowMs: number): Sql => {
  switch (value.kind) {
    case 'literal':
      return value.value === null ? raw('NULL') : bound(literal(value.value));
    case 'now':
      return bound(nowText(nowMs));
    case 'field':
      return fieldValue(value.field);
    case 'arithmetic': {
      const { left, op, right } = value;
      return join`${raw(WHOLE_FUNCTION)}(${valueOf(left, nowMs)} ${raw(op)} ${valueOf(right, nowMs)})`;
    }
  }
};

/** Numbers as bigint, since `node:sqlite` binds any other as one with a fraction. */
const literal = (value: string | number | bigint | boolean): SqlValue =>
  typeof value === 'string' ? value : BigInt(value);

const fieldValue = (field: FieldPath): Sql => {
  const column = COLUMNS.get(field.path.join('.'));
  if (column !== undefined) return raw(`${ROW}.${column}`);
  const read =
    field.type === 'message' || field.type === 'list' || field.type === 'map'
      ? typeAt(field)
      : typed(scalarAt(field.path), field.type, field);
  return field.absent === undefined ? read : join`coalesce(${read}, ${bound(literal(field.absent))})`;
};

/** A JSON value as the filter compares it: see `evaluate`. */
const typed = (value: Sql, type: FieldType, { enumNumbers }: FieldPath): Sql => {
  switch (type) {
    case 'int64':
      return join`CAST(${value} AS INTEGER)`;
    case 'timestamp':
      return join`rtrim(replace(${value}, '.000Z', 'Z'), 'Z')`;
    case 'enum': {
      const cases = Object.entries(enumNumbers ?? {});
      const whens = raw(
        cases.map(() => 'WHEN ? THEN ?').join(' '),
        cases.flatMap(([name, number]) => [name, number]),
      );
      const otherwise = join`CASE typeof(${value}) WHEN 'integer' THEN ${value} END`;
      return cases.length === 0 ? otherwise : join`(CASE ${value} ${whens} ELSE ${otherwise} END)`;
    }
    default:
      return value;
  }
};

/** Keys that need no escape in a JSON path; others are looked up among the keys of their map. */
const PLAIN_KEY = /^[A-Za-z0-9_./-]+$/;
const pathText = (keys: readonly string[]): string => `$${keys.map((key) => `."${key}"`).join('')}`;

/** The object that holds the last steps of a path which plain keys lead to, and those steps as a JSON path. */
const holderOf = (path: readonly string[]): { readonly json: Sql; readonly rest: string } => {
  let json: Sql = raw(DOCUMENT);
  let start = 0;
  for (const [at, key] of path.entries()) {
    if (PLAIN_KEY.test(key)) continue;
    const map = bound(pathText(path.slice(start, at)));
    json = join`(SELECT k.value FROM json_each(${json}, ${map}) AS k WHERE k.key = ${bound(key)})`;
    start = at + 1;
  }
  return { json, rest: pathText(path.slice(start)) };
};

/** A scalar; one that was found among the keys of a map has been read already. */
const scalarAt = (path: readonly string[]): Sql => {
  const { json, rest } = holderOf(path);
  return rest === '$' ? json : join`json_extract(${json}, ${bound(rest)})`;
};

/** Null when nothing is there. */
const typeAt = ({ path }: FieldPath): Sql => {
  const last = path.at(-1) ?? '';
  if (PLAIN_KEY.test(last)) {
    const { json, rest } = holderOf(path);
    return join`json_type(${json}, ${bound(rest)})`;
  }
  return join`(SELECT k.type FROM ${eachAt(path.slice(0, -1))} AS k WHERE k.key = ${bound(last)})`;
};

const eachAt = (path: readonly string[]): Sql => {
  const { json, rest } = holderOf(path);
  return join`json_each(${json}, ${bound(rest)})`;
};

export const raw = (sql: string, values: readonly SqlValue[] = []): Sql => ({ sql, values });
export const bound = (value: SqlValue): Sql => ({ sql: '?', values: [value] });

/** Puts pieces together, their values in order. */
export const join = (texts: TemplateStringsArray, ...pieces: readonly Sql[]): Sql => ({
  sql: texts.map((text, i) => text + (pieces[i]?.sql ?? '')).join(''),
  values: pieces.flatMap(({ values }) => values),
});
