import { expect } from 'chai';
import { NOT_PROVEN } from '../../../src/app/audit/bundle/format.ts';
import { filterText, notProvenOf, periodText } from '../../../src/cli/audit/filter-text.ts';

/** What the check of an export says of its filter. */
describe('the filter of an export, as its check says it', () => {
  const report = (filter: number, audience: number, from = 5) => ({
    notProven: NOT_PROVEN,
    withheldBy: { filter, audience },
    range: { from, to: 10 },
    treeSize: 10,
  });
  const ofFilter = (texts: readonly string[]): readonly string[] =>
    texts.filter((text) => /filter|why events/.test(text));

  it('is not spoken of where none was asked for: the export is the whole history of its range', () => {
    for (const none of [{}, { from: '2026-01-01T00:00:00.000Z', to: '2027-01-01T00:00:00.000Z' }]) {
      expect(filterText(none)).to.deep.equal([
        'filter: none was asked for: this is all of the history in this range',
      ]);
      expect(ofFilter(notProvenOf(report(0, 0), none))).to.deep.equal([]);
      expect(ofFilter(notProvenOf(report(0, 3), none))).to.deep.equal([
        'why events are withheld: that this reader may not see them',
      ]);
      expect(notProvenOf(report(0, 3), none)).to.have.length(NOT_PROVEN.length);
    }
  });

  it('is by times as the service stated them', () => {
    const [from, to] = ['2026-01-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'];
    for (const [period, says] of [
      [{ from, to }, [`asked for: recorded from ${from} to before ${to}: as the service stated`]],
      [{ from }, [`asked for: recorded at ${from} or later: as the service stated`]],
      [{ to }, [`asked for: recorded before ${to}: as the service stated`]],
      [{}, []],
      [undefined, []],
    ] as const)
      expect(periodText(period)).to.deep.equal(says);
  });

  it('is of no times where none were named and all that was signed is there', () => {
    const ofTimes = (texts: readonly string[]): number =>
      texts.filter((text) => text.includes('recorded times are not proven')).length;
    expect(ofTimes(NOT_PROVEN)).to.equal(1);
    expect(ofTimes(notProvenOf(report(0, 0, 0), {}))).to.equal(0);
    expect(ofTimes(notProvenOf(report(1, 0, 0), { kind: 'cluster' }))).to.equal(0);
    expect(ofTimes(notProvenOf(report(0, 0, 0), { to: 'x' }))).to.equal(1);
    // Whoever asked for all and was given less is told that the range is the exporter's word.
    expect(ofTimes(notProvenOf(report(0, 0, 3), {}))).to.equal(1);
    expect(ofTimes(notProvenOf({ ...report(0, 0, 0), treeSize: 11 }, {}))).to.equal(1);
  });

  it('is said, and that it is not proven, where one was asked for or something was left out all the same', () => {
    const asked = { kind: 'cluster', types: ['ClusterOrdered', 'ClusterDeleted'], from: 'x' };
    expect(filterText(asked)).to.deep.equal(['filter: kind cluster; types ClusterOrdered, ClusterDeleted']);
    expect(notProvenOf(report(3, 0), asked)).to.deep.equal(NOT_PROVEN);
    expect(notProvenOf(report(3, 0), {})).to.deep.equal(NOT_PROVEN);
    expect(filterText(undefined)).to.deep.equal([]);
    expect(notProvenOf(report(0, 0), undefined)).to.deep.equal(NOT_PROVEN);
    expect(filterText({ kind: 'a\u001b[31m' })[0]).to.not.include('\u001b');
  });
});
