import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

/** Prose that people read to get something done. */
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync(['docs/*.md', 'ops/runbooks/*.md']),
];

/** More words than this nobody reads at once; 25 are what a sentence should have. */
const MOST_WORDS = 35;
/** Openings that make a clause the subject: the reader learns late what is said of it. */
const CLAUSE_AS_SUBJECT = /^(?:Who|Whoever|What|Whatever|That|Of|Where|Which)\b(?!.*\?$)/;

/** Words that read as translated; there is a plain one for each. */
const STIFF = /\b(?:anew|whoever|meanwhile)\b/i;

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

const sentencesOf = (text: string): readonly string[] =>
  blocksOf(text).flatMap((block) => block.split(/(?<=[.!?]) (?=[A-Z`*"(])/));

const wordsOf = (sentence: string): number => sentence.split(' ').filter((word) => /\w/.test(word)).length;

describe('the text', () => {
  for (const page of PAGES) {
    describe(page, () => {
      const sentences = sentencesOf(readFileSync(page, 'utf8'));
      it(`has no sentence of more than ${MOST_WORDS} words`, () => {
        expect(sentences.filter((sentence) => wordsOf(sentence) > MOST_WORDS)).to.deep.equal([]);
      });
      it('has no word that reads as translated', () => {
        expect(sentences.filter((sentence) => STIFF.test(sentence))).to.deep.equal([]);
      });
      it('begins no sentence with a clause for a subject', () => {
        expect(sentences.filter((sentence) => CLAUSE_AS_SUBJECT.test(sentence))).to.deep.equal([]);
      });
    });
  }
});
