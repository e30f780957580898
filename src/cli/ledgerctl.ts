import { Command, InvalidArgumentError, Option } from 'commander';
import { own } from '../domain/json-tools.ts';
import { kinds } from '../domain/kinds.ts';
import { createApiClient } from './api-client.ts';
import { addAuditCommands } from './commands/audit.ts';
import { addCompletionCommand } from './commands/completion.ts';
import { addCredentialCommands } from './commands/credentials.ts';
import { addMapCommands, addScaleCommand } from './commands/change.ts';
import { addDeleteCommand } from './commands/delete.ts';
import { addDemoCommand } from './commands/demo.ts';
import { addDescribeCommand } from './commands/describe.ts';
import { addGetCommand, addKindsCommand } from './commands/get.ts';
import { resourceContext } from './commands/resource-context.ts';
import { addWriteCommands } from './commands/write.ts';
import type { CliActions, TokenRequest, CliIo, Connection } from './connection.ts';
import { addEventCommands } from './commands/events.ts';
import { addHubCommands } from './commands/hubs.ts';
import { addKafkaCommands } from './commands/kafka.ts';
import { addLaneCommands } from './commands/lanes.ts';
import { addOrderCommands } from './commands/orders.ts';
import { addProjectionCommands } from './commands/projections.ts';
import { addStoreCommands } from './commands/store.ts';
import { addUsageCommand } from './commands/usage.ts';
import { examples } from './examples.ts';
import { CliFailure, EXIT, EXIT_HELP, exitStatusOf, hintOf } from './exit.ts';
import { messageFor } from './file-errors.ts';
import { helpOfOptions } from './help.ts';
import { parseDuration, printable, readable } from './output.ts';
import { createKindNames } from './resources/kind-names.ts';
import { DEFAULT_URL, urlOfAddress } from './service-url.ts';

/** Tries of one call by a command, the first included. */
const ATTEMPTS = 4;

/** Exit statuses: see `exit.ts`. */
export const createCli = (actions: CliActions, terminal: CliIo): Command => {
  const io = readable(terminal);
  const program = new Command('ledgerctl')
    .description('Operates fulfillment-ledger: the service itself, and everything an operator asks of it.')
    .addOption(
      new Option('--url, --address <url>', 'address of the service')
        .env('LEDGERCTL_URL')
        .default(urlOfAddress(actions.httpAddress), `LEDGER_HTTP_ADDRESS, else ${DEFAULT_URL}`),
    )
    .addOption(
      new Option(
        '--token <token>',
        'bearer token of a provider admin (default: one of the development issuer, for which the settings of the service are read)',
      ).env('LEDGERCTL_TOKEN'),
    )
    .addOption(
      new Option('--timeout <time>', 'how long one call may take, its repetitions included')
        .argParser(parseDuration)
        .default(60, '60s'),
    )
    .version(actions.version, '--version', 'print the version')
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .configureHelp(helpOfOptions)
    .addHelpText('after', EXIT_HELP)
    .showHelpAfterError('(--help lists what there is)')
    .exitOverride();

  const connection: Connection = {
    io,
    client: async ({ attempts = ATTEMPTS } = {}) => {
      const { address, token, timeout } = program.opts<{
        address: string;
        token?: string;
        timeout: number;
      }>();
      if (!/^https?:$/.test(URL.parse(address)?.protocol ?? ''))
        throw new InvalidArgumentError(`--url: "${address}" is not an address such as ${DEFAULT_URL}`);
      return createApiClient(address, token ?? (await ownToken(actions)), {
        attempts,
        timeoutMs: timeout * 1000,
      });
    },
  };

  program
    .command('serve')
    .description('run the service; settings are environment variables, see the README')
    .addHelpText('after', examples('serve'))
    .action(() => actions.serve());
  addDemoCommand(program, actions, io);
  program
    .command('token')
    .description('print one token of the development issuer, and nothing else')
    .option('--tenant <name>', 'tenant of the user')
    .requiredOption('--user <name>', 'user name')
    .option('--admin', 'provider admin: every tenant, private surface', false)
    .option('--role <role...>', 'realm role, for example tenant-admin', [])
    .option('--group <group...>', 'group of the user, for example /p1/system:viewers', [])
    .option('--project-role <project=role...>', 'role in a project of the tenant: p1=viewer, p1=manager', [])
    .option('--email <address>', 'e-mail address of the user')
    .option('--ttl <time>', 'how long it is valid, for example 30m or 8h', '1h')
    .addHelpText(
      'after',
      examples(
        'token --tenant acme --user alice',
        'token --tenant acme --user carol --role tenant-admin --ttl 8h',
        'token --tenant acme --user audrey --role auditor',
        'token --tenant acme --user dave --project-role p1=manager',
        'token --user operator --admin',
      ),
    )
    .action(async (options: TokenOptions) => {
      if (options.tenant === undefined && !options.admin)
        throw new InvalidArgumentError('--tenant or --admin is needed');
      const { tenant, user, admin, role: roles, email } = options;
      const unknown = roles.filter((role) => !REALM_ROLES.includes(role));
      if (unknown.length > 0)
        io.err(
          `note: the service knows no role ${unknown.map((role) => `"${role}"`).join(', ')}; ` +
            `it gives rights for ${REALM_ROLES.join(', ')}\n`,
        );
      const groups = [...options.group, ...options.projectRole.map(projectGroup)];
      const request = {
        user,
        admin,
        roles,
        ...(groups.length === 0 ? {} : { groups }),
        ...(email === undefined ? {} : { email }),
        ttlSeconds: parseDuration(options.ttl),
      };
      io.out(`${await actions.mintToken(tenant === undefined ? request : { ...request, tenant })}\n`);
    });
  const resources = resourceContext(connection, createKindNames(kinds));
  addGetCommand(program, resources);
  addDescribeCommand(program, resources);
  addWriteCommands(program, resources);
  addMapCommands(program, resources);
  addScaleCommand(program, resources);
  addDeleteCommand(program, resources);
  addCredentialCommands(program, resources);
  addKindsCommand(program, resources);
  addEventCommands(program, connection);
  addOrderCommands(program, connection, resources);
  addHubCommands(program, connection, resources);
  addKafkaCommands(program, connection);
  addLaneCommands(program, connection);
  addProjectionCommands(program, connection);
  addStoreCommands(program, connection, actions);
  addAuditCommands(program, connection, actions);
  addUsageCommand(program, connection);
  addCompletionCommand(program, resources);
  return program;
};

/** Realm roles that give rights (osac-api.md §7 Roles). */
const REALM_ROLES: readonly string[] = ['tenant-admin', 'tenant-idp-manager', 'osac-csi-driver', 'auditor'];

type TokenOptions = {
  readonly tenant?: string;
  readonly user: string;
  readonly admin: boolean;
  readonly role: string[];
  readonly group: string[];
  readonly projectRole: string[];
  readonly email?: string;
  readonly ttl: string;
};

/** `p1=manager` as the group that says so (osac-api.md §7 Roles). */
const projectGroup = (text: string): string => {
  const [, project, role] = /^([^=/]+)=(viewer|manager)$/.exec(text) ?? [];
  if (project === undefined)
    throw new InvalidArgumentError(`"${text}" is no role in a project; give for example p1=manager`);
  return `/${project}/system:${role}s`;
};

const ownToken = async ({ mintToken }: CliActions): Promise<string> => {
  try {
    return await mintToken(ADMIN);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${why}; or give a token of an issuer that the service trusts: --token or LEDGERCTL_TOKEN`,
      {
        cause: error,
      },
    );
  }
};

const ADMIN: TokenRequest = { user: 'ledgerctl', admin: true, roles: [], ttlSeconds: 3600 };

/** Runs one command line; returns the exit status and prints errors without a stack. */
export const runCli = async (program: Command, argv: readonly string[], terminal: CliIo): Promise<number> => {
  const io = readable(terminal);
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // What commander finds itself it has printed; what a command finds wrong with its arguments it has not.
    if (error instanceof InvalidArgumentError)
      io.err(`error: ${error.message}\n(--help lists what there is)\n`);
    if (isCommanderError(error)) {
      const meant = commandMeant(error);
      if (meant !== undefined) io.err(`(Did you mean ${meant}?)\n`);
      return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    }
    io.err(`ledgerctl: ${printable(messageFor(error))}\n`);
    const hint = hintOf(error instanceof CliFailure ? error.cause : error);
    if (hint !== undefined) io.err(`hint: ${hint}\n`);
    return exitStatusOf(error);
  }
};

const isCommanderError = (error: unknown): error is Error & { exitCode: number; code: unknown } =>
  error instanceof Error && 'exitCode' in error && 'code' in error;

/** Names that others give to what a command does; commander itself knows what is merely misspelt. */
const commandMeant = ({ code, message }: Error & { code: unknown }): string | undefined => {
  const [, name = ''] = /unknown command '([^']+)'/.exec(message) ?? [];
  return code === 'commander.unknownCommand' ? own(SYNONYMS, name) : undefined;
};

const SYNONYMS: { readonly [name: string]: string } = {
  revoke: 'audit ungrant',
  withdraw: 'audit ungrant',
  unhold: 'audit release',
  forget: 'audit erase',
  download: 'audit fetch',
  history: 'audit events',
  log: 'audit events',
};
