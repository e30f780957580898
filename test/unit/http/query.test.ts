import { expect } from 'chai';
import { readListQuery } from '../../../src/http/osac/query.ts';

/** However many are asked for, an answer holds a thousand at most. */
describe('the page that a list is asked for', () => {
  for (const [asked, limit] of [
    ['', 100],
    ['?limit=0', 0],
    ['?limit=7', 7],
    ['?limit=1000', 1_000],
    ['?limit=1001', 1_000],
    ['?limit=2147483647', 1_000],
  ] as const)
    it(`has at most ${limit} objects: '${asked}'`, () => {
      expect(readListQuery(`/clusters${asked}`).limit).to.equal(limit);
    });

  for (const asked of ['?limit=-1', '?limit=2147483648', '?limit=1.5', '?limit=x'])
    it(`is refused: '${asked}'`, () => {
      expect(() => readListQuery(`/clusters${asked}`)).to.throw(/limit/);
    });
});
