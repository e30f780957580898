import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from 'chai';

/** Finds files as the command line of mocha does. */
const { lookupFiles } = createRequire(import.meta.url)(
  join(import.meta.dirname, '../../../node_modules/mocha/lib/cli/lookup-files.js'),
) as { lookupFiles(pattern: string, extensions: readonly string[], recursive: boolean): readonly string[] };

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  scripts: Readonly<Record<string, string>>;
};
const patternsOf = (script: string): readonly string[] =>
  (scripts[script] ?? '')
    .split(' ')
    .map((word) => word.replaceAll("'", ''))
    .filter((word) => word.startsWith('test/') && word.endsWith('.test.ts'));
const filesOf = (script: string): readonly string[] =>
  patternsOf(script).flatMap((pattern) => [...lookupFiles(pattern, ['ts'], false)]);

/** What `.ci/run` runs, and what a person runs alone. */
const WHOLE = 'test';
const PARTS = ['test:unit', 'test:int', 'test:sim', 'test:e2e'] as const;
const CI = [WHOLE, 'test:faults', 'test:real'] as const;

describe('the scripts that run tests', () => {
  it('together run every test file', () => {
    const run = new Set(CI.flatMap(filesOf));
    const all = lookupFiles('test/**/*.test.ts', ['ts'], false);
    expect(all.filter((file) => !run.has(file))).to.deep.equal([]);
    const ci = readFileSync('.ci/run', 'utf8');
    for (const script of CI) expect(ci).to.match(new RegExp(`npm (run --silent )?${script}( |$)`, 'm'));
  });

  for (const script of [...CI, ...PARTS])
    it(`${script} runs a file once, and each of its patterns finds one`, () => {
      const files = filesOf(script);
      expect(files.filter((file, i) => files.indexOf(file) !== i)).to.deep.equal([]);
      for (const pattern of patternsOf(script))
        expect(lookupFiles(pattern, ['ts'], false), pattern).not.to.deep.equal([]);
    });

  it('the whole is its parts', () => {
    expect(filesOf(WHOLE).toSorted()).to.deep.equal(PARTS.flatMap(filesOf).toSorted());
  });
});
