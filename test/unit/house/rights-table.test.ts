import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { kinds } from '../../../src/domain/kinds.ts';
import { rightsTable } from '../../support/rights-table.ts';

describe('the guide for administrators', () => {
  it('holds the table of rights that the service decides by', () => {
    expect(readFileSync('docs/administration.md', 'utf8')).to.include(rightsTable(kinds));
  });
});
