import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Pinned, so that a seed means the same calls on every machine. */
export const SCHEMATHESIS = 'schemathesis==4.32.5';
export const SPEC_VALIDATOR = 'openapi-spec-validator==0.9.0';
const PACKAGES: readonly string[] = [SCHEMATHESIS, SPEC_VALIDATOR];

/** What the example of a Python client needs: the library, and what makes its messages of `proto/`. */
export const GRPCIO: readonly string[] = readFileSync('fixtures/clients/python/requirements.txt', 'utf8')
  .trim()
  .split('\n');
const INSTALL_MS = 180_000;

/** Where the programs are, or what is missing on this machine. */
export type PythonTools = { readonly programOf: (name: string) => string } | { readonly missing: string };

export const installPythonTools = (): PythonTools => install(PACKAGES);
export const installGrpcio = (): PythonTools => install(GRPCIO);

/** Installs the packages from PyPI into a virtual environment of their own, once. */
const install = (packages: readonly string[]): PythonTools => {
  const folder = join(
    import.meta.dirname,
    '../../../node_modules/.cache',
    packages.join('+').replaceAll('==', '-'),
  );
  const programOf = (name: string): string => join(folder, 'bin', name);
  // Written last, so that an installation that broke off is made again.
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return { programOf };
  mkdirSync(folder, { recursive: true });
  const steps: readonly (readonly [program: string, ...argv: string[]])[] = [
    ['python3', '-m', 'venv', folder],
    [programOf('pip'), 'install', '--quiet', '--disable-pip-version-check', ...packages],
  ];
  for (const [program, ...argv] of steps) {
    const run = spawnSync(program, argv, { encoding: 'utf8', timeout: INSTALL_MS });
    if (run.status !== 0) return { missing: `${program} ${argv.join(' ')}: ${whyOf(run)}` };
  }
  writeFileSync(complete, '');
  return { programOf };
};

const whyOf = (run: SpawnSyncReturns<string>): string =>
  run.error?.message ?? run.stderr.trim().split('\n').at(-1) ?? `exit code ${run.status}`;
