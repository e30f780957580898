import { spawn, type ChildProcess } from 'node:child_process';
import {
  createWriteStream,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../free-ports.ts';
import type { RulebookEnvironment } from './environment.ts';

const RULEBOOK = join(import.meta.dirname, '../../rulebook/cluster-fulfillment.yml');
const INVENTORY = join(import.meta.dirname, '../../rulebook/inventory.yml');
const PLAYBOOKS = join(import.meta.dirname, 'playbooks');

export type RealRulebook = {
  /** `http(s)://127.0.0.1:<port>`. */
  readonly url: string;
  /** What the listener and its playbooks have printed. */
  output(): string;
  /** SIGKILL of the listener: what it has queued is lost. `restart` brings it back on the same port. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
};

export type RealRulebookOptions = {
  readonly environment: RulebookEnvironment;
  readonly token: string;
  readonly hmacSecret: string;
  /** Paths of the playbooks. Default: those beside this file, which leave what they are given in GIVEN_FOLDER. */
  readonly playbooks?: { readonly create: string; readonly delete: string };
  /** Environment of the playbooks, for example GIVEN_FOLDER or K8S_AUTH_KUBECONFIG. */
  readonly env?: Readonly<Record<string, string>>;
  readonly tls?: { readonly cert: string; readonly key: string };
};

const READY_MS = 60_000;
const POLL_MS = 50;

/**
 * The real ansible-rulebook on loopback with the rulebook that we ship.
 *
 * @throws Error when it ends before it listens, with the end of what it said.
 */
export const startRealRulebook = async (options: RealRulebookOptions): Promise<RealRulebook> => {
  const { environment, token, tls } = options;
  const folder = mkdtempSync(join(tmpdir(), 'ledger-rulebook-'));
  const logFile = join(folder, 'log');
  const [port = 0] = await freePorts(1);
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  const files = filesOf(folder, port, options);
  let running: ChildProcess | undefined;
  const endNow = (): void => {
    // Its whole group: the rules engine and the starters of playbooks are processes of their own.
    if (running?.pid !== undefined) signal(-running.pid);
  };
  const endAll = (): void => {
    endNow();
    for (const pid of playbooksOf(folder)) signal(pid);
  };
  process.once('exit', endAll);
  const output = (): string => readFileSync(logFile, 'utf8');
  writeFileSync(logFile, '');

  const start = async (): Promise<void> => {
    await refuseTaken(port);
    const log = createWriteStream(logFile, { flags: 'a' });
    const child = spawn(
      join(environment.bin, 'ansible-rulebook'),
      ['-r', files.rulebook, '-i', INVENTORY, '--vars', files.vars],
      {
        cwd: folder,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...process.env,
          ...options.env,
          JAVA_HOME: environment.javaHome,
          PATH: `${environment.bin}:${process.env['PATH'] ?? ''}`,
          ANSIBLE_LOCAL_TEMP: folder,
          TMPDIR: folder,
        },
      },
    );
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    let ended = false;
    child.once('exit', () => {
      ended = true;
      if (running === child) running = undefined;
    });
    running = child;
    const end = performance.now() + READY_MS;
    // Our token is taken by this listener and by no other that might be on the port; what it misses is the signature.
    while ((await statusOf(url, token, tls?.cert)) !== 400) {
      if (ended || performance.now() > end) {
        endNow();
        throw new Error(`ansible-rulebook did not start:\n${output().slice(-2_000)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };

  const kill = async (): Promise<void> => {
    const child = running;
    if (child === undefined) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    endNow();
    await ended;
  };

  await start();
  return {
    url,
    output,
    kill,
    restart: start,
    close: async () => {
      process.removeListener('exit', endAll);
      await kill();
      endAll();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const filesOf = (
  folder: string,
  port: number,
  { token, hmacSecret, tls, playbooks }: RealRulebookOptions,
): { readonly rulebook: string; readonly vars: string } => {
  const secret = { mode: 0o600 } as const;
  const vars = join(folder, 'vars.yml');
  const settings = {
    listen_host: '127.0.0.1',
    listen_port: port,
    webhook_token: token,
    webhook_hmac_secret: hmacSecret,
    create_playbook: playbooks?.create ?? join(PLAYBOOKS, 'create-hosted-cluster.yml'),
    delete_playbook: playbooks?.delete ?? join(PLAYBOOKS, 'delete-hosted-cluster.yml'),
  };
  // JSON is YAML.
  writeFileSync(vars, JSON.stringify(settings), secret);
  if (tls === undefined) return { rulebook: RULEBOOK, vars };
  writeFileSync(join(folder, 'cert.pem'), tls.cert);
  writeFileSync(join(folder, 'key.pem'), tls.key, secret);
  const rulebook = join(folder, 'rulebook.yml');
  // As the rulebook's own comment says.
  const text = readFileSync(RULEBOOK, 'utf8').replace(
    /^( +)hmac_secret: .*$/m,
    `$&\n$1certfile: ${join(folder, 'cert.pem')}\n$1keyfile: ${join(folder, 'key.pem')}`,
  );
  writeFileSync(rulebook, text);
  return { rulebook, vars };
};

const signal = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
};

/** Each playbook is a session of its own, which outlives the listener; it is known by its environment. */
const playbooksOf = (folder: string): readonly number[] => {
  const mark = `ANSIBLE_LOCAL_TEMP=${folder}\0`;
  const ids = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return ids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
    } catch {
      // It has ended meanwhile, or is somebody else's.
      return false;
    }
  });
};

/** What is on the port already would answer for the listener. */
const refuseTaken = async (port: number): Promise<void> => {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  await new Promise((resolve) => server.close(resolve));
};

const statusOf = (url: string, token: string, ca: string | undefined): Promise<number | undefined> =>
  new Promise((resolve) => {
    const options = { headers: { Authorization: `Bearer ${token}` }, timeout: 2_000, agent: false };
    const request = url.startsWith('https:')
      ? getSecure(url, { ...options, ...(ca === undefined ? {} : { ca }) })
      : getPlain(url, options);
    request.once('response', (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(undefined));
  });
