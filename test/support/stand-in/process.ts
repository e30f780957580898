import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { bodyOf, standInServer, type StandInServer } from './server.ts';

/**
 * A stand-in as a process of its own: prints `{"url", "control"}`, takes commands as POSTs of `{"do": name, "with": [..]}`
 * on its control address and answers what the command returns.
 */
export type StandInProcess = {
  readonly url: string;
  command<T>(name: string, ...args: readonly unknown[]): Promise<T>;
  kill(): Promise<void>;
};

type Commands = { readonly [name: string]: (...args: readonly never[]) => unknown };

/** In the child: offers the commands and says where. */
export const serveStandIn = async (url: string, commands: Commands): Promise<StandInServer> => {
  const control = await standInServer(async (request, response) => {
    const body = JSON.parse(String(await bodyOf(request))) as { do: string; with: never[] };
    const command = Object.hasOwn(commands, body.do) ? commands[body.do] : undefined;
    if (command === undefined) {
      response.writeHead(404).end();
      return;
    }
    const result = await command(...body.with);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(result ?? null));
  });
  console.log(JSON.stringify({ url, control: control.url }));
  return control;
};

/** In the child: the options it was started with. */
export const standInOptions = <T>(): T => JSON.parse(process.argv[2] ?? '{}') as T;

/** Starts `main` (a file of this folder) with options; it ends with this process. */
export const startStandIn = async (main: string, options: object): Promise<StandInProcess> => {
  const child = spawn(process.execPath, [main, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const orphaned = (): void => void child.kill('SIGKILL');
  process.once('exit', orphaned);
  const { url, control } = await firstLine(child);
  return {
    url,
    command: async <T>(name: string, ...args: readonly unknown[]): Promise<T> => {
      const answer = await fetch(control, {
        method: 'POST',
        body: JSON.stringify({ do: name, with: args }),
      });
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      return (await answer.json()) as T;
    },
    kill: async () => {
      process.removeListener('exit', orphaned);
      child.kill('SIGKILL');
      await ended;
    },
  };
};

const firstLine = (child: ChildProcess): Promise<{ url: string; control: string }> =>
  new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the stand-in ended with ${code}`)));
    if (child.stdout === null) throw new Error('the stand-in has no output');
    createInterface(child.stdout).once('line', (line) =>
      resolve(JSON.parse(line) as { url: string; control: string }),
    );
  });
