import { styleText } from 'node:util';

/** Prints the demo: readable on dark and light terminals (no fixed colours for text), plain when piped. */
export type Narrator = {
  chapter(title: string): void;
  say(text: string): void;
  event(at: string, what: string, detail: string): void;
  /** A claim that was checked; throws ClaimFailed when it does not hold. */
  check(claim: string, holds: boolean, facts?: string): void;
  readonly checked: number;
};

/** The demo saw something that is not as it says. */
export class ClaimFailed extends Error {
  override readonly name = 'ClaimFailed';
}

/** What the demo needs is not there: nothing of it has run. The message says what to do. */
export class CannotBegin extends Error {
  override readonly name = 'CannotBegin';
}

export const createNarrator = (stream: NodeJS.WriteStream): Narrator => {
  const style = (format: Parameters<typeof styleText>[0], text: string): string =>
    stream.isTTY ? styleText(format, text, { stream }) : text;
  const print = (text: string): void => {
    stream.write(`${text}\n`);
  };
  let checked = 0;
  return {
    chapter: (title) => print(`\n${style('bold', `── ${title}`)}`),
    say: (text) => print(`   ${text}`),
    event: (at, what, detail) =>
      print(`   ${style('dim', at.slice(11, 23))}  ${what.padEnd(30)} ${style('dim', detail)}`),
    check: (claim, holds, facts = '') => {
      if (!holds) throw new ClaimFailed(facts === '' ? claim : `${claim} (${facts})`);
      checked += 1;
      print(`   ${style('green', '✓')} ${claim}${facts === '' ? '' : style('dim', ` (${facts})`)}`);
    },
    get checked() {
      return checked;
    },
  };
};
