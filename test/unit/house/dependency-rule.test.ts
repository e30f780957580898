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
  cli: ['cli', 'app', 'projections', 'domain'],
  gen: ['gen'],
};
/** The composition root (`main.ts` and what it is built of) sees everything. */
const ROOT_FILES_THAT_SEE_EVERYTHING = /^(main|composition\/.*)\.ts$/;

const sources = globSync('src/**/*.ts');
/** Static imports and re-exports (over several lines too), side-effect imports, dynamic imports. */
const IMPORTS = /^(?:import|export)\b[^;]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm;
const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(IMPORTS)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
const area = (file: string): string => relative('src', file).split('/')[0] ?? '';

describe('dependency rule', () => {
  it('finds the sources it is meant to check, and their imports', () => {
    expect(sources.length).to.be.greaterThan(100);
    expect(importsOf('src/composition/system.ts')).to.include('../projections/views.ts');
    expect(importsOf('src/main.ts')).to.include('./composition/service.ts').and.to.include('node:path');
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
