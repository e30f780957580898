import { expect } from 'chai';
import { kinds } from '../../../src/cli/resources/kinds.ts';
import { actingKindOf } from '../../../src/domain/acting-kinds.ts';
import { kinds as declared } from '../../../src/domain/kinds.ts';

describe('the kinds of the command line', () => {
  it('are those that are declared, in their order', () => {
    expect(kinds.map(({ kind }) => kind)).to.deep.equal(declared.map(({ kind }) => kind));
  });

  for (const [i, facts] of kinds.entries())
    it(`says of a ${facts.words} what its declaration says`, () => {
      const { publicList, wrapsReplies, acts, ...rest } = facts;
      expect(declared[i]).to.deep.include(rest);
      expect(actingKindOf(facts.kind) !== undefined).to.equal(acts === true);
      expect(declared[i]?.wrapsReplies).to.equal(wrapsReplies);
      expect(declared[i]?.publicList?.map(({ when }) => ({ when }))).to.deep.equal(publicList);
    });
});
