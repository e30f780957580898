import { RE2JS, RE2JSException } from 're2js';
import type { Run } from './run.ts';

/** A regular expression that runs in time linear in the text, whatever it is. */
export type Pattern = {
  readonly text: string;
  /** Cost of one character, in steps. */
  readonly size: number;
  readonly test: (value: string, run: Run) => boolean;
};

/** A pattern that is not taken: why, as one clause. */
export class BadPattern extends Error {
  override readonly name = 'BadPattern';
}

const MAX_PATTERN = 512;

/** `room`: how large it may be. Throws BadPattern. */
export const createPattern = (text: string, room: number): Pattern => {
  if (text.length > MAX_PATTERN) throw new BadPattern(`a pattern has more than ${MAX_PATTERN} characters`);
  const compiled = compile(text);
  const size = compiled.programSize();
  if (size > room) throw new BadPattern('its patterns are too large: use smaller repetitions');
  return {
    text,
    size,
    test: (value, run) => {
      run.spend(size * (value.length + 1));
      return compiled.test(value);
    },
  };
};

const compile = (text: string): RE2JS => {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(text));
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw new BadPattern(
      `pattern '${text.slice(0, 64)}' is not a regular expression of RE2, which knows no lookahead and no backreferences`,
    );
  }
};
