import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { freePorts } from '../free-ports.ts';
import type { KafkaInstallation } from './installation.ts';

export type RealKafka = {
  /** Without encryption and password: `127.0.0.1:<port>`. */
  readonly brokers: readonly string[];
  /** The listener with passwords (SASL), when credentials were given; encrypted when a certificate was given, too. */
  readonly secureBrokers: readonly string[];
  /** What the broker has printed. */
  output(): string;
  /** SIGKILL. `restart` brings it back on the same ports with what it had stored. */
  kill(): Promise<void>;
  /** SIGTERM: it ends in order, in less than a second. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  /** SIGSTOP and SIGCONT: it keeps its connections and answers nobody. */
  freeze(): void;
  thaw(): void;
  /** Resolves when the broker ends although nobody here has ended it: with what it said last. */
  readonly died: Promise<string>;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
};

export type RealKafkaOptions = {
  readonly installation: KafkaInstallation;
  /** Users of the second listener, SCRAM-SHA-512. */
  readonly users?: Readonly<Record<string, string>>;
  /** PEM of the second listener. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Of the first listener; default: any that is free. */
  readonly port?: number;
  /** More properties of the broker, or others than ours. */
  readonly properties?: Readonly<Record<string, string>>;
};

const READY_MS = 60_000;
const POLL_MS = 100;
/** Characters that are told of what the broker said last. */
const TOLD = 2_000;
/** Any sixteen bytes will do; a constant saves one start of Java. */
const CLUSTER_ID = 'MkU3OEVBNTcwNTJENDM2Qg';

/**
 * One broker with its own controller (KRaft) on loopback, topics made by nobody but on request.
 *
 * @throws Error when it ends before it answers, with the end of what it said.
 */
export const startRealKafka = async (options: RealKafkaOptions): Promise<RealKafka> => {
  if (options.port !== undefined) await assertFree(options.port);
  const folder = mkdtempSync(join(tmpdir(), 'ledger-kafka-'));
  const [plain = 0, secure = 0, controller = 0] = await freePorts(3);
  const ports = { plain: options.port ?? plain, secure, controller };
  const propertiesFile = join(folder, 'server.properties');
  writeFileSync(propertiesFile, propertiesOf(folder, ports, options), { mode: 0o600 });
  const logFile = join(folder, 'output.log');
  writeFileSync(logFile, '');
  const output = (): string => readFileSync(logFile, 'utf8');
  const { java, classPath } = options.installation;
  const jvm = [
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-Xshare:auto',
    `-Dlog4j2.configurationFile=${join(import.meta.dirname, 'log4j2.properties')}`,
    '-cp',
    classPath,
  ];
  format(java, [...jvm, 'kafka.tools.StorageTool'], propertiesFile, options.users ?? {});

  let running: ChildProcess | undefined;
  /** Its end is meant. */
  let ending: ChildProcess | undefined;
  const died = Promise.withResolvers<string>();
  const endNow = (): void => {
    running?.kill('SIGKILL');
  };
  process.once('exit', endNow);
  const brokers = [`127.0.0.1:${ports.plain}`];

  const start = async (): Promise<void> => {
    const log = createWriteStream(logFile, { flags: 'a' });
    const child = spawn(java, ['-Xmx512m', ...jvm, 'kafka.Kafka', propertiesFile], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    // Where nothing more can be written, a full disk say, it goes on without its words.
    log.once('error', () => [child.stdout, child.stderr].forEach((output) => output.resume()));
    child.once('exit', (code, signal) => {
      if (running !== child) return;
      running = undefined;
      if (ending !== child) died.resolve(`${signal ?? `status ${code}`}\n${output().slice(-TOLD)}`);
    });
    running = child;
    const end = performance.now() + READY_MS;
    while (!(await answers(brokers))) {
      if (running !== child || performance.now() > end) {
        endNow();
        throw new Error(`Apache Kafka did not start:\n${output().slice(-TOLD)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };

  const end = async (how: NodeJS.Signals): Promise<void> => {
    const child = running;
    if (child === undefined) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    ending = child;
    child.kill(how);
    await ended;
  };

  await start();
  return {
    brokers,
    secureBrokers: options.users === undefined ? [] : [`127.0.0.1:${ports.secure}`],
    output,
    died: died.promise,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    restart: start,
    freeze: () => running?.kill('SIGSTOP'),
    thaw: () => running?.kill('SIGCONT'),
    close: async () => {
      process.removeListener('exit', endNow);
      await end('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Another broker there would answer instead of ours. */
const assertFree = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', () => reject(new Error(`port ${port} cannot be had: is something running there?`)));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
  });

type Ports = { readonly plain: number; readonly secure: number; readonly controller: number };

const propertiesOf = (folder: string, ports: Ports, { users, tls, properties }: RealKafkaOptions): string => {
  const secure = tls === undefined ? 'SASL_PLAINTEXT' : 'SASL_SSL';
  const listeners = [
    `PLAINTEXT://127.0.0.1:${ports.plain}`,
    ...(users === undefined ? [] : [`SECURE://127.0.0.1:${ports.secure}`]),
  ];
  const settings: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@127.0.0.1:${ports.controller}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: [...listeners, `CONTROLLER://127.0.0.1:${ports.controller}`].join(','),
    'advertised.listeners': listeners.join(','),
    'listener.security.protocol.map': `PLAINTEXT:PLAINTEXT,SECURE:${secure},CONTROLLER:PLAINTEXT`,
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': join(folder, 'data'),
    'num.partitions': '3',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '1',
    'group.initial.rebalance.delay.ms': '0',
    'auto.create.topics.enable': 'false',
    // After SIGKILL a new broker registers only when the old session has ended: nine seconds by default.
    'broker.session.timeout.ms': '1000',
    'broker.heartbeat.interval.ms': '200',
    // Compaction is seen after two seconds instead of fifteen.
    'log.cleaner.backoff.ms': '500',
    'log.cleaner.threads': '1',
    'log.cleaner.dedupe.buffer.size': '8388608',
    'num.network.threads': '1',
    'num.io.threads': '2',
    ...(users === undefined
      ? {}
      : {
          'sasl.enabled.mechanisms': 'SCRAM-SHA-512',
          'listener.name.secure.scram-sha-512.sasl.jaas.config':
            'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        }),
    ...(tls === undefined
      ? {}
      : {
          'ssl.keystore.type': 'PEM',
          'ssl.keystore.certificate.chain': oneLine(tls.cert),
          'ssl.keystore.key': oneLine(tls.key),
        }),
    ...properties,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
};

/** A PEM text as one line of a properties file. */
const oneLine = (pem: string): string => pem.trim().replaceAll('\n', '\\n');

const format = (
  java: string,
  tool: readonly string[],
  propertiesFile: string,
  users: Readonly<Record<string, string>>,
): void => {
  const scram = Object.entries(users).flatMap(([name, password]) => [
    '--add-scram',
    `SCRAM-SHA-512=[name=${name},password=${password}]`,
  ]);
  const argv = ['-Xmx256m', ...tool, 'format', '-t', CLUSTER_ID, '-c', propertiesFile, '--ignore-formatted'];
  const done = spawnSync(java, [...argv, ...scram], { encoding: 'utf8', timeout: READY_MS });
  if (done.status !== 0)
    throw new Error(
      `the storage of Apache Kafka cannot be made: ${`${done.stdout}${done.stderr}`.slice(-1_000)}`,
    );
};

/** True when a broker answers and knows its controller. */
const answers = async (brokers: readonly string[]): Promise<boolean> => {
  const kafka = new Kafka({
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 2_000,
    retry: { retries: 0 },
  });
  const admin = kafka.admin();
  try {
    await admin.connect();
    const { controller, brokers: known } = await admin.describeCluster();
    return controller === 1 && known.length === 1;
  } catch {
    return false;
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
};
