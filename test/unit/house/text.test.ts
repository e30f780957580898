import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { CLAUSE_AS_SUBJECT, MOST_WORDS, STIFF, sentencesOf, wordsOf } from '../../support/docs/prose.ts';

/** Prose that people read to get something done. Figures of the bench are for those who measure. */
const PAGES = globSync('**/*.md', { exclude: ['node_modules/**', 'fixtures/**', 'ops/bench/README.md'] });

describe('the text', () => {
  for (const page of PAGES.toSorted()) {
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
