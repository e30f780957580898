/** A filter text whose string literals stand aside, since the parser spends microseconds on each of their characters. */
export type Shortened = {
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
