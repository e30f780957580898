import { parseArgs } from 'node:util';
import { kafkaInstallation } from './installation.ts';
import { startRealKafka } from './server.ts';

/** `node ops/real/kafka/main.ts`: a real Apache Kafka on loopback until SIGINT or SIGTERM. */
const USAGE = `node ops/real/kafka/main.ts [--port n] [--user name=password]...

A real Apache Kafka (one broker, KRaft) on loopback until Ctrl-C. The first start installs it with Maven (120 MB);
JDK 17 is needed. Each start is a new, empty one: \`ledgerctl kafka create-topics\` makes the topics, and a service that
published to an earlier one fills them from the beginning of its log. What it held is removed at the end. On another
port than before it is found by nobody until the service is started with the new LEDGER_KAFKA_BROKERS. Ctrl-C or
SIGTERM ends it; after SIGKILL its Java process goes on: pgrep -f kafka.Kafka.

  --port n              port of the brokers (default: any that is free)
  --user name=password  a second listener with passwords (SCRAM-SHA-512), which may be given several times
  -h, --help

Prints one JSON line when it is ready:
  {"brokers":["127.0.0.1:9092"],"secureBrokers":[]}

Exit status: 0 after Ctrl-C, 1 when Kafka cannot be started or ends by itself, 2 for wrong usage.
`;
const { help, users, port } = readArguments();
if (help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const kafka = await start();
// Signals alone do not run what is to be done at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void kafka.close().finally(() => process.exit(0));
  });
}
const { brokers, secureBrokers } = kafka;
process.stdout.write(`${JSON.stringify({ brokers, secureBrokers })}\n`);
const alive = setInterval(() => undefined, 60_000);
const how = await kafka.died;
clearInterval(alive);
process.stderr.write(`Kafka has ended by itself: ${how.trimEnd()}\n`);
await kafka.close();
process.exit(1);

async function start() {
  try {
    return await startRealKafka({
      installation: kafkaInstallation((line) => process.stderr.write(`${line}\n`)),
      ...(port === undefined ? {} : { port }),
      ...(users === undefined ? {} : { users }),
    });
  } catch (error) {
    process.stderr.write(`no Kafka here: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        port: { type: 'string' },
        user: { type: 'string', multiple: true, default: [] },
      },
    });
    return { help: values.help, users: usersOf(values.user), port: portOf(values.port) };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new Error(`--port ${text}: a port is a number from 1 to 65535`);
}

function usersOf(texts: readonly string[]): Readonly<Record<string, string>> | undefined {
  if (texts.length === 0) return undefined;
  const pairs = texts.map((text): [string, string] => {
    const at = text.indexOf('=');
    if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)];
    throw new Error('--user: give a name and a password, such as --user metering=secret');
  });
  return Object.fromEntries(pairs);
}
