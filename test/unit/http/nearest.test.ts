import { expect } from 'chai';
import { meant, nearest } from '../../../src/http/nearest.ts';

describe('names that were misspelt', () => {
  const known = ['ClusterOrdered', 'ClusterOrderAccepted', 'ClusterDeleted', 'LeaseActivated', 'cluster'];

  it('lead to those that are near, the nearest first', () => {
    expect(nearest('ClusterOrderd', known)[0]).to.equal('ClusterOrdered');
    expect(nearest('clusterordered', known)[0]).to.equal('ClusterOrdered');
    expect(nearest('ClutserOrdered', known)[0]).to.equal('ClusterOrdered');
    expect(nearest('clusterz', known)).to.deep.equal(['cluster']);
    expect(nearest('ClusterDelete', known, 1)).to.deep.equal(['ClusterDeleted']);
  });

  it('lead to none when nothing is near', () => {
    expect(nearest('Zebra', known)).to.deep.equal([]);
    expect(meant('Zebra', known)).to.equal('');
    expect(meant('clusterz', known)).to.equal('; did you mean cluster?');
    expect(nearest('x'.repeat(100_000), known)).to.deep.equal([]);
    expect(nearest('', [])).to.deep.equal([]);
  });
});
