import { parse } from '@bufbuild/cel';
import { invalid, type ApiError } from '../../errors.ts';

/** A filter text whose string literals stand aside, since the parser spends microseconds on each of their characters. */
type Shortened = {
  /** Each literal is the number, in quotes, under which `literals` holds its content. */
  readonly text: string;
  readonly literals: readonly string[];
  /** Offset in the original text of each offset of the short one, its end included. */
  readonly offsets: readonly number[];
};

const LITERAL = /"([^"\r\n]*)"|'([^'\r\n]*)'/g;
/** What says that quotes alone do not tell where literals are: escapes and triple quotes. */
const HARD = ['\\', '"""', "'''"];

/**
 * Undefined when the literals of a text cannot be told by their quotes alone (escapes, triple quotes, prefixes,
 * comments, one that never ends): such a text is parsed as it is.
 */
export const shorten = (original: string): Shortened | undefined => {
  if (HARD.some((mark) => original.includes(mark))) return undefined;
  const literals: string[] = [];
  const offsets: number[] = [];
  let text = '';
  let end = 0;
  const keep = (upTo: number): boolean => {
    const between = original.slice(end, upTo);
    for (let at = end; at < upTo; at += 1) offsets.push(at);
    text += between;
    return !between.includes('//') && !/["']/.test(between);
  };
  for (const found of original.matchAll(LITERAL)) {
    if (!keep(found.index) || /\w$/.test(text)) return undefined;
    const stand = `"${literals.length}"`;
    for (let i = 0; i < stand.length; i += 1) offsets.push(found.index);
    text += stand;
    literals.push((found[1] ?? found[2] ?? '').toWellFormed());
    end = found.index + found[0].length;
  }
  if (!keep(original.length)) return undefined;
  offsets.push(original.length);
  return { text, literals, offsets };
};

type Parsed = ReturnType<typeof parse>;
export type Expr = Parsed['expr'];

/** A text whose parts can be named by line and column in what is wrong with it. */
export type Source = {
  /** Name of the request parameter, for the error: `filter`, `order`. */
  readonly parameter: string;
  readonly text: string;
};

/** A parsed text: where its expressions are, in UTF-16 units, and what its string literals hold. */
export type ParsedSource = Source & {
  readonly offsetOf: (expr: Pick<Expr, 'id'>) => number;
  readonly literal: (value: string) => string;
};

/** Longest text that is read, in UTF-16 units. */
const MAX_FILTER_LENGTH = 4096;
/** Longest text without the contents of its string literals: the parser takes some microseconds per character. */
const MAX_FILTER_WITHOUT_LITERALS = 1536;
/** Levels of brackets of any kind; counted before anything is parsed, since the parser calls itself per level. */
const MAX_FILTER_DEPTH = 32;

/** Text → syntax tree. Throws ApiError 400 that names the position. */
export const parseFilter = (text: string): { readonly expr: Expr; readonly source: ParsedSource } => {
  const unparsed: Source = { parameter: 'filter', text };
  if (text.length > MAX_FILTER_LENGTH)
    throw problemAt(unparsed, MAX_FILTER_LENGTH, `a filter may have ${MAX_FILTER_LENGTH} characters`);
  const short = shorten(text);
  const parsed = short?.text ?? text;
  const original = (at: number): number => short?.offsets[at] ?? at;
  guardDepth(unparsed, parsed, original);
  if (parsed.length > MAX_FILTER_WITHOUT_LITERALS)
    throw problemAt(
      unparsed,
      original(MAX_FILTER_WITHOUT_LITERALS),
      `a filter may have ${MAX_FILTER_WITHOUT_LITERALS} characters outside of plain string literals; ask in several requests`,
    );
  try {
    const { expr, sourceInfo } = parse(parsed);
    const positions = sourceInfo?.positions ?? {};
    return {
      expr,
      source: {
        ...unparsed,
        offsetOf: ({ id }) => original(positions[String(id)] ?? 0),
        literal: (value) =>
          short === undefined ? value.toWellFormed() : (short.literals[Number(value)] ?? ''),
      },
    };
  } catch (error) {
    const at = failureOffset(error);
    if (at === undefined) throw problemAt(unparsed, 0, 'this is not a CEL expression');
    throw problemAt(unparsed, original(at), unexpected(text, original(at)));
  }
};

/** The parser stops before an operator that has nothing behind it. */
const unexpected = (text: string, at: number): string => {
  const [operator] = LAST_OPERATOR.exec(text.slice(at).trim()) ?? [];
  if (operator !== undefined) return `the expression is not complete: nothing follows ${quoted(operator)}`;
  const found = text.codePointAt(at);
  return found === undefined
    ? 'the expression is not complete'
    : `unexpected ${quoted(String.fromCodePoint(found))}`;
};
const LAST_OPERATOR = /^(?:[=!<>]=|[<>!+\-*/%?:.]|&&|\|\||in)$/;

/** What is wrong at a place of the text, 1-based; `at` is an offset in UTF-16 units. */
export const problemAt = ({ parameter, text }: Source, at: number, problem: string): ApiError => {
  const before = text.slice(0, at).split(/\r\n|\r|\n/);
  const column = (before.at(-1)?.length ?? 0) + 1;
  return invalid(`${parameter} at line ${before.length}, column ${column}: ${problem}`, parameter);
};

export const problemOf = (source: ParsedSource, expr: Pick<Expr, 'id'>, problem: string): ApiError =>
  problemAt(source, source.offsetOf(expr), problem);

/** A piece of the caller's text as an error shows it: short and without control characters. */
export const quoted = (text: string): string =>
  `'${(text.length > 40 ? `${text.slice(0, 37)}...` : text).replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '\u00b7')}'`;

const OPENING = '([{';
const CLOSING = ')]}';

/** Brackets in string literals that do not stand aside count too; a lexer of our own would have to agree with CEL's. */
const guardDepth = (source: Source, parsed: string, original: (at: number) => number): void => {
  let depth = 0;
  for (let at = 0; at < parsed.length; at += 1) {
    const character = parsed.charAt(at);
    if (OPENING.includes(character)) depth += 1;
    else if (CLOSING.includes(character)) depth -= 1;
    if (depth > MAX_FILTER_DEPTH)
      throw problemAt(source, original(at), `brackets may be nested ${MAX_FILTER_DEPTH} deep`);
  }
};

const failureOffset = (error: unknown): number | undefined => {
  const { location } = error as { readonly location?: { readonly start?: { readonly offset?: unknown } } };
  const offset = location?.start?.offset;
  return typeof offset === 'number' ? offset : undefined;
};
