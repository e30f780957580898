import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where the program is, or why this machine cannot have it. */
export type KubeBinary = { readonly path: string } | { readonly missing: string };

const SOURCES = import.meta.dirname;
/** A first build takes about five minutes of both cores of a small machine, and gets most of its modules before that. */
const BUILD_MS = 30 * 60_000;
/** k8s.io/kubernetes 1.36 asks for it. */
const GO_AT_LEAST = [1, 26] as const;

/** Folder of what is built or installed once per machine, outside of the checkout: `npm ci` must not empty it. */
export const cacheFolder = (): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'fulfillment-ledger');

/**
 * etcd, kube-apiserver and controllers in one program: from the cache, or built now when Go is there. Another version
 * of the module or of main.go is another folder.
 *
 * @param say told what is about to take long.
 */
export const kubeBinary = (say: (line: string) => void = () => undefined): KubeBinary => {
  const flags = linkFlags();
  const key = createHash('sha256').update(flags);
  for (const file of ['go.mod', 'go.sum', 'main.go']) key.update(readFileSync(join(SOURCES, file)));
  const folder = join(cacheFolder(), `kube-apiserver-${key.digest('hex').slice(0, 16)}`);
  const path = join(folder, 'hub');
  if (existsSync(path)) return { path };
  const unsuitable = whyGoIsUnsuitable();
  if (unsuitable !== undefined) return { missing: unsuitable };
  mkdirSync(folder, { recursive: true });
  say('building etcd, kube-apiserver and controllers; this takes about five minutes, once per machine');
  // Renamed when complete: a build that broke off must not look like the program.
  const unfinished = `${path}.${process.pid}`;
  const argv = ['build', '-trimpath', '-buildvcs=false', `-ldflags=${flags}`, '-o', unfinished, '.'];
  const run = spawnSync('go', argv, { cwd: SOURCES, encoding: 'utf8', timeout: BUILD_MS });
  if (run.status !== 0) {
    rmSync(unfinished, { force: true });
    return {
      missing: `go build: ${run.error?.message ?? run.stderr.trim().split('\n').slice(-3).join('; ')}`,
    };
  }
  renameSync(unfinished, path);
  return { path };
};

/** Without symbols; and the server says which version it is, as a released one does. */
const linkFlags = (): string => {
  const [, version = ''] =
    /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(SOURCES, 'go.mod'), 'utf8')) ?? [];
  return `-s -w -X k8s.io/component-base/version.gitVersion=${version}`;
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
