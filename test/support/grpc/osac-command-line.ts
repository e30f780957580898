import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { goProgram, type GoProgram } from '../../../ops/real/go-program.ts';
import { osacImage } from './osac-wire.ts';

/** A call that a command made. */
export type Call = {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  /** As grpc-go names it: `OK`, `NotFound`. */
  readonly code: string;
  readonly message?: string;
};

/** What became of a command: what the real one prints, and what it called on its way. */
export type Outcome<Value = Readonly<Record<string, unknown>>> = {
  readonly exit: number;
  readonly error: string;
  readonly hint: string;
  readonly text: string;
  readonly calls: readonly Call[];
  readonly objects: readonly Value[];
  readonly rows: readonly (readonly string[])[];
};

export type WatchedEvent = { readonly id: string; readonly type: string } & Readonly<Record<string, unknown>>;

/** A command that goes on until it is told to: a watch, an open editor. */
export type Open = {
  /** Events so far. */
  readonly events: readonly WatchedEvent[];
  readonly ended: Promise<Outcome>;
  /** Interrupts the watch, or leaves the editor. */
  goOn(): Promise<Outcome>;
};

type Line = Partial<Outcome> & {
  readonly id: number;
  readonly watching?: boolean;
  readonly editing?: boolean;
  readonly event?: WatchedEvent;
};

/** OSAC's command line over grpc-go, see main.go beside this file. */
export const osacCommandLine = (say: (line: string) => void = () => undefined): GoProgram =>
  goProgram(
    {
      sources: join(import.meta.dirname, 'osac-command-line'),
      name: 'osac-command-line',
      program: 'player',
      takes: 'building a client of OSAC with grpc-go; this takes about half a minute, once per machine',
    },
    say,
  );

/** Commands against `address`, over TLS. */
export const startCommandLine = (program: string, address: string, authority: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-osac-'));
  const descriptors = join(folder, 'osac.binpb');
  writeFileSync(descriptors, osacImage());
  const child = spawn(program, ['-address', address, '-ca-file', authority, '-descriptors', descriptors], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const heard = new Map<number, (line: Line) => void>();
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as Line;
    heard.get(line.id)?.(line);
  });
  let count = 0;
  const write = (line: object): void => void child.stdin.write(`${JSON.stringify(line)}\n`);

  const begin = (token: string, argv: readonly string[]) => {
    const id = (count += 1);
    const events: WatchedEvent[] = [];
    const opened = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<Outcome>();
    heard.set(id, (line) => {
      if (line.event !== undefined) events.push(line.event);
      if (line.watching === true || line.editing === true) opened.resolve();
      if (line.exit === undefined) return;
      heard.delete(id);
      const nothing = { error: '', hint: '', text: '', calls: [], objects: [], rows: [] };
      ended.resolve({ ...nothing, ...line, exit: line.exit });
    });
    write({ id, argv, token });
    return { id, events, opened: opened.promise, ended: ended.promise };
  };

  return {
    run: (token: string, ...argv: readonly string[]): Promise<Outcome> => begin(token, argv).ended,
    /** Resolves when the watch has begun, or the editor shows the object. Throws when it ends before. */
    open: async (token: string, ...argv: readonly string[]): Promise<Open> => {
      const { id, events, opened, ended } = begin(token, argv);
      const early = ended.then(({ error, hint }) => {
        throw new Error(`${argv.join(' ')} ended: ${error}${hint}`);
      });
      await Promise.race([opened, early]);
      early.catch(() => undefined);
      return {
        events,
        ended,
        goOn: () => {
          write({ id: 0, continue: id });
          return ended;
        },
      };
    },
    close: async (): Promise<void> => {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGKILL');
      await closed;
      rmSync(folder, { recursive: true });
    },
  };
};

export type CommandLine = ReturnType<typeof startCommandLine>;
