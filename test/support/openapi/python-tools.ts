import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Pinned, so that a seed means the same calls on every machine. */
export const SCHEMATHESIS = 'schemathesis==4.32.5';
export const SPEC_VALIDATOR = 'openapi-spec-validator==0.9.0';
const PACKAGES: readonly string[] = [SCHEMATHESIS, SPEC_VALIDATOR];

const CACHE = join(
  import.meta.dirname,
  '../../../node_modules/.cache',
  PACKAGES.join('+').replaceAll('==', '-'),
);
const INSTALL_MS = 180_000;

/** Where the programs are, or what is missing on this machine. */
export type PythonTools = { readonly programOf: (name: string) => string } | { readonly missing: string };

/** Installs the packages from PyPI into a virtual environment of their own, once. */
export const installPythonTools = (): PythonTools => {
  const programOf = (name: string): string => join(CACHE, 'bin', name);
  // The last thing that an installation makes, so that one that broke off is made again.
  const complete = ['schemathesis', 'openapi-spec-validator'].map(programOf);
  if (complete.every((program) => existsSync(program))) return { programOf };
  mkdirSync(CACHE, { recursive: true });
  const steps: readonly (readonly [program: string, ...argv: string[]])[] = [
    ['python3', '-m', 'venv', CACHE],
    [programOf('pip'), 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES],
  ];
  for (const [program, ...argv] of steps) {
    const run = spawnSync(program, argv, { encoding: 'utf8', timeout: INSTALL_MS });
    if (run.status !== 0) return { missing: `${program} ${argv.join(' ')}: ${whyOf(run)}` };
  }
  const absent = complete.find((program) => !existsSync(program));
  return absent === undefined ? { programOf } : { missing: `${absent} is not there after its installation` };
};

const whyOf = (run: SpawnSyncReturns<string>): string =>
  run.error?.message ?? run.stderr.trim().split('\n').at(-1) ?? `exit code ${run.status}`;
