import { expect } from 'chai';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/**
 * The dependency rule of the architecture: `domain` stands alone; `projections` and `app` know the domain;
 * `adapters` implement ports; `http` and `cli` call `app` and read `projections`; `grpc` is another codec around the
 * handlers in `http`; only `main.ts` sees everything.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  domain: ['domain'],
  app: ['app', 'domain'],
  projections: ['projections', 'app', 'domain'],
  adapters: ['adapters', 'app', 'domain'],
  http: ['http', 'app', 'projections', 'domain', 'gen'],
  grpc: ['grpc', 'http', 'app', 'domain', 'gen'],
  cli: ['cli', 'app', 'projections', 'domain', 'gen'],
  gen: ['gen'],
  'config.ts': ['domain', 'setting-values.ts'],
  'setting-values.ts': ['domain'],
};
/** The composition root (`main.ts` and what it is built of) sees everything. */
const ROOT_FILES_THAT_SEE_EVERYTHING = /^(main|composition\/.*)\.ts$/;

const sources = globSync('src/**/*.ts');
/** Static imports and re-exports (over several lines too), side-effect imports, dynamic imports. */
const IMPORTS = /^(?:import|export)\b[^;]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\(\s*'([^']+)'/gm;
const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(IMPORTS)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
/** Imports of which nothing is left at run time. */
const isTypeOnly = (file: string, path: string): boolean =>
  [...readFileSync(file, 'utf8').matchAll(IMPORTS)]
    .filter((match) => match.slice(1).includes(path))
    .every(([statement]) => statement.startsWith('import type '));
/** The command line knows the form of the answers that it prints, and loads nothing of what makes them. */
const TYPES_OF_ANSWERS = /^src\/http\/(ledger\/[a-z-]+-operations|audit\/answers)\.ts$/;
const area = (file: string): string => relative('src', file).split('/')[0] ?? '';

/**
 * Groups of files of which each imports, over others, every other one: strongly connected components of more than one
 * file (Tarjan). Imports of types count too: what is thought of together belongs in one file, or has a third in common.
 */
const cyclesIn = (graph: ReadonlyMap<string, readonly string[]>): string[][] => {
  const order = new Map<string, number>();
  const open: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string): number => {
    const own = order.size;
    let low = own;
    order.set(file, own);
    open.push(file);
    for (const next of graph.get(file) ?? []) {
      if (next === file) cycles.push([file]);
      else if (!order.has(next)) low = Math.min(low, visit(next));
      else if (open.includes(next)) low = Math.min(low, order.get(next) ?? low);
    }
    if (low === own) {
      const group = open.splice(open.indexOf(file));
      if (group.length > 1) cycles.push(group.toSorted());
    }
    return low;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return cycles;
};

describe('import cycles', () => {
  it('are found', () => {
    const graph = {
      a: ['b'],
      b: ['c'],
      c: ['b', 'd'],
      d: [],
      e: ['e', 'a'],
      f: ['g'],
      g: ['h'],
      h: ['f', 'a'],
    };
    expect(cyclesIn(new Map(Object.entries(graph)))).to.deep.equal([['b', 'c'], ['e'], ['f', 'g', 'h']]);
  });

  it('do not exist', () => {
    const graph = new Map(
      sources.map((file) => [
        file,
        importsOf(file).flatMap((path) => (path.startsWith('.') ? [join(dirname(file), path)] : [])),
      ]),
    );
    expect(cyclesIn(graph)).to.deep.equal([]);
  });
});

describe('dependency rule', () => {
  it('finds the sources it is meant to check, and their imports', () => {
    expect(sources.length).to.be.greaterThan(100);
    expect(importsOf('src/composition/system.ts')).to.include('../projections/views.ts');
    expect(importsOf('src/main.ts')).to.include('./composition/service.ts').and.to.include('node:path');
  });

  it('lets the step engine know no other folder of the domain', () => {
    const engine = sources.filter((file) => file.startsWith('src/domain/process/'));
    const targets = engine.flatMap((file) =>
      importsOf(file).flatMap((path) => (path.startsWith('.') ? [dirname(join(dirname(file), path))] : [])),
    );
    expect([...new Set(targets)].toSorted()).to.deep.equal(['src/domain', 'src/domain/process']);
  });

  it('lets gRPC know no kind: its services come from the tables and descriptors', () => {
    const grpc = sources.filter((file) => file.startsWith('src/grpc/'));
    expect(grpc.length).to.be.greaterThan(5);
    const kinds = /\b(cluster|hub|tenant|project|secret|role|user|hostType|diskImage)s?\b/i;
    for (const file of grpc) {
      const code = readFileSync(file, 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*|^import [^;]*;/gm, '');
      expect(kinds.exec(code)?.[0], file).to.equal(undefined);
    }
  });

  for (const file of sources) {
    const name = relative('src', file);
    if (ROOT_FILES_THAT_SEE_EVERYTHING.test(name)) continue;
    it(`${name} imports only what its folder may`, () => {
      for (const specifier of importsOf(file)) {
        if (specifier.startsWith('.')) {
          const wanted = join(dirname(file), specifier);
          if (area(file) === 'cli' && TYPES_OF_ANSWERS.test(wanted) && isTypeOnly(file, specifier)) continue;
          const target = area(wanted);
          const allowed = ALLOWED[area(file)] ?? [];
          expect(allowed, `${name} imports ${specifier}`).to.include(target);
        } else if (area(file) === 'domain') {
          expect(specifier, `${name} imports a package`).to.equal('zod');
        }
      }
    });
  }
});
