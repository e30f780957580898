import { expect } from 'chai';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/**
 * The dependency rule of the architecture: `domain` stands alone; `projections` and `app` know the domain;
 * `adapters` implement ports; `http` and `cli` call `app` and read `projections`; only `main.ts` sees everything.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  domain: ['domain'],
  app: ['app', 'domain'],
  projections: ['projections', 'app', 'domain'],
  adapters: ['adapters', 'app', 'domain'],
  http: ['http', 'app', 'projections', 'domain', 'gen'],
  cli: ['cli', 'app', 'projections', 'domain', 'http'],
  gen: ['gen'],
};
/** Files at the root of src: the composition root (and what it is made of) sees everything; the settings see nothing. */
const ROOT_FILES_THAT_SEE_EVERYTHING = /^(main|composition\/.*)\.ts$/;

const sources = globSync('src/**/*.ts');
const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    (match) => match[1] ?? '',
  );
const area = (file: string): string => relative('src', file).split('/')[0] ?? '';

describe('dependency rule', () => {
  it('finds the sources it is meant to check', () => {
    expect(sources.length).to.be.greaterThan(20);
  });

  for (const file of sources) {
    const name = relative('src', file);
    if (ROOT_FILES_THAT_SEE_EVERYTHING.test(name)) continue;
    it(`${name} imports only what its folder may`, () => {
      for (const specifier of importsOf(file)) {
        if (specifier.startsWith('.')) {
          const target = area(join(dirname(file), specifier));
          const allowed = ALLOWED[area(file)] ?? [];
          expect(allowed, `${name} imports ${specifier}`).to.include(target);
        } else if (area(file) === 'domain') {
          expect(specifier, `${name} imports a package`).to.equal('zod');
        }
      }
    });
  }
});
