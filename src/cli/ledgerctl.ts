import { Command, InvalidArgumentError, Option } from 'commander';
import { ApiError, createApiClient } from './api-client.ts';
import type { CliActions, TokenRequest, CliIo, Connection } from './connection.ts';
import { addEventCommands } from './commands/events.ts';
import { addLaneCommands } from './commands/lanes.ts';
import { addOrderCommands } from './commands/orders.ts';
import { addProjectionCommands } from './commands/projections.ts';
import { addStoreCommands } from './commands/store.ts';

export const DEFAULT_URL = 'http://127.0.0.1:8001';

/** Exit statuses: 0 done, 1 failed, 2 wrong usage, 3 not found or conflict. */
export const createCli = (actions: CliActions, io: CliIo): Command => {
  const program = new Command('ledgerctl')
    .description('Operates fulfillment-ledger: the service itself, and everything an operator asks of it.')
    .addOption(new Option('--url <url>', 'address of the service').env('LEDGERCTL_URL').default(DEFAULT_URL))
    .addOption(
      new Option(
        '--token <token>',
        'bearer token of a provider admin (default: one of the development issuer, for which the settings of the service are read)',
      ).env('LEDGERCTL_TOKEN'),
    )
    .version(actions.version, '--version', 'print the version')
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .showHelpAfterError('(--help lists what there is)')
    .exitOverride();

  const connection: Connection = {
    io,
    client: async () => {
      const { url, token } = program.opts<{ url: string; token?: string }>();
      return createApiClient(url, token ?? (await ownToken(actions)));
    },
  };

  program
    .command('serve')
    .description('run the service; settings are environment variables, see the README')
    .action(() => actions.serve());
  program
    .command('demo')
    .description(
      'order, scale, crash, recover and delete clusters on a service of its own, and check what it claims',
    )
    .action(async () => {
      process.exitCode = await actions.demo();
    });
  program
    .command('token')
    .description('print one token of the development issuer, and nothing else')
    .option('--tenant <name>', 'tenant of the user')
    .requiredOption('--user <name>', 'user name')
    .option('--admin', 'provider admin: every tenant, private surface', false)
    .option('--role <role...>', 'realm role, for example tenant-admin', [])
    .option('--ttl <time>', 'how long it is valid, for example 30m or 8h', '1h')
    .action(
      async (options: { tenant?: string; user: string; admin: boolean; role: string[]; ttl: string }) => {
        if (options.tenant === undefined && !options.admin)
          throw new InvalidArgumentError('--tenant or --admin is needed');
        const { tenant, user, admin, role: roles } = options;
        const request = { user, admin, roles, ttlSeconds: parseDuration(options.ttl) };
        io.out(`${await actions.mintToken(tenant === undefined ? request : { ...request, tenant })}\n`);
      },
    );
  addEventCommands(program, connection);
  addOrderCommands(program, connection);
  addLaneCommands(program, connection);
  addProjectionCommands(program, connection);
  addStoreCommands(program, connection, actions);
  return program;
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

const ADMIN: TokenRequest = { user: 'ledgerctl', admin: true, roles: [], ttlSeconds: 600 };

/** Seconds of `90`, `30s`, `15m`, `8h`, `7d`. */
export const parseDuration = (text: string): number => {
  const match = /^(\d{1,6})(s|m|h|d)?$/.exec(text);
  if (match === null) throw new InvalidArgumentError(`"${text}" is not a time such as 30m or 8h`);
  const units = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
  if (Number(match[1]) === 0)
    throw new InvalidArgumentError(`"${text}" is no time at all; give for example 30m`);
  return Number(match[1]) * units[(match[2] ?? 's') as keyof typeof units];
};

/** Runs one command line; returns the exit status and prints errors without a stack. */
export const runCli = async (program: Command, argv: readonly string[], io: CliIo): Promise<number> => {
  try {
    await program.parseAsync([...argv], { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // What commander finds itself it has printed; what a command finds wrong with its arguments it has not.
    if (error instanceof InvalidArgumentError)
      io.err(`error: ${error.message}\n(--help lists what there is)\n`);
    if (isCommanderError(error)) return error.exitCode === 0 ? 0 : 2;
    io.err(`ledgerctl: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof ApiError && (error.status === 404 || error.status === 409) ? 3 : 1;
  }
};

const isCommanderError = (error: unknown): error is { exitCode: number } =>
  error instanceof Error && 'exitCode' in error && 'code' in error;
