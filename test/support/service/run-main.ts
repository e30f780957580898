import { spawn, type ChildProcess } from 'node:child_process';
import { SERVE } from './stack.ts';

/** One run of the executable from its start to its end. */
export type Run = { readonly code: number | string; readonly out: string; readonly err: string };

export type Running = {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly out: () => string;
  readonly err: () => string;
  readonly ended: Promise<Run>;
};

const [MAIN = ''] = SERVE;
/** A command line that has not ended by then hangs. */
const BOUND_MS = 90_000;

/**
 * Starts `main.ts` with these arguments, as `npx ledgerctl` does, with these settings and no others of the service's
 * (a variable given as undefined is taken away). Killed when it does not end within
 * `boundMs`.
 */
export const startMain = (
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
  cwd?: string,
  boundMs = BOUND_MS,
): Running => {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(LEDGER|NODE_ENV)/.test(name));
  const child = spawn(process.execPath, [MAIN, ...argv], {
    env: { ...Object.fromEntries(inherited), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (out += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (err += part));
  const overdue = setTimeout(() => child.kill('SIGKILL'), boundMs);
  const ended = new Promise<Run>((resolve) => {
    child.once('close', (code, signal) => {
      clearTimeout(overdue);
      resolve({ code: code ?? signal ?? 'unknown', out, err });
    });
  });
  return { child, out: () => out, err: () => err, ended };
};

export const runMain = (...how: Parameters<typeof startMain>): Promise<Run> => startMain(...how).ended;
