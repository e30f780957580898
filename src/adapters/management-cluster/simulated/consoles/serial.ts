import type { Duplex } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { answeringStream } from './answering-stream.ts';

/** What a prompt knows of its machine. */
export type PromptMachine = {
  readonly name: string;
  /** The machine's clock, milliseconds since 1970. */
  readonly now: () => number;
};

const PROMPT = '# ';
const MAX_LINE = 1_024;
const HELP = 'help: this text\r\necho TEXT\r\nuname\r\ndate\r\n';

/** A small serial prompt without a login: it echoes what is typed, and answers each line. */
export const serialPrompt = ({ name, now }: PromptMachine): Duplex => {
  let line = '';
  /** A carriage return was the last character: a line feed behind it is part of the same end of line. */
  let returned = false;

  const answer = (typed: string): string => {
    const [word = '', ...rest] = typed.trim().split(/\s+/);
    switch (word) {
      case '':
        return '';
      case 'help':
        return HELP;
      case 'echo':
        return `${rest.join(' ')}\r\n`;
      case 'uname':
        return `Linux ${name} simulated\r\n`;
      case 'date':
        return `${new Date(now()).toISOString()}\r\n`;
      default:
        return `${word}: command not found\r\n`;
    }
  };

  const take = (character: string): string => {
    const after = returned && character === '\n';
    returned = character === '\r';
    if (after) return '';
    if (character === '\r' || character === '\n') {
      const typed = line;
      line = '';
      return `\r\n${answer(typed)}${PROMPT}`;
    }
    if (character === '\b' || character === '\x7f') {
      if (line === '') return '';
      line = line.slice(0, -1);
      return '\b \b';
    }
    // Ctrl-C: the line is thrown away.
    if (character === '\x03') {
      line = '';
      return `^C\r\n${PROMPT}`;
    }
    if (character < ' ' || line.length >= MAX_LINE) return '';
    line += character;
    return character;
  };

  const decoder = new StringDecoder('utf8');
  return answeringStream(`${name} (simulated)\r\n${PROMPT}`, (chunk) =>
    Array.from(decoder.write(chunk), take).join(''),
  );
};
