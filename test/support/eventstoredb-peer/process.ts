import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { FaultRule } from './faults.ts';

/** What its control endpoint lets a test do (see eventstoredb-peer/control.ts). */
export type PeerControl = {
  readonly connectionString: string;
  /** Every call that fits misbehaves from now on. */
  fault(rule: FaultRule): Promise<void>;
  /** Lifts every fault. */
  heal(): Promise<void>;
  /** Refuses connections, and cuts those there are. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** What is stored, whatever the service says. */
  events(stream?: string): Promise<readonly StoredEvent[]>;
};

export type StoredEvent = {
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly id: string;
};

export type PeerProcess = PeerControl & { stop(): Promise<void> };

/** The EventStoreDB protocol peer as a process of its own, so that it outlives the service's crashes. */
export const startPeerProcess = async (): Promise<PeerProcess> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    void ended.then(() => reject(new Error('the peer did not start')));
  });
  const { connectionString, control } = JSON.parse(line) as { connectionString: string; control: string };
  const command = async (method: string, path: string, body?: object): Promise<unknown> => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(`${control}${path}`, init);
    if (!response.ok) throw new Error(`the peer answered ${response.status} to ${method} ${path}`);
    return response.json();
  };
  const tell = async (...what: Parameters<typeof command>): Promise<void> => {
    await command(...what);
  };
  return {
    connectionString,
    fault: (rule) => tell('POST', '/faults', rule),
    heal: () => tell('DELETE', '/faults'),
    down: () => tell('POST', '/down'),
    up: () => tell('POST', '/restart'),
    events: async (stream) =>
      (await command(
        'GET',
        stream === undefined ? '/events' : `/events?stream=${encodeURIComponent(stream)}`,
      )) as StoredEvent[],
    stop: () => {
      child.kill('SIGKILL');
      return ended;
    },
  };
};
