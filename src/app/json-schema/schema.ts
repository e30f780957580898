import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject, own } from '../../domain/json-tools.ts';
import { KEYWORDS } from './keywords.ts';
import { BadPattern, createPattern } from './patterns.ts';
import { BadSchema, type Reader, type Schema } from './types.ts';

/**
 * JSON Schema of governed fields (OSAC): tenants' administrators write them, and every order is checked
 * against them on the thread that answers requests. So a schema is bounded when it is read, an evaluation is bounded in
 * steps, and patterns run in linear time. A schema compiler was tried: generating code for a hundred
 * nodes holds the thread for longer than the rule allows; reading this form does not.
 *
 * The vocabulary is that of draft 2020-12 without dynamic scopes and `unevaluated…`; `format` is an annotation.
 */
const LIMITS = {
  /** Characters of the text. */
  text: 8_192,
  /** Schemas inside it, those of `$ref` counted at every use. */
  nodes: 256,
  /** Levels of schemas in schemas, and of values in `enum` and `const`. */
  depth: 16,
  /** Sum of the sizes of all patterns, as the pattern engine measures them. */
  patterns: 2_000,
};

export type ReadSchema =
  /** `patternSize`: sum of the sizes of its patterns, what reading it again would cost. */
  | { readonly ok: true; readonly schema: Schema; readonly patternSize: number }
  /** One clause about the schema: `keyword 'foo' is not supported`. */
  | { readonly ok: false; readonly problem: string };

const ANNOTATIONS = [
  '$schema',
  '$comment',
  '$defs',
  'definitions',
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'format',
  'contentEncoding',
  'contentMediaType',
];

/** Everything false: what `false` as a schema says. */
const NOTHING: Schema = [(_value, at) => ({ at, problem: 'must not be there' })];

export const readSchema = (text: string): ReadSchema => {
  if (text.length > LIMITS.text) return { ok: false, problem: `it has more than ${LIMITS.text} characters` };
  try {
    return { ok: true, ...readAll(parse(text)) };
  } catch (error) {
    if (error instanceof BadSchema || error instanceof BadPattern)
      return { ok: false, problem: error.message };
    throw error;
  }
};

const parse = (text: string): JsonValue => {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new BadSchema('it is not JSON');
  }
};

const readAll = (root: JsonValue): { readonly schema: Schema; readonly patternSize: number } => {
  let nodes = 0;
  let patternSize = 0;
  let level = 0;
  const open: string[] = [];

  const reader: Reader = {
    schema: (value) => read(value),
    pattern: (text) => {
      const pattern = createPattern(text, LIMITS.patterns - patternSize);
      patternSize += pattern.size;
      return pattern;
    },
    shallow: (value) => {
      if (deeperThan(value, LIMITS.depth))
        throw new BadSchema(`a value in it has more than ${LIMITS.depth} levels`);
      return value;
    },
  };

  const read = (value: JsonValue | undefined): Schema => {
    nodes += 1;
    if (nodes > LIMITS.nodes) throw new BadSchema(`it holds more than ${LIMITS.nodes} schemas`);
    if (value === true) return [];
    if (value === false) return NOTHING;
    if (!isObject(value)) throw new BadSchema('a schema must be an object, true or false');
    if (level >= LIMITS.depth) throw new BadSchema(`it has more than ${LIMITS.depth} levels`);
    level += 1;
    const rules = Object.entries(value).flatMap(([keyword, operand]) => rulesOf(keyword, operand, value));
    level -= 1;
    return rules;
  };

  const rulesOf = (keyword: string, operand: JsonValue, node: JsonObject): Schema => {
    if (keyword === '$ref') return readReference(operand);
    if (ANNOTATIONS.includes(keyword) || keyword.startsWith('x-')) return [];
    const build = KEYWORDS.get(keyword);
    if (build === undefined) throw new BadSchema(`keyword '${keyword.slice(0, 64)}' is not supported`);
    const rule = build(operand, node, reader);
    return rule === undefined ? [] : [rule];
  };

  const readReference = (pointer: JsonValue): Schema => {
    if (typeof pointer !== 'string' || !pointer.startsWith('#'))
      throw new BadSchema("'$ref' must point into the schema itself, for example '#/$defs/size'");
    if (open.includes(pointer)) throw new BadSchema(`'$ref' ${pointer.slice(0, 64)} refers to itself`);
    open.push(pointer);
    const schema = read(pointedAt(root, pointer));
    open.pop();
    return schema;
  };

  const schema = read(root);
  return { schema, patternSize };
};

/** The value at a JSON pointer of the form `#/a/b`. */
const pointedAt = (root: JsonValue, pointer: string): JsonValue => {
  let node: JsonValue | undefined = root;
  for (const part of pointer.slice(1).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    node = Array.isArray(node) ? node[Number(key)] : isObject(node) ? own(node, key) : undefined;
  }
  if (node === undefined || (pointer !== '#' && !pointer.startsWith('#/')))
    throw new BadSchema(`'$ref' ${pointer.slice(0, 64)} points at nothing`);
  return node;
};

const deeperThan = (value: JsonValue, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => deeperThan(inner, levels - 1)));
