/** More words than this nobody reads at once; 25 are what a sentence should have. */
export const MOST_WORDS = 35;

/** Openings that make a clause the subject: the reader learns late what is said of it. */
export const CLAUSE_AS_SUBJECT = /^(?:Who|Whoever|What|Whatever|That|Of|Where|Which)\b(?!.*\?$)/;

/** Words that read as translated; there is a plain one for each. */
export const STIFF = /\b(?:anew|whoever|meanwhile)\b/i;

/** Paragraphs, items of lists and cells of tables, without code, links and emphasis. */
const blocksOf = (text: string): readonly string[] =>
  text
    .replaceAll(/^```[\s\S]*?^```/gm, '\n')
    .replaceAll(/^#.*$/gm, '\n')
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|\|) ?)/)
    .flatMap((block) => (block.trim().startsWith('|') ? block.split('|') : [block]))
    .map((block) =>
      block
        .replaceAll(/`[^`]*`/g, 'X')
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replaceAll('**', '')
        .replace(/^\s*(?:[-*]|\d+\.) /, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    );

/** Sentences of a text, whether it is Markdown or one message. */
export const sentencesOf = (text: string): readonly string[] =>
  blocksOf(text).flatMap((block) => block.split(/(?<=[.!?]) (?=[A-Z`*"'(])/));

export const wordsOf = (sentence: string): number =>
  sentence.split(' ').filter((word) => /\w/.test(word)).length;
