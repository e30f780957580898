import { parseArgs } from 'node:util';
import { kafkaInstallation } from './installation.ts';
import { startRealKafka } from './server.ts';

/**
 * `node ops/real/kafka/main.ts`: a real Apache Kafka on loopback until SIGINT or SIGTERM. Prints one JSON line
 * `{brokers, secureBrokers}` when it is ready. `--user name=password` opens a second listener with passwords.
 */
const USAGE = `node ops/real/kafka/main.ts [--user name=password]
a real Apache Kafka on loopback until Ctrl-C; it is empty: \`ledgerctl kafka create-topics\` makes the topics
`;
const { values } = readArguments();
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const users = Object.fromEntries(
  values.user.map((text) => [text.split('=')[0] ?? '', text.slice(text.indexOf('=') + 1)]),
);
const kafka = await start();
// Signals alone do not run what is to be done at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void kafka.close().finally(() => process.exit(0));
  });
}
const { brokers, secureBrokers } = kafka;
process.stdout.write(`${JSON.stringify({ brokers, secureBrokers })}\n`);
setInterval(() => undefined, 60_000);

async function start() {
  try {
    return await startRealKafka({
      installation: kafkaInstallation((line) => process.stderr.write(`${line}\n`)),
      ...(values.user.length === 0 ? {} : { users }),
    });
  } catch (error) {
    process.stderr.write(`no Kafka here: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        user: { type: 'string', multiple: true, default: [] },
      },
    });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}
