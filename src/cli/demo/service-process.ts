import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * How node runs the service, as `npm start` and the executable do: small young generations keep a collection, which
 * holds the HTTP thread, below 20 ms, and save some 60 MB (ops/bench/README.md).
 */
export const SERVICE_NODE_OPTIONS: readonly string[] = ['--max-semi-space-size=16'];

/** The service as a child process of its own, as an operator runs it: the demo and the end-to-end tests use it. */
export type ServiceProcess = {
  readonly http: string;
  readonly metrics: string;
  /** `host:port` of the gRPC listener. Absent: there is none. */
  readonly grpc?: string;
  readonly pid: number;
  readonly log: readonly string[];
  /** Sends a signal and resolves with the exit code or signal name once the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
  readonly ended: Promise<number | NodeJS.Signals>;
};

export type ServiceOptions = {
  /** The executable file of the service and its arguments, for example `['src/main.ts', 'serve']`. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Milliseconds to wait for the line that names the addresses. */
  readonly startMs?: number;
  readonly nodeOptions?: readonly string[];
  /** What is started in place of node and replaces itself by it, for example a shell that sets limits first. */
  readonly launcher?: readonly string[];
};

/** Starts the service and waits for its `listening` line. Throws with the end of the log when it does not come. */
export const startService = async (options: ServiceOptions): Promise<ServiceProcess> => {
  const [file = '', ...rest] = [
    ...(options.launcher ?? []),
    process.execPath,
    ...SERVICE_NODE_OPTIONS,
    ...(options.nodeOptions ?? []),
    ...options.command,
  ];
  const child = spawn(file, rest, {
    env: { ...withoutLedgerSettings(process.env), ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: string[] = [];
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 1));
  });
  const listening = await firstListening(child, log, ended, options.startMs ?? 30_000);
  return {
    ...listening,
    pid: child.pid ?? 0,
    log,
    ended,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal);
      return ended;
    },
  };
};

/** The parent's own settings must not leak into a child that is configured explicitly. */
const withoutLedgerSettings = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('LEDGER_')));

const firstListening = (
  child: ChildProcess,
  log: string[],
  ended: Promise<number | NodeJS.Signals>,
  startMs: number,
): Promise<Addresses> =>
  new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(`the service did not start: ${why}\n${log.slice(-20).join('\n')}`));
    };
    const timer = setTimeout(() => fail(`no listening line within ${startMs} ms`), startMs);
    void ended.then((code) => fail(`it ended with ${code}`));
    const read = (line: string): void => {
      log.push(line);
      if (log.length > MOST_LOG_LINES) log.splice(0, log.length - MOST_LOG_LINES);
      const addresses = listeningLine(line);
      if (addresses === undefined) return;
      clearTimeout(timer);
      resolve(addresses);
    };
    for (const stream of [child.stdout, child.stderr])
      if (stream !== null) createInterface({ input: stream }).on('line', read);
  });

const MOST_LOG_LINES = 20_000;

type Addresses = Pick<ServiceProcess, 'http' | 'metrics' | 'grpc'>;

const listeningLine = (line: string): Addresses | undefined => {
  if (!line.includes('"listening"')) return undefined;
  const { msg, http, metrics, grpc } = JSON.parse(line) as Partial<Addresses> & { readonly msg?: string };
  if (msg !== 'listening' || http === undefined || metrics === undefined) return undefined;
  return { http, metrics, ...(grpc === undefined ? {} : { grpc }) };
};
