import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { OWN_CATEGORIES } from '../../../src/app/log/own-categories.ts';

/** An append to a stream of another category is refused in a shared EventStoreDB: nobody of ours would read it. */
describe('categories of our streams', () => {
  it('hold every category that a constant of the source names', () => {
    const named = globSync('src/{domain,app}/**/*.ts').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/\b\w+_CATEGORY = '(\w+)'/g)].map(([, category]) => category),
    );
    expect(named.length).to.be.greaterThan(8);
    expect(OWN_CATEGORIES).to.include.members(named);
  });
});
