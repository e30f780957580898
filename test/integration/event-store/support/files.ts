import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  openSqliteEventStore,
  type SqliteEventStore,
  type SqliteEventStoreOptions,
} from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';

/** What one test file makes: removed, closed and ended together, also after a failed test. */
export const resources = () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  const atEnd = (cleanup: () => Promise<unknown>): void => void cleanups.push(cleanup);
  return {
    atEnd,
    dataDir: async (): Promise<string> => {
      const dir = await mkdtemp(join(tmpdir(), 'event-log-'));
      atEnd(() => rm(dir, { recursive: true, force: true }));
      return dir;
    },
    openStore: async (
      dataDir: string,
      options: Omit<SqliteEventStoreOptions, 'dataDir'> = {},
    ): Promise<SqliteEventStore> => {
      const store = await openSqliteEventStore({ dataDir, ...options });
      atEnd(() => store.close());
      return store;
    },
    startAppender: (...args: Parameters<typeof startAppender>): Appender => {
      const appender = startAppender(...args);
      atEnd(async () => {
        appender.process.kill('SIGKILL');
        await appender.ended;
      });
      return appender;
    },
    /** Last made, first ended. */
    endAll: async (): Promise<void> => {
      for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    },
  };
};

export type Acknowledged = { readonly stream: string; readonly revision: number; readonly id: string };

export type Appender = {
  readonly process: ChildProcess;
  readonly acknowledged: Acknowledged[];
  /** Everything that the process printed besides acknowledgements, standard error included. */
  readonly said: string[];
  /** Resolves when `condition` holds; rejects when the process ended without. */
  readonly until: (condition: (appender: Appender) => boolean) => Promise<void>;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
};

const APPENDER = fileURLToPath(new URL('./appender.child.ts', import.meta.url));

/** `limitKb`: no file may grow beyond (the soft limit, which may be raised again). */
const startAppender = (
  dataDir: string,
  run: string,
  { clients = 1, appends = 1, limitKb }: { clients?: number; appends?: number; limitKb?: number } = {},
): Appender => {
  const command = [process.execPath, APPENDER, dataDir, run, String(clients), String(appends)];
  const shell = `ulimit -S -f ${limitKb ?? 'unlimited'} && exec "$@"`;
  const child = spawn('bash', ['-c', shell, 'bash', ...command], { stdio: ['pipe', 'pipe', 'pipe'] });
  const waiting = new Set<() => void>();
  const onLine = (line: string): void => {
    const [word, stream, revision, id] = line.split(' ');
    if (word === 'ack' && stream !== undefined && id !== undefined)
      appender.acknowledged.push({ stream, revision: Number(revision), id });
    else appender.said.push(line);
    for (const check of waiting) check();
  };
  createInterface({ input: child.stdout }).on('line', onLine);
  createInterface({ input: child.stderr }).on('line', onLine);
  // 'close' comes after the last output was read.
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  const appender: Appender = {
    process: child,
    acknowledged: [],
    said: [],
    ended,
    until: (condition) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (!condition(appender)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
        void ended.then((how) =>
          reject(new Error(`the appender ended (${how}): ${appender.said.join('\n')}`)),
        );
      }),
  };
  return appender;
};

export const hasSaid =
  (word: string) =>
  (appender: Appender): boolean =>
    appender.said.some((line) => line.startsWith(word));
