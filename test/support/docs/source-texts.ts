/** A string or template of the source. Each `${…}` in it reads `X`; strings that are added up are one. */
type Literal = { readonly at: number; readonly end: number; readonly text: string };

/** `code`: the source with blanks for texts, comments and regular expressions, so that calls can be found in it. */
export type Source = { readonly code: string; readonly literals: readonly Literal[] };

/** `isWhole`: it is an argument by itself, not a part that something else is put around. */
export type SourceText = {
  readonly line: number;
  readonly call: string;
  readonly text: string;
  readonly isWhole: boolean;
};

const REGEX_MAY_BEGIN = /(?:[(,=:[!&|?{};>\n]|\breturn)\s*$/;
const BEFORE = 12;

/** Reads TypeScript as far as its texts are concerned. */
export const readSource = (source: string): Source => {
  const literals: Literal[] = [];
  const code = source.split('');
  const blank = (from: number, to: number): number => {
    for (let i = from; i < to; i += 1) if (code[i] !== '\n') code[i] = ' ';
    return to;
  };
  const afterRegex = (at: number): number => {
    let inClass = false;
    for (let i = at + 1; i < source.length; i += 1) {
      const char = source[i];
      if (char === '\\') i += 1;
      else if (char === '[') inClass = true;
      else if (char === ']') inClass = false;
      else if (char === '/' && !inClass) return i + 1;
    }
    return source.length;
  };
  const afterLiteral = (at: number): number => {
    const quote = source[at];
    const parts: string[] = [];
    let blankFrom = at;
    let i = at + 1;
    while (i < source.length && source[i] !== quote) {
      if (source[i] === '\\') {
        parts.push(source[i + 1] === 'n' ? '\n' : (source[i + 1] ?? ''));
        i += 2;
      } else if (quote === '`' && source.startsWith('${', i)) {
        blank(blankFrom, i + 2);
        blankFrom = afterCode(i + 2);
        parts.push('X');
        i = blankFrom + 1;
      } else {
        parts.push(source[i] ?? '');
        i += 1;
      }
    }
    literals.push({ at, end: i + 1, text: parts.join('') });
    return blank(blankFrom, i + 1);
  };
  /** Where the code from `at` on ends: at a brace that it did not open, or with the file. */
  const afterCode = (at: number): number => {
    let depth = 0;
    let i = at;
    while (i < source.length) {
      const char = source[i] ?? '';
      const next = source[i + 1];
      if (char === '}' && depth === 0) return i;
      if (char === '{') depth += 1;
      if (char === '}') depth -= 1;
      if (char === "'" || char === '"' || char === '`') i = afterLiteral(i);
      else if (char === '/' && next === '/') i = blank(i, indexOr(source, '\n', i));
      else if (char === '/' && next === '*') i = blank(i, indexOr(source, '*/', i) + 2);
      else if (char === '/' && REGEX_MAY_BEGIN.test(source.slice(Math.max(0, i - BEFORE), i)))
        i = blank(i, afterRegex(i));
      else i += 1;
    }
    return i;
  };
  afterCode(0);
  return { code: code.join(''), literals: addedUp(literals, code) };
};

const indexOr = (source: string, what: string, from: number): number => {
  const at = source.indexOf(what, from);
  return at < 0 ? source.length : at;
};

const addedUp = (literals: readonly Literal[], code: readonly string[]): readonly Literal[] => {
  const joined: Literal[] = [];
  // By their ends: a template ends behind those inside it, so that its neighbour is the one that it is added to.
  for (const literal of literals.toSorted((one, other) => one.end - other.end)) {
    const last = joined.at(-1);
    const between = last === undefined ? '' : code.slice(last.end, literal.at).join('');
    if (last !== undefined && /^\s*\+\s*$/.test(between))
      joined[joined.length - 1] = { ...last, end: literal.end, text: last.text + literal.text };
    else joined.push(literal);
  }
  return joined.toSorted((one, other) => one.at - other.at);
};

/** Texts of more than one word among the arguments of these calls. `calls` ends with the bracket that opens them. */
export const textsOfCalls = ({ code, literals }: Source, calls: RegExp): readonly SourceText[] => {
  const found = new Map<number, SourceText>();
  for (const match of code.matchAll(calls)) {
    const begin = match.index + match[0].length;
    const depths = depthsOf(code, begin);
    for (const { at, text } of literals) {
      const depth = depths[at - begin];
      if (at < begin || depth === undefined || found.has(at) || !/\S\s\S/.test(text)) continue;
      const isWhole = depth === 1 && /[(,]\s*$/.test(code.slice(begin - 1, at));
      found.set(at, { line: lineOf(code, at), call: match[0], text, isWhole });
    }
  }
  return [...found.values()];
};

/** Texts of more than one word that are the value of this property. */
export const textsOfProperty = (
  { code, literals }: Source,
  property: 'message' | 'about' | 'summary' | 'description',
): readonly SourceText[] =>
  literals
    .filter(({ at, text }) => /\S\s\S/.test(text) && code.slice(0, at).trimEnd().endsWith(`${property}:`))
    .map(({ at, text }) => ({ line: lineOf(code, at), call: property, text, isWhole: true }));

/** How deep in brackets each character from `begin` on is, up to the bracket that closes the call. */
const depthsOf = (code: string, begin: number): readonly number[] => {
  const depths: number[] = [];
  let depth = 1;
  for (let i = begin; i < code.length && depth > 0; i += 1) {
    depths.push(depth);
    if ('([{'.includes(code[i] ?? '')) depth += 1;
    if (')]}'.includes(code[i] ?? '')) depth -= 1;
  }
  return depths;
};

const lineOf = (code: string, at: number): number => code.slice(0, at).split('\n').length;
