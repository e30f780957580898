import { setTimeout as pause } from 'node:timers/promises';
import { InvalidArgumentError, type Command } from 'commander';
import type { LogSurvey } from '../../app/deployment/restore.ts';
import type { CliActions, Connection, RestoreRequest } from '../connection.ts';
import { examples } from '../examples.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { counted, table } from '../output.ts';
import { assertStorePath } from '../store-path.ts';

/** `ledgerctl store restore`: puts a backup, or a restored EventStoreDB, under a new deployment id. */
export const addRestoreCommand = (store: Command, { io }: Connection, actions: CliActions): void => {
  store
    .command('restore')
    .description(
      'put a backup into an empty data directory, or take a restored EventStoreDB, and give it a new deployment id; ' +
        'every service on this log or in this directory must be stopped',
    )
    .option('--file <file>', 'the backup (ledgerctl store backup)')
    .option('--data-dir <directory>', 'target: an empty or absent directory; with --file')
    .option(
      '--store <esdb>',
      'connection string of an EventStoreDB whose files were restored (default: LEDGER_EVENT_STORE, if it is one)',
    )
    .option(
      '--secrets-dir <directory>',
      'copy of LEDGER_SECRETS_DIR that was made with the backup: checked against the log, not copied',
      actions.secretsDir,
    )
    .option('--confirm <name>', 'name of the deployment, instead of typing it')
    .addHelpText(
      'after',
      `
Shows what the backup holds and asks for the name of the deployment (LEDGER_DEPLOYMENT_NAME) before it changes anything.
A service that starts on the result takes the hubs over; the one that drives them now stops driving them.
${examples(
  'store restore --file /var/backups/ledger-1.sqlite --data-dir ./restored --secrets-dir /var/backups/secrets-1',
  'store restore --store esdb://eventstore.example:2113 --confirm prod-east',
)}`,
    )
    .action(async (options: Options) => {
      const named = [options.file, options.dataDir, options.store].some((given) => given !== undefined);
      const esdb = !named && actions.eventStore.startsWith('esdb') ? { store: actions.eventStore } : {};
      const request = await requestOf({ ...options, ...esdb });
      const { confirm: name } = options;
      const deployment = await actions.restoreStore(request, {
        confirm: async (survey) => {
          io.out(textOf(survey, request, Date.now()));
          if (name === undefined)
            io.out(`Type the name of the deployment ('${survey.deployment.name}') to go on: `);
          const typed = name ?? (await io.line?.()) ?? '';
          return typed.trim() === survey.deployment.name;
        },
        tell: (line) => io.err(`${line}\n`),
        pause: (ms) => pause(ms),
      });
      if (deployment === undefined)
        throw new CliFailure(EXIT.failed, 'not the name of the deployment: nothing was changed');
      io.out(`restored: deployment '${deployment.name}' has id ${deployment.deploymentId} from now on\n`);
      io.err(`next: ${nextOf(request)}\n`);
    });
};

type Options = {
  readonly file?: string;
  readonly dataDir?: string;
  readonly store?: string;
  readonly secretsDir?: string;
  readonly confirm?: string;
};

const requestOf = async ({ file, dataDir, store, secretsDir }: Options): Promise<RestoreRequest> => {
  const keys = secretsDir === undefined ? {} : { secretsDir };
  if (store !== undefined) {
    if (file !== undefined || dataDir !== undefined)
      throw new InvalidArgumentError('--store excludes --file and --data-dir');
    if (!/^esdb(\+discover)?:/.test(store))
      throw new InvalidArgumentError(
        '--store takes a connection string such as esdb://localhost:2113?tls=false',
      );
    return { store, ...keys };
  }
  if (file === undefined || dataDir === undefined)
    throw new InvalidArgumentError('give --file and --data-dir, or --store');
  await assertStorePath(file, '--file');
  return { file, dataDir, ...keys };
};

const textOf = (survey: LogSurvey, request: RestoreRequest, now: number): string => {
  const { deployment, events, last, hubs, ordersUnderWay } = survey;
  const rows = [
    ['deployment', `${deployment.name}, id ${deployment.deploymentId}`],
    ['events', `${events}, the last at ${last.recordedAt} (position ${last.position})`],
    ['age', age(now - Date.parse(last.recordedAt))],
    ['hubs', counted(hubs, 'registered hub')],
    ['orders', `${ordersUnderWay} under way: neither READY, nor FAILED, nor deleted`],
    ['secrets', request.secretsDir === undefined ? 'not checked (--secrets-dir)' : 'keys fit this log'],
    ['goes into', 'file' in request ? request.dataDir : 'the same EventStoreDB'],
  ];
  return `${table(['what', 'value'], rows)}

The log gets a new deployment id. A service that starts on it takes the hubs over, and the one that drives them now stops.
What was recorded after ${last.recordedAt} is not in this log.
`;
};

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

const age = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [unit, length] = UNITS.find(([, of]) => seconds >= 2 * of) ?? (['second', 1] as const);
  return `${counted(Math.floor(seconds / length), unit)} since the last event`;
};

const nextOf = (request: RestoreRequest): string =>
  'file' in request
    ? `follow docs/restore.md: move the secrets and simulated hubs over, then start with LEDGER_DATA_DIR=${request.dataDir}`
    : 'follow docs/restore.md: remove the derived files of each data directory, then start the instances';
