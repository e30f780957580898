/** Strings, and what parts the values of a JSON text; everything between them is of no account here. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;

/**
 * The first name that stands twice in one object of a JSON text: of these readers take one or the other value, so that two of
 * them may read two texts. Undefined when there is none.
 *
 * @param text one that JSON.parse reads.
 */
export const repeatedName = (text: string): string | undefined => {
  /** Names of the objects that are open, from the outside in; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let atName = false;
  for (const [token] of text.matchAll(TOKEN)) {
    const names = open.at(-1);
    if (token === '{' || token === '[') {
      open.push(token === '{' ? new Set() : undefined);
      atName = token === '{';
    } else if (token === '}' || token === ']') {
      open.pop();
      atName = false;
    } else if (token === ',') atName = names !== undefined;
    else if (atName && names !== undefined) {
      const name = JSON.parse(token) as string;
      if (names.has(name)) return name;
      names.add(name);
      atName = false;
    }
  }
  return undefined;
};
