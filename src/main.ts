#!/usr/bin/env -S node --max-semi-space-size=16
/**
 * The executable and composition root: `main.ts serve` is the service, everything else is `ledgerctl`. What it is
 * built of is in `src/composition/`; nothing below these two sees everything.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import type { Trust } from './app/audit/merkle/key-chain.ts';
import type { Failpoint } from './app/process-runner/types.ts';
import type { CliActions, CliIo, DemoRequest, StoreToCheck, TokenRequest } from './cli/connection.ts';
import type { Config } from './config.ts';

const readLine = async (): Promise<string> => {
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
};

const io: CliIo = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  stdin: () => readText(process.stdin),
  line: readLine,
  rawStreams: () => ({
    input: process.stdin,
    output: process.stdout,
    ...(process.stdin.isTTY ? { setRaw: (raw: boolean) => void process.stdin.setRawMode(raw) } : {}),
  }),
  colour: process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '',
};
const projectFolder = resolve(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '..' : '../..');

const packageVersion = (): string =>
  (JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as { version: string }).version;

/** Loaded when it is needed: most of the time of a short command would go there. */
const config = async (): Promise<Config> => {
  const [{ readConfig }, { meant }] = await Promise.all([
    import('./config.ts'),
    import('./http/suggestions.ts'),
  ]);
  return readConfig(process.env, meant);
};

/** Percent of what is alive by which the heap of a thread may grow before it is collected. V8 alone allows 300 under load. */
const HEAP_GROWTH = 60;

/** Runs until SIGTERM or SIGINT; a second signal ends it at once. */
const serve = async (): Promise<void> => {
  // The command line's bound is for this thread, which has taken it: V8 would put it in place of each other thread's own.
  setFlagsFromString('--max-semi-space-size=0');
  const settings = await config();
  // What it writes (event log, read models, hubs, backups) holds what callers sent: nobody else's to read.
  process.umask(0o077);
  const { createLogger } = await import('./composition/logger.ts');
  const logger = createLogger(settings.logLevel);
  const stop = new AbortController();
  const told = new Promise<string>((tell) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.once(signal, () => {
        process.once(signal, () => process.exit(130));
        tell(signal);
        stop.abort();
      });
  });
  const { startService, StartStopped } = await import('./composition/service.ts');
  const failpoint = failpointOf(process.env['LEDGER_TEST_FAILPOINT']);
  const service = await startService(settings, {
    logger,
    announce: (fields, message) => logger.child({}, { level: 'info' }).info(fields, message),
    nodeEnv: process.env['NODE_ENV'],
    stop: stop.signal,
    ...(failpoint === undefined ? {} : { failpoint }),
  }).catch((error: unknown) => {
    if (!(error instanceof StartStopped)) throw error;
    logger.info({ why: error.message }, 'stopped');
    return undefined;
  });
  if (service === undefined) return;
  // Only now: nearly all that a start loads stays alive, and would be collected in vain.
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
  if (process.stdout.isTTY) {
    const { greeting } = await import('./cli/greeting.ts');
    io.out(greeting(service.http, settings.catalog !== undefined));
  }
  const why = await Promise.race([told, service.broken.catch((error: unknown) => error)]);
  logger.info({ why: why instanceof Error ? why.message : why }, 'stopping');
  await service.stop();
  logger.info({}, 'stopped');
  if (why instanceof Error) process.exitCode = 1;
};

/** `name:n` kills this process the n-th time that the process runner passes the named point (crash tests). */
const failpointOf = (setting: string | undefined): Failpoint | undefined => {
  if (setting === undefined) return undefined;
  const [name, count = '1'] = setting.split(':');
  let left = Number(count);
  return (passed) => {
    if (passed !== name) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, 'SIGKILL');
  };
};

const mint = async (secretsDir: string, request: TokenRequest): Promise<string> => {
  const { mintToken } = await import('./adapters/identity/development-issuer.ts');
  const audience = process.env['LEDGER_TOKEN_AUDIENCE']?.trim() ?? '';
  return mintToken(secretsDir, { ...request, ...(audience === '' ? {} : { audience }), now: Date.now() });
};

/** Loaded here: a demo without Kafka need not load its client. */
const brokerTopics = async () => (await import('./adapters/kafka/topic-contents.ts')).topicContents;

const secretsDir = process.env['LEDGER_SECRETS_DIR'];

const actions = {
  serve,
  demo: async ({ catalog, ...request }: DemoRequest) => {
    const { runDemo } = await import('./cli/demo/demo.ts');
    return runDemo({
      ...request,
      command: [import.meta.filename, 'serve'],
      catalog: catalog === undefined ? join(projectFolder, 'fixtures/catalog') : resolve(catalog),
      mintToken: mint,
      followRecords: async (...how) => {
        const { followRecords } = await import('./adapters/kafka/record-reader.ts');
        return followRecords(...how);
      },
      topics: {
        withRecords: async (...which) => (await brokerTopics()).withRecords(...which),
        remove: async (...which) => (await brokerTopics()).remove(...which),
      },
      stream: process.stdout,
    });
  },
  mintToken: async (request: TokenRequest) => {
    const { plainSecretsDir } = await import('./composition/secrets-dir.ts');
    const folder = plainSecretsDir(process.env);
    if (folder !== undefined) {
      const token = await mint(folder, request).catch(() => undefined);
      if (token !== undefined) return token;
    }
    // Something is wrong: perhaps with a setting, which says so here.
    return mint((await config()).secretsDir, request);
  },
  checkStore: async (which: StoreToCheck) => {
    const { checkSqliteLog, checkSqliteStore } = await import('./adapters/event-store/sqlite/check-store.ts');
    const { events, findings } = await ('file' in which
      ? checkSqliteLog(which.file)
      : checkSqliteStore(which.dataDir));
    return { events, findings: findings.map((finding) => Object.values(finding).join(': ')) };
  },
  verifyStore: async (which: StoreToCheck, trust?: Trust) => {
    const { verifyStoppedStore } = await import('./composition/stopped-store.ts');
    return verifyStoppedStore(which, trust);
  },
  showEvent: async (...which: Parameters<CliActions['showEvent']>) => {
    const { lookIntoStore } = await import('./composition/stored-event.ts');
    return lookIntoStore(...which);
  },
  restoreStore: async (...request: Parameters<CliActions['restoreStore']>) => {
    // As of a service: nobody else's to read.
    process.umask(0o077);
    const { restoreStore } = await import('./composition/restore.ts');
    return restoreStore(...request);
  },
  ...(secretsDir === undefined || secretsDir === '' ? {} : { secretsDir }),
  defaultDataDir: process.env['LEDGER_DATA_DIR'] ?? './data',
  ...(process.env['LEDGER_HTTP_ADDRESS'] === undefined
    ? {}
    : { httpAddress: process.env['LEDGER_HTTP_ADDRESS'] }),
  tls: (process.env['LEDGER_TLS_CERT_FILE'] ?? '') !== '',
  eventStore: process.env['LEDGER_EVENT_STORE'] ?? 'sqlite',
  version: packageVersion(),
};

/** Milliseconds that output still gets to be written once a command is over. */
const LINGER_MS = 5_000;

const ignoreClosedPipe = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
};
process.stdout.on('error', ignoreClosedPipe);

const argv = process.argv.slice(2);
const { createCli, runCli } = await import('./cli/ledgerctl.ts');
process.exitCode = await runCli(await createCli(actions, io, argv), argv, io);
// Whatever is still open by then, a lost connection for example, must not keep a command that is over from ending.
setTimeout(() => process.exit(), LINGER_MS).unref();
