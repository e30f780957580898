import { expect } from 'chai';
import type { Finding } from '../../../src/app/audit/bundle/findings.ts';
import { pinText } from '../../../src/cli/audit/report-text.ts';

describe('what a check says of a pin that is broken', () => {
  const checkpoint = { size: 60 };
  const pinned: Finding = { code: 'pin', message: 'it is another history', place: [0, 40] };
  const BROKEN =
    'pin: BROKEN: this is not the history that you pinned: somewhere before leaf 40 at least one event is another one, is ' +
    'missing, was added, or is filed elsewhere';
  const text = (findings: readonly Finding[], count = findings.length, pinSize = 40): string =>
    pinText({ pin: 'broken', pinSize, checkpoint, findings, count });

  it('is before which leaf, and that the events are sound where nothing else is wrong with them', () => {
    expect(text([pinned])).to.equal(
      `${BROKEN}; its events are sound by themselves: they are those of the head that was signed`,
    );
    // The head may be the smaller one of the two.
    expect(text([pinned], 1, 80)).to.include(' before leaf 40 ');
  });

  it('says nothing of sound events where more is wrong, or more than is listed', () => {
    const changed: Finding = { code: 'changed-event', message: 'changed', place: 7 };
    expect(text([pinned, changed])).to.equal(BROKEN);
    expect(text([pinned], 2)).to.equal(BROKEN);
    expect(
      text(
        Array.from({ length: 100 }, () => changed),
        101,
      ),
    ).to.equal(BROKEN);
  });

  it('says that history was taken back of a pin that is larger than the head, not of what a mirror holds beside it', () => {
    const back: Finding = { code: 'taken-back', message: 'history was taken back', place: [60, 80] };
    expect(text([back], 1, 80)).to.equal('pin: BROKEN: history was taken back (size 60 < 80)');
    expect(text([pinned, back])).to.equal(BROKEN);
  });
});
