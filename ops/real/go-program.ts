import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where the program is, or why this machine cannot have it. */
export type GoProgram = { readonly path: string } | { readonly missing: string };

const BUILD_MS = 30 * 60_000;
/** What the newest of the modules asks for (k8s.io/kubernetes 1.36). */
const GO_AT_LEAST = [1, 26] as const;

/** Folder of what is built or installed once per machine, outside of the checkout: `npm ci` must not empty it. */
export const cacheFolder = (): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'fulfillment-ledger');

/**
 * A program of Go modules: from the cache, or built now when Go is there. Other versions or other sources are another
 * folder. `takes` says what is about to take long.
 */
export const goProgram = (
  {
    sources,
    name,
    program,
    flags = '',
    target = '.',
    takes,
  }: {
    readonly sources: string;
    readonly name: string;
    readonly program: string;
    readonly flags?: string;
    /** Package to build, where it is not the one of the sources. */
    readonly target?: string;
    readonly takes: string;
  },
  say: (line: string) => void,
): GoProgram => {
  const key = createHash('sha256').update(flags);
  const code = readdirSync(sources).filter((file) => file.endsWith('.go'));
  for (const file of ['go.mod', 'go.sum', ...code.toSorted()]) key.update(readFileSync(join(sources, file)));
  const folder = join(cacheFolder(), `${name}-${key.digest('hex').slice(0, 16)}`);
  const path = join(folder, program);
  if (existsSync(path)) return { path };
  const unsuitable = whyGoIsUnsuitable();
  if (unsuitable !== undefined) return { missing: unsuitable };
  mkdirSync(folder, { recursive: true });
  say(takes);
  // Renamed when complete: a build that broke off must not look like the program.
  const unfinished = `${path}.${process.pid}`;
  const argv = ['build', '-trimpath', '-buildvcs=false', `-ldflags=${flags}`, '-o', unfinished, target];
  const run = spawnSync('go', argv, { cwd: sources, encoding: 'utf8', timeout: BUILD_MS });
  if (run.status !== 0) {
    rmSync(unfinished, { force: true });
    return {
      missing: `go build: ${run.error?.message ?? run.stderr.trim().split('\n').slice(-3).join('; ')}`,
    };
  }
  renameSync(unfinished, path);
  return { path };
};

const whyGoIsUnsuitable = (): string | undefined => {
  const wanted = `Go ${GO_AT_LEAST.join('.')} or later is needed to build it`;
  const run = spawnSync('go', ['env', 'GOVERSION'], { cwd: '/', encoding: 'utf8' });
  if (run.status !== 0) return `${wanted}, and there is no Go on this machine`;
  const [, major = '0', minor = '0'] = /^go(\d+)\.(\d+)/.exec(run.stdout.trim()) ?? [];
  const [least, atLeast] = GO_AT_LEAST;
  const enough = Number(major) > least || (Number(major) === least && Number(minor) >= atLeast);
  return enough ? undefined : `${wanted}, and this machine has ${run.stdout.trim()}`;
};
