import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Pinned, so that a seed means the same calls on every machine. */
export const SCHEMATHESIS = 'schemathesis==4.32.5';
const CACHE = join(import.meta.dirname, '../../node_modules/.cache', SCHEMATHESIS.replace('==', '-'));
const INSTALL_MS = 180_000;

export type Fuzzer = { readonly command: string } | { readonly missing: string };

/** Installs the fuzzer into a virtual environment of its own, once; or says what is missing on this machine. */
export const installFuzzer = (): Fuzzer => {
  const command = join(CACHE, 'bin/schemathesis');
  if (existsSync(command)) return { command };
  mkdirSync(CACHE, { recursive: true });
  const steps: readonly (readonly [program: string, ...argv: string[]])[] = [
    ['python3', '-m', 'venv', CACHE],
    [join(CACHE, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', SCHEMATHESIS],
  ];
  for (const [program, ...argv] of steps) {
    const run = spawnSync(program, argv, { encoding: 'utf8', timeout: INSTALL_MS });
    if (run.status !== 0) return { missing: `${program} ${argv.join(' ')}: ${whyOf(run)}` };
  }
  return existsSync(command) ? { command } : { missing: `${command} is not there after its installation` };
};

const whyOf = (run: SpawnSyncReturns<string>): string =>
  run.error?.message ?? run.stderr.trim().split('\n').at(-1) ?? `exit code ${run.status}`;
