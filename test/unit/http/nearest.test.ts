import { expect } from 'chai';
import fc from 'fast-check';
import { meant, nearest } from '../../../src/http/suggestions.ts';
import { check } from '../../support/property.ts';

/** The same distance without any bound. */
const fullDistance = (from: string, to: string): number => {
  const rows = [Array.from({ length: to.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const at = (up: number, left: number): number =>
        (up === 0 ? row : (rows[i - up] ?? []))[j - left] ?? Infinity;
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row.push(
        Math.min(
          at(1, 0) + 1,
          at(0, 1) + 1,
          at(1, 1) + (from[i - 1] === to[j - 1] ? 0 : 1),
          swapped ? at(2, 2) + 1 : Infinity,
        ),
      );
    }
    rows.push(row);
  }
  return rows[from.length]?.[to.length] ?? Infinity;
};

describe('names that were misspelt', () => {
  const known = ['ClusterOrdered', 'ClusterOrderAccepted', 'ClusterDeleted', 'LeaseActivated', 'cluster'];

  it('lead to those that are near, the nearest first', () => {
    expect(nearest('ClusterOrderd', known)[0]).to.equal('ClusterOrdered');
    expect(nearest('clusterordered', known)[0]).to.equal('ClusterOrdered');
    expect(nearest('ClutserOrdered', known)[0]).to.equal('ClusterOrdered');
    expect(nearest('clusterz', known)).to.deep.equal(['cluster']);
    expect(nearest('ClusterDelete', known, 1)).to.deep.equal(['ClusterDeleted']);
  });

  it('are as far as if every place had been looked at', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 14 });
    const reachOf = (name: string): number => Math.min(8, Math.max(2, Math.floor(name.length / 3)));
    check(
      fc.property(letters, fc.array(letters, { maxLength: 5 }), (name, names) => {
        const near = names.filter((each) => fullDistance(name, each) <= reachOf(name));
        const far = near.map((each) => fullDistance(name, each)).toSorted((a, b) => a - b);
        const found = nearest(name, names, names.length);
        expect(found).to.have.members(near);
        expect(found.map((each) => fullDistance(name, each))).to.deep.equal(far);
      }),
    );
  });

  it('are compared with a thousand long ones without holding the thread', () => {
    const tenants = Array.from(
      { length: 1_000 },
      (_, n) => `a-company-with-a-long-name-of-which-this-is-part-${n}`,
    );
    const wrong = 'a-company-with-a-long-name-of-which-thiz-is-part-';
    const taken = Array.from({ length: 20 }, () => {
      const since = performance.now();
      expect(nearest(wrong, tenants)).to.have.length(3);
      return performance.now() - since;
    });
    // The best of many: what else the machine does is not meant.
    expect(Math.min(...taken)).to.be.below(20);
  });

  it('lead to none when nothing is near', () => {
    expect(nearest('Zebra', known)).to.deep.equal([]);
    expect(meant('Zebra', known)).to.equal('');
    expect(meant('clusterz', known)).to.equal('; did you mean cluster?');
    expect(nearest('x'.repeat(100_000), known)).to.deep.equal([]);
    expect(nearest('', [])).to.deep.equal([]);
  });
});
