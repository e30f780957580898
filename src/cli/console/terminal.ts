import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { RawStreams } from '../connection.ts';
import type { OpenSocket, SocketEnd } from '../socket.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { detailOf, type Console } from './connect.ts';

export type TerminalOptions = {
  readonly console: Console;
  readonly streams: RawStreams;
  /** A line for people, on whichever stream they read. */
  readonly say: (line: string) => void;
  /** `compute_instance/web`. */
  readonly name: string;
  /** Ends it; aborted by this, too, once somebody leaves. */
  readonly leaving: AbortController;
  /** Of a pipe: milliseconds of silence after the end of the input with which the console is left. */
  readonly lingerMs: number;
};

/** Ctrl+], as of telnet, virsh and virtctl: nothing else needs it. */
const ESCAPE = 0x1d;
/** Belongs to the machine, except while there is no connection to it. */
const CTRL_C = 0x03;
/** Bytes that wait for the machine before the terminal is not read any more, and Ctrl+] with it. */
const MOST_TYPED = 1024 * 1024;

/**
 * Keys to the machine, its answers to the screen, until somebody presses Ctrl+] or the console is over. A lost
 * connection of a terminal is made again. Of a pipe it is a failure: bytes are missing, and a program would not see it.
 */
export const runTerminal = async (options: TerminalOptions): Promise<void> => {
  const { console: serial, streams, say, name, leaving } = options;
  const { input, output, setRaw } = streams;
  const isTerminal = setRaw !== undefined;
  const tell = (line: string): void => {
    setRaw?.(false);
    say(line);
    setRaw?.(true);
  };
  const left = new Promise<'left'>((resolve) => {
    leaving.signal.addEventListener('abort', () => resolve('left'));
  });
  let current: Duplex | undefined;
  const send = (bytes: Buffer): void => {
    if (current === undefined || current.destroyed || bytes.length === 0) return;
    const more = current.write(bytes);
    if (more || (isTerminal && current.writableLength < MOST_TYPED)) return;
    input.pause();
    current.once('drain', () => input.resume()).once('close', () => input.resume());
  };
  const onInput = (bytes: Buffer): void => {
    const keys = current === undefined ? [ESCAPE, CTRL_C] : [ESCAPE];
    const escape = isTerminal ? bytes.findIndex((key) => keys.includes(key)) : -1;
    send(escape < 0 ? bytes : bytes.subarray(0, escape));
    if (escape >= 0) leaving.abort();
  };
  // Whoever reads the output has gone.
  output.once('error', () => leaving.abort());
  try {
    if (isTerminal) input.on('data', onInput);
    for (;;) {
      const socket = await Promise.race([serial.connect(), left]);
      if (socket === 'left') return;
      if (isTerminal) tell(`connected to the serial console of ${name}; press Ctrl+] to leave it`);
      else {
        input.on('data', onInput);
        input.once('end', () => leaveOnceSilent(socket.stream, options));
      }
      current = socket.stream;
      const began = performance.now();
      const end = await Promise.race([copied(socket, output), left]);
      current = undefined;
      if (end === 'left') return await socket.leave();
      const state = serial.assess(end, performance.now() - began);
      if (state === 'over') return tell(`the console of ${name} is closed${detailOf(end)}`);
      if (!isTerminal)
        throw new CliFailure(
          EXIT.unavailable,
          `the connection was lost${detailOf(end)}; bytes may be missing`,
        );
    }
  } finally {
    setRaw?.(false);
    input.off('data', onInput).pause();
  }
};

const copied = async ({ stream, ended }: OpenSocket, output: NodeJS.WritableStream): Promise<SocketEnd> => {
  stream.pipe(output, { end: false });
  // What came before the end is written before the end is told.
  await finished(stream, { writable: false }).catch(() => undefined);
  return ended;
};

const leaveOnceSilent = (stream: Duplex, { leaving, lingerMs }: TerminalOptions): void => {
  const silent = setTimeout(() => leaving.abort(), lingerMs);
  stream.on('data', () => silent.refresh()).once('close', () => clearTimeout(silent));
};
