import { InvalidArgumentError, Option, type Command } from 'commander';
import type { KafkaStatus, KafkaTopicPlan } from '../../http/ledger/kafka-operations.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { parseDuration } from '../output.ts';
import { BROKERS_SECONDS, showPlan, topicsPath, whileAsked } from './kafka-plan.ts';
import { replayTopic, type ReplayOptions } from './kafka-replay.ts';
import { retryParked, type RetryOptions } from './kafka-retry.ts';
import { COLUMNS, KAFKA, showStatus } from './kafka-status.ts';

type Form = { readonly json: boolean; readonly output: 'table' | 'json' };

/** `ledgerctl kafka`: topics on the brokers, how far each is, parked streams, replays. */
export const addKafkaCommands = (program: Command, { client, io }: Connection): void => {
  const kafka = program.command('kafka').description('the Kafka publisher: topics, progress, replays');
  waiting(inForm(kafka.command('plan')))
    .description('every topic as it should be, and what is missing or wrong on the brokers')
    .addHelpText('after', exits('1  a topic is missing or wrong, or no brokers are set', AWAY))
    .addHelpText('after', examples('kafka plan', 'kafka plan -o json', 'kafka plan --wait 60s'))
    .action(async ({ wait, ...form }: Form & Waiting) => {
      // The service says how its brokers are: to ask again at once tells nothing new.
      const service = await client({ attempts: 1 });
      const asked = service.get<{ items: KafkaTopicPlan[] }>(topicsPath(wait));
      const { items } = await whileAsked(asked, wait, io);
      process.exitCode = showPlan(items, isJson(form), io);
    });
  waiting(kafka.command('create-topics'))
    .description('make the topics that are missing; existing topics stay as they are')
    .addHelpText('after', exits('1  the brokers refuse it, or no brokers are set', AWAY))
    .addHelpText('after', examples('kafka create-topics'))
    .action(async ({ wait }: Waiting) => {
      const asked = (await client()).send<{ created: string[] }>('POST', topicsPath(wait));
      const { created } = await whileAsked(asked, wait, io);
      for (const topic of created) io.out(`${topic} created\n`);
      if (created.length === 0) io.err('no topic was missing\n');
    });
  inForm(kafka.command('status'))
    .description('how far each topic is, since when records wait, what is parked and why')
    .addHelpText('after', COLUMNS)
    .addHelpText(
      'after',
      exits(
        '1  the brokers are in trouble, a topic is held up, wrong or missing, a stream is parked, or no brokers are set',
        '4  the instance that answers does not publish, or no service answers',
      ),
    )
    .addHelpText('after', examples('kafka status', 'kafka status -o json'))
    .action(async (form: Form) => {
      process.exitCode = showStatus(await (await client()).get<KafkaStatus>(KAFKA), isJson(form), io);
    });
  kafka
    .command('retry [topic] [stream]')
    .description('publish the parked events of one stream, of one topic, or of all')
    .option('--all', 'every parked stream of every topic', false)
    .addHelpText(
      'after',
      exits('1  a stream is parked again, or no brokers are set', '3  nothing of that name is parked', AWAY),
    )
    .addHelpText(
      'after',
      examples(
        'kafka retry osac.state.cluster.v1 cluster-0193a4d2-7f10-7c3a-9d2e-1f2a3b4c5d6e',
        'kafka retry osac.state.cluster.v1',
        'kafka retry --all',
      ),
    )
    .action(async (topic: string | undefined, stream: string | undefined, { all }: { all: boolean }) => {
      if (all === (topic !== undefined))
        throw new InvalidArgumentError('name a topic, and one of its streams if you like, or give --all');
      const options: RetryOptions = { topic, stream };
      process.exitCode = await retryParked(await client(), options, io);
    });
  kafka
    .command('replay')
    .description('publish a part of the log again, to a topic of its own: <topic>.replay.<name>')
    .requiredOption('--topic <topic>', 'topic whose records are published again')
    .requiredOption('--name <name>', 'lower-case letters, digits and hyphens', replayName)
    .option(
      '--from <place>',
      'begin behind this position, or at this time (default: the beginning of the log)',
      logPlace,
    )
    .option(
      '--to <place>',
      'end with this position, or before this time (default: the end of the log)',
      logPlace,
    )
    .addHelpText('after', PLACES)
    .addHelpText('after', REPLAYED)
    .addHelpText(
      'after',
      exits(
        '1  refused, or events could not become records, or one is not what was recorded: they are named',
        '3  no such topic, the target holds records already, or another replay runs',
        AWAY,
      ),
    )
    .addHelpText(
      'after',
      examples(
        'kafka replay --topic osac.state.cluster.v1 --name audit-2026',
        'kafka replay --topic osac.events.clusters.v1 --name october --from 2026-10-01T00:00:00Z --to 2026-11-01T00:00:00Z',
        'kafka replay --topic osac.events.clusters.v1 --name again --from 0000000000004711',
      ),
    )
    .action(async (options: ReplayOptions) => {
      process.exitCode = await replayTopic(await client(), options, io);
    });
};

const PLACES = `
A place of the log is
  0000000000004711               a position, as records have it (osacposition)
  <store id>.0000000000004711    one as X-Ledger-Position and \`ledgerctl events\` show it
  2026-10-01T00:00:00Z           a time (RFC 3339): --from it holds what was recorded then, --to it does not
`;

const REPLAYED = `
It tells how many records were sent, and of how many events: those of this part of the log that belong to the topic, by
their kind. Each becomes one record, several, or none.
`;

const AWAY = '4  the service or its brokers do not answer';

/** What the statuses mean for a command; 0 and 2 are the same for all. */
const exits = (...lines: readonly string[]): string =>
  `\nExit status:\n${['0  done', ...lines].map((line) => `  ${line}\n`).join('')}`;

const inForm = (command: Command): Command =>
  command
    .addOption(
      new Option('-o, --output <form>', 'how it is printed').choices(['table', 'json']).default('table'),
    )
    .option('--json', 'everything, as JSON: the same as -o json', false);

type Waiting = { readonly wait: number };

/** Of commands that are answered by the brokers. */
const waiting = (command: Command): Command =>
  command.addOption(
    new Option('--wait <time>', 'how long the brokers may take to answer, at most 120s')
      .argParser(waitingTime)
      .default(BROKERS_SECONDS, `${BROKERS_SECONDS}s`),
  );

const waitingTime = (text: string): number => {
  const seconds = parseDuration(text);
  if (seconds >= 1 && seconds <= MOST_SECONDS) return seconds;
  throw new InvalidArgumentError(`"${text}": from 1s to ${MOST_SECONDS}s`);
};

const MOST_SECONDS = 120;

const isJson = ({ json, output }: Form): boolean => json || output === 'json';

const replayName = (text: string): string => {
  if (/^[a-z0-9][a-z0-9-]{0,49}$/.test(text)) return text;
  throw new InvalidArgumentError(
    `"${text}" is not a name: it takes up to 50 lower-case letters, digits and hyphens`,
  );
};

/** Which days and hours there are the service knows. */
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;
const POSITION = /^([^\s:]+\.)?\d{1,40}$/;

const logPlace = (text: string): string => {
  if (TIME.test(text) || POSITION.test(text)) return text;
  throw new InvalidArgumentError(
    `"${text}" is not a place of the log: give a position as records have it (0000000000004711), one with its store (<store id>.0000000000004711), or a time such as 2026-10-01T00:00:00Z`,
  );
};
