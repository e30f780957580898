import { expect } from 'chai';
import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { ClaimFailed, createNarrator, type Narrator } from '../../../src/cli/demo/narrator.ts';

/** What the narrator prints to a terminal or a pipe. */
const printed = (isTTY: boolean, tell: (narrator: Narrator) => void): string => {
  let text = '';
  const stream = new Writable({
    decodeStrings: false,
    write: (part: string, _encoding, done) => {
      text += part;
      done();
    },
  });
  const terminal = { isTTY, hasColors: () => isTTY, getColorDepth: () => (isTTY ? 24 : 1) };
  tell(createNarrator(Object.assign(stream, terminal) as unknown as NodeJS.WriteStream));
  return text;
};

describe('narrator of the demo', () => {
  const story = (narrator: Narrator): void => {
    narrator.chapter('Order');
    narrator.say('cluster 4711');
    narrator.event('2026-11-21T12:00:00.123Z', 'ClusterOrdered', 'by alice');
    narrator.check('it became READY', true, 'https://api');
  };

  it('is plain when it is piped', () => {
    expect(printed(false, story)).to.equal(
      '\n── Order\n' +
        '   cluster 4711\n' +
        '   12:00:00.123  ClusterOrdered                 by alice\n' +
        '   ✓ it became READY (https://api)\n',
    );
  });

  it('says the same on a terminal, and sets no colour of text or background that could vanish on one', () => {
    const text = printed(true, story);
    const codes = text
      .split('\u001B[')
      .slice(1)
      .map((part) => Number.parseInt(part, 10));
    // Bold, dim, green, and back: neither black nor white, no background.
    expect(new Set(codes)).to.deep.equal(new Set([1, 22, 2, 32, 39]));
    expect(stripVTControlCharacters(text)).to.equal(printed(false, story));
  });

  it('ends at a claim that does not hold, and counts those that do', () => {
    printed(false, (narrator) => {
      narrator.check('one', true);
      expect(() => narrator.check('no second order was made', false, '2 clusters')).to.throw(
        ClaimFailed,
        'no second order was made (2 clusters)',
      );
      expect(narrator.checked).to.equal(1);
    });
  });
});
