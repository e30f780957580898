import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A script of this folder, or of another, that prints one JSON value a line. */
export type LineProcess<Line> = {
  /** What it has printed so far. */
  readonly lines: readonly Line[];
  /** What it has written to its error stream. */
  errors(): string;
  readonly pid: number;
  /** Ends it with this signal and resolves with its exit code or signal. */
  end(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
};

/** `parse` for a script that prints no JSON. */
export const startLines = <Line>(
  script: string,
  argv: readonly string[],
  parse: (text: string) => Line = (text) => JSON.parse(text) as Line,
): LineProcess<Line> => {
  const child = spawn(process.execPath, [script, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: Line[] = [];
  let errors = '';
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(parse(line)));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (errors += part));
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 1));
  });
  return {
    lines,
    errors: () => errors,
    pid: child.pid ?? 0,
    end: (signal = 'SIGKILL') => {
      child.kill(signal);
      return ended;
    },
  };
};
