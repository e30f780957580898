import { createHash } from 'node:crypto';

/** What happened, one line each, with the virtual time in seconds. Equal seeds give equal traces. */
export type Trace = {
  note(who: string, what: string): void;
  lines(): readonly string[];
  hash(): string;
};

export const createTrace = (now: () => number): Trace => {
  const lines: string[] = [];
  const digest = createHash('sha256');
  return {
    note: (who, what) => {
      const line = `${(now() / 1000).toFixed(3).padStart(10)}  ${who.padEnd(9)} ${what}`;
      lines.push(line);
      digest.update(line).update('\n');
    },
    lines: () => lines,
    hash: () => digest.copy().digest('hex'),
  };
};
