import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { until } from '../service/stack.ts';
import type { ProcessOrder, ProcessReport } from './publisher-process.ts';

export type PublisherProcess = {
  /** The last line it printed. */
  report(): ProcessReport | undefined;
  /** Until that holds; throws when the process ends before. */
  until(what: string, holds: (report: ProcessReport) => boolean, boundMs?: number): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Exit code or signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
};

export const startPublisherProcess = (order: ProcessOrder): PublisherProcess => {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'publisher-process.ts'), JSON.stringify(order)],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let report: ProcessReport | undefined;
  let errors = '';
  let over: number | NodeJS.Signals | undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    report = JSON.parse(line) as ProcessReport;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => (errors += part));
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => {
      over = code ?? signal ?? 1;
      resolve(over);
    });
  });
  return {
    report: () => report,
    until: (what, holds, boundMs = 30_000) =>
      until(
        what,
        () => {
          if (over !== undefined) throw new Error(`the publisher ended with ${over}: ${errors}`);
          return report !== undefined && holds(report);
        },
        boundMs,
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}; last: ${JSON.stringify(report)} ${errors}`, { cause: error });
      }),
    signal: (name) => void child.kill(name),
    ended,
  };
};
