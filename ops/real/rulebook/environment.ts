import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findJava } from '../java.ts';
import { cacheFolder } from '../go-program.ts';

/** Where ansible-rulebook is and what it needs around it. */
export type RulebookEnvironment = {
  /** `bin` of the virtual environment; it must be on PATH, because ansible-runner starts playbooks by name. */
  readonly bin: string;
  readonly javaHome: string;
};

const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt');
const INSTALL_MS = 300_000;

/**
 * ansible-rulebook in a virtual environment of its own: from the cache, or installed now from PyPI (57 MB, about 20 s).
 * Other requirements are another folder.
 *
 * @param say told what is about to take long.
 * @throws Error with what is missing on this machine: whoever needs it must not go on without.
 */
export const rulebookEnvironment = (say: (line: string) => void = () => undefined): RulebookEnvironment => {
  // The rules engine is a Java library.
  const javaHome = findJava('ansible-rulebook');
  const key = createHash('sha256').update(readFileSync(REQUIREMENTS));
  const folder = join(cacheFolder(), `rulebook-${key.digest('hex').slice(0, 16)}`);
  const bin = join(folder, 'bin');
  // Written last, so that an installation that broke off is made again.
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return { bin, javaHome };
  say('installing ansible-rulebook from PyPI; this takes about 20 seconds, once per machine');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run('python3', ['-m', 'venv', folder]);
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-input', '--only-binary', ':all:'];
  run(join(bin, 'pip'), ['install', ...quiet, '-r', REQUIREMENTS]);
  run(join(bin, 'ansible-rulebook'), ['--version'], { JAVA_HOME: javaHome });
  writeFileSync(complete, '');
  return { bin, javaHome };
};

const run = (
  program: string,
  argv: readonly string[],
  more: NodeJS.ProcessEnv = {},
): SpawnSyncReturns<string> => {
  const done = spawnSync(program, argv, {
    encoding: 'utf8',
    timeout: INSTALL_MS,
    env: { ...process.env, ...more },
  });
  if (done.status === 0) return done;
  const why = done.error?.message ?? (done.stderr.trim().split('\n').at(-1) || `exit code ${done.status}`);
  throw new Error(`ansible-rulebook cannot be installed: ${program} ${argv.join(' ')}: ${why}`);
};
