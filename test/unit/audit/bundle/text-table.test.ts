import { expect } from 'chai';
import { createTextTable } from '../../../../src/app/audit/bundle/text-table.ts';

describe('numbers by text', () => {
  it('are kept for each text, however many there are', () => {
    const table = createTextTable(2);
    const texts = Array.from({ length: 5000 }, (_, n) => `cluster-${n}`);
    for (const [n, text] of texts.entries()) {
      const { row, isNew } = table.rowOf(text);
      expect([isNew, table.get(row, 0), table.get(row, 1)], text).to.deep.equal([true, 0, 0]);
      table.set(row, 0, n);
      table.set(row, 1, 2 ** 32 - 1 - n);
    }
    for (const [n, text] of texts.entries()) {
      const { row, isNew } = table.rowOf(text);
      expect([isNew, table.get(row, 0), table.get(row, 1)], text).to.deep.equal([false, n, 2 ** 32 - 1 - n]);
    }
  });

  it('tell texts apart that look alike, and the empty one', () => {
    const table = createTextTable(1);
    const odd = ['', '0', ' ', '__proto__', 'constructor', 'a', 'A', 'á', 'a\u0301', '\ud800'];
    expect(odd.map((text) => table.rowOf(text).isNew)).to.deep.equal(odd.map(() => true));
    expect(odd.map((text) => table.rowOf(text).isNew)).to.deep.equal(odd.map(() => false));
  });
});
