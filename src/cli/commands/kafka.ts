import { InvalidArgumentError, type Command } from 'commander';
import type { ApiClient } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { duration, table } from '../output.ts';

/** `GET /api/ledger/v1/kafka`. */
type Status = {
  readonly configured: boolean;
  readonly publishing: boolean;
  /** Of an instance that stands by: the one that publishes. */
  readonly owner?: string;
  readonly topics: readonly TopicLine[];
  readonly problems: readonly { readonly topic: string; readonly message: string }[];
};
type TopicLine = {
  readonly topic: string;
  readonly state: string;
  readonly position?: string;
  readonly waiting_events?: number;
  readonly lag_seconds?: number;
  readonly sent_records?: number;
  readonly last_error?: { readonly reason: string; readonly message: string; readonly at: string };
  readonly parked?: readonly { readonly stream: string; readonly revision: number; readonly error: string }[];
};
type Plan = {
  readonly topic: string;
  readonly cleanup: string;
  readonly partitions: number;
  readonly retention_ms: number;
  readonly exists: boolean;
  readonly found?: { readonly partitions: number; readonly replicas: number };
  readonly problems: readonly { readonly message: string }[];
};
type Progress = { readonly events: number; readonly records: number; readonly position?: string };
type ReplayLine =
  | { readonly progress: Progress }
  | {
      readonly report: Progress & {
        readonly topic: string;
        readonly skipped_events: number;
        readonly skipped: readonly {
          readonly stream: string;
          readonly revision: number;
          readonly error: string;
        }[];
      };
    }
  | { readonly error: string };

const KAFKA = '/api/ledger/v1/kafka';

/** `ledgerctl kafka`: topics on the brokers, how far each is, parked streams, replays. */
export const addKafkaCommands = (program: Command, { client, io }: Connection): void => {
  const kafka = program.command('kafka').description('the Kafka publisher: topics, progress, replays');
  kafka
    .command('plan')
    .description(
      'every topic as it should be, and what is missing or wrong on the brokers; exit 1 when anything is',
    )
    .addHelpText('after', examples('kafka plan'))
    .action(async () => {
      const { items } = await (await client()).get<{ items: Plan[] }>(`${KAFKA}/topics`);
      const header = ['topic', 'cleanup', 'partitions', 'retention', 'on the brokers'];
      io.out(`${table(header, items.map(planRow))}\n`);
      const wrong = items.flatMap(({ topic, problems }) =>
        problems.map(({ message }) => `${topic} ${message}`),
      );
      for (const line of wrong) io.err(`${line}\n`);
      if (wrong.length > 0) process.exitCode = 1;
    });
  kafka
    .command('create-topics')
    .description('make the topics that are missing; what exists is left as it is')
    .addHelpText('after', examples('kafka create-topics'))
    .action(async () => {
      const { created } = await (await client()).send<{ created: string[] }>('POST', `${KAFKA}/topics`);
      for (const topic of created) io.out(`${topic} created\n`);
      if (created.length === 0) io.err('no topic was missing\n');
    });
  kafka
    .command('status')
    .description(
      'how far each topic is; exit 1 when something is wrong, 3 when the instance that answers does not publish',
    )
    .option('--json', 'everything, as JSON', false)
    .addHelpText('after', examples('kafka status'))
    .action(async ({ json }: { json: boolean }) => {
      const status = await (await client()).get<Status>(KAFKA);
      if (status.configured && !status.publishing) process.exitCode = STANDBY;
      if (json) return io.out(`${JSON.stringify(status, null, 2)}\n`);
      showStatus(status, io);
    });
  kafka
    .command('retry <topic> <stream>')
    .description('publish again what a topic left out of a parked stream')
    .addHelpText(
      'after',
      examples('kafka retry osac.state.cluster.v1 cluster-0193a4d2-7f10-7c3a-9d2e-1f2a3b4c5d6e'),
    )
    .action(async (topic: string, stream: string) => {
      const path = `${KAFKA}/topics/${encodeURIComponent(topic)}/parked/${encodeURIComponent(stream)}/retry`;
      const answer = await (await client()).send<Retried>('POST', path);
      if (answer.published) return io.out(`${stream}: ${answer.records ?? 0} records published\n`);
      io.out(`${stream} is parked still, at revision ${answer.revision ?? 0}: ${answer.error ?? ''}\n`);
      process.exitCode = 1;
    });
  kafka
    .command('replay')
    .description('publish a part of the log again, to a topic of its own: <topic>.replay.<name>')
    .requiredOption('--topic <topic>', 'topic whose records are published again')
    .requiredOption('--name <name>', 'lower-case letters, digits and hyphens', replayName)
    .option('--from <position>', 'begin behind this position (default: the beginning of the log)')
    .option('--to <position>', 'end with this position (default: the end of the log)')
    .addHelpText(
      'after',
      examples(
        'kafka replay --topic osac.state.cluster.v1 --name audit-2026',
        'kafka replay --topic osac.events.clusters.v1 --name again --from <position>',
      ),
    )
    .action(async ({ topic, ...request }: { topic: string; name: string; from?: string; to?: string }) => {
      await replay(await client(), topic, request, io);
    });
};

type Retried = {
  readonly published: boolean;
  readonly records?: number;
  readonly revision?: number;
  readonly error?: string;
};

const replayName = (text: string): string => {
  if (/^[a-z0-9][a-z0-9-]{0,49}$/.test(text)) return text;
  throw new InvalidArgumentError(`"${text}" is no name: up to 50 lower-case letters, digits and hyphens`);
};

const planRow = ({ topic, cleanup, partitions, retention_ms: ms, exists, found, problems }: Plan) => [
  topic,
  cleanup,
  partitions,
  ms < 0 ? 'for ever' : `${Math.round(ms / DAY_MS)} d`,
  !exists
    ? 'missing'
    : problems.length > 0
      ? 'wrong'
      : `${found?.partitions ?? 0} partitions, ${found?.replicas ?? 0} replicas`,
];

const DAY_MS = 86_400_000;

const showStatus = (status: Status, io: Connection['io']): void => {
  if (!status.configured) return io.err('no brokers are set: LEDGER_KAFKA_BROKERS is empty\n');
  if (!status.publishing) return io.err(standbyOf(status));
  const header = ['topic', 'state', 'sent', 'waiting', 'lag', 'parked', 'last error'];
  const rows = status.topics.map((topic) => [
    topic.topic,
    topic.state,
    topic.sent_records,
    topic.waiting_events,
    topic.lag_seconds === undefined || topic.lag_seconds === 0 ? undefined : duration(topic.lag_seconds),
    topic.parked?.length === 0 ? undefined : topic.parked?.length,
    topic.state === 'live' ? undefined : topic.last_error?.message,
  ]);
  io.out(`${table(header, rows)}\n`);
  for (const { topic, parked = [] } of status.topics)
    for (const { stream, revision, error } of parked)
      io.err(`${topic}: ${stream} is parked at revision ${revision}: ${error}\n`);
  for (const { topic, message } of status.problems) io.err(`${topic} ${message}\n`);
  const isWell = status.topics.every(({ state, parked = [] }) => WELL.has(state) && parked.length === 0);
  if (!isWell || status.problems.length > 0) process.exitCode = 1;
};

/** Exit status of an instance that does not know: neither well nor wrong. */
const STANDBY = 3;

const standbyOf = ({ owner }: Status): string =>
  owner === undefined
    ? 'this instance does not publish, and nobody else holds the lease: start one with the role publisher\n'
    : `this instance stands by and does not know how far the topics are: ask ${owner}, which publishes\n`;

const WELL: ReadonlySet<string> = new Set(['live', 'catching-up', 'standby']);

const replay = async (
  client: ApiClient,
  topic: string,
  request: { readonly name: string; readonly from?: string; readonly to?: string },
  io: Connection['io'],
): Promise<void> => {
  const path = `${KAFKA}/topics/${encodeURIComponent(topic)}/replays`;
  let last: Progress | undefined;
  for await (const line of client.lines<ReplayLine>('POST', path, undefined, request)) {
    if ('error' in line) {
      const goOn = last?.position === undefined ? '' : `; it goes on with --from ${last.position}`;
      throw new Error(`${line.error}${goOn}`);
    }
    if ('progress' in line) {
      last = line.progress;
      io.err(
        `${last.events} events, ${last.records} records${last.position === undefined ? '' : `, at ${last.position}`}\n`,
      );
      continue;
    }
    const { report } = line;
    io.out(`${report.topic}: ${report.records} records of ${report.events} events\n`);
    for (const { stream, revision, error } of report.skipped)
      io.err(`left out: ${stream} at revision ${revision}: ${error}\n`);
    if (report.skipped_events > 0) process.exitCode = 1;
  }
};
