import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from './types.ts';

/** A stand-in that runs as a process of its own: benchmarks measure the service, not the hub it talks to. */
export type KubeProcess = {
  readonly url: string;
  readonly ca: string;
  /** The administrator's. */
  readonly token: string;
  readonly kubeconfig: string;
  readonly pid: number;
  /** One of the commands of control.ts. */
  command<T = JsonObject>(name: string, body?: JsonObject): Promise<T>;
  /** SIGKILL: nothing of it is left. */
  kill(): Promise<void>;
};

const MAINS = {
  /** The API server alone; options `--port`, `--namespace`, `--audit`. */
  server: new URL('./main.ts', import.meta.url),
  /** With operator, AAP, Ansible, HyperShift and hosts; options `--namespace`, `--pace`, `--every`, `--hosts`, … */
  hub: new URL('../kube-controllers/main.ts', import.meta.url),
} as const;

/** Starts one and waits until it serves; it ends with this process at the latest. */
export const startKubeProcess = async (
  what: keyof typeof MAINS,
  options: readonly string[] = [],
): Promise<KubeProcess> => {
  const child = spawn(process.execPath, [fileURLToPath(MAINS[what]), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const orphaned = (): void => void child.kill('SIGKILL');
  process.once('exit', orphaned);
  const { control, ...access } = await firstLine(child);
  return {
    ...access,
    pid: child.pid ?? 0,
    command: async <T>(name: string, body: JsonObject = {}): Promise<T> => {
      const answer = await fetch(`${control}/${name}`, { method: 'POST', body: JSON.stringify(body) });
      if (!answer.ok) throw new Error(`${name}: ${answer.status} ${await answer.text()}`);
      return (await answer.json()) as T;
    },
    kill: async () => {
      process.removeListener('exit', orphaned);
      child.kill('SIGKILL');
      await ended;
    },
  };
};

type Line = Pick<KubeProcess, 'url' | 'ca' | 'token' | 'kubeconfig'> & { readonly control: string };

const firstLine = (child: ChildProcess): Promise<Line> =>
  new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the stand-in ended with ${code}`)));
    if (child.stdout === null) throw new Error('the stand-in has no output');
    createInterface(child.stdout).once('line', (line) => resolve(JSON.parse(line) as Line));
  });
