import { setTimeout as pause } from 'node:timers/promises';
import { Help, type HelpConfiguration, Option, Command, InvalidArgumentError } from 'commander';
import { listAt, own } from '../domain/json-tools.ts';
import type { JsonValue } from '../domain/json.ts';
import { createApiClient } from './api-client.ts';
import { COMMAND_LIST } from './command-list.ts';
import type { ResourceContext } from './commands/resource-context.ts';
import type { CliActions, TokenRequest, CliIo, Connection } from './connection.ts';
import { examples } from './examples.ts';
import { CliFailure, EXIT, EXIT_HELP, exitStatusOf, hintOf } from './exit.ts';
import { messageFor } from './file-errors.ts';
import { parseDuration, printable, readable } from './output.ts';
import type { KindFacts } from './resources/kinds.ts';

/**
 * Help that says what must be given: the options that are required stand in the usage line, and say so where they are described.
 */
const helpOfOptions: HelpConfiguration = {
  commandUsage: (command) => {
    const usual = new Help().commandUsage(command);
    const needed = command.options.filter(isNeeded).map(({ flags, long }) => withoutShort(flags, long));
    // A usage line of its own names them already.
    const missing = needed.filter((flags) => !usual.includes(flags));
    return missing.length === 0 ? usual : `${withoutOptions(usual)} ${missing.join(' ')} [options]`;
  },
  optionDescription: (option) => {
    const usual = withoutEmptyDefault(new Help().optionDescription(option));
    return isNeeded(option) ? `${usual} (required)` : usual;
  },
};

/** That an option is off, or names nothing, when it is not given, goes without saying. */
const withoutEmptyDefault = (text: string): string =>
  text.replace(/ \(default: (\[\]|false)\)$/, '').replace(/, default: (\[\]|false)\)$/, ')');

const isNeeded = ({ mandatory, defaultValue }: Option): boolean => mandatory && defaultValue === undefined;

/** `-o, --output <file>` as it is typed: `--output <file>`. */
const withoutShort = (flags: string, long: string | undefined): string =>
  long === undefined ? flags : flags.slice(flags.indexOf(long));

const withoutOptions = (usage: string): string => usage.replace(/ \[options\]/, '');

const DEFAULT_HOST = '127.0.0.1:8001';
const DEFAULT_URL = `http://${DEFAULT_HOST}`;

/** Hosts that stand for every interface: nobody connects to those. */
const LOOPBACK: { readonly [host: string]: string } = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/**
 * Where the service is found that listens at `address` (`LEDGER_HTTP_ADDRESS`, `host:port`). The default where none is
 * set, or where it names no port. `tls`: the service has a certificate.
 */
export const urlOfAddress = (address: string | undefined, tls = false): string => {
  const [, host = '', port = '0'] = /^(.+):(\d{1,5})$/.exec(address ?? '') ?? [];
  const found = Number(port) === 0 ? DEFAULT_HOST : `${LOOPBACK[host] ?? host}:${port}`;
  return `${tls ? 'https' : 'http'}://${found}`;
};

/** Tries of one call by a command, the first included. */
const ATTEMPTS = 4;

type Parts = {
  readonly program: Command;
  readonly connection: Connection;
  readonly actions: CliActions;
  readonly resources: () => Promise<ResourceContext>;
};

const resourcesOf = async (
  connection: Connection,
  load: () => Promise<{ readonly kinds: readonly KindFacts[] }> = () => import('./resources/kinds.ts'),
): Promise<ResourceContext> => {
  const [{ kinds }, { createKindNames }, { resourceContext }] = await Promise.all([
    load(),
    import('./resources/kind-names.ts'),
    import('./commands/resource-context.ts'),
  ]);
  return resourceContext(connection, createKindNames(kinds));
};

/** With the declarations, which know how names are derived. */
const declared = (connection: Connection): Promise<ResourceContext> =>
  resourcesOf(connection, () => import('../domain/kinds.ts'));

type Group = { readonly names: readonly string[]; readonly add: (parts: Parts) => Promise<void> };

const aboutKinds = (
  names: readonly string[],
  load: () => Promise<(program: Command, resources: ResourceContext) => void>,
): Group => ({ names, add: async ({ program, resources }) => (await load())(program, await resources()) });

const aboutService = (
  name: string,
  load: () => Promise<(program: Command, connection: Connection, actions: CliActions) => void>,
): Group => ({
  names: [name],
  add: async ({ program, connection, actions }) => (await load())(program, connection, actions),
});

/** Commands in the order of the help, with the names that they begin with. Each is loaded when it is called. */
const GROUPS: readonly Group[] = [
  {
    names: ['demo'],
    add: async ({ program, actions, connection }) =>
      (await import('./commands/demo.ts')).addDemoCommand(program, actions, connection.io),
  },
  aboutKinds(['get'], async () => (await import('./commands/get.ts')).addGetCommand),
  aboutKinds(['describe'], async () => (await import('./commands/describe.ts')).addDescribeCommand),
  {
    names: ['create', 'apply'],
    add: async ({ program, connection }) =>
      (await import('./commands/write.ts')).addWriteCommands(program, await declared(connection)),
  },
  aboutKinds(['label', 'annotate'], async () => (await import('./commands/change.ts')).addMapCommands),
  aboutKinds(['scale'], async () => (await import('./commands/change.ts')).addScaleCommand),
  aboutKinds(['attach'], async () => (await import('./commands/attach.ts')).addAttachCommand),
  aboutKinds(['detach'], async () => (await import('./commands/attach.ts')).addDetachCommand),
  aboutKinds(
    ['start', 'stop', 'restart'],
    async () => (await import('./commands/power.ts')).addPowerCommands,
  ),
  {
    names: ['console'],
    add: async ({ program, connection, resources }) =>
      (await import('./commands/console.ts')).addConsoleCommand(program, connection, await resources()),
  },
  aboutKinds(['delete'], async () => (await import('./commands/delete.ts')).addDeleteCommand),
  aboutKinds(
    ['kubeconfig', 'password'],
    async () => (await import('./commands/credentials.ts')).addCredentialCommands,
  ),
  aboutKinds(['kinds'], async () => (await import('./commands/get.ts')).addKindsCommand),
  aboutService('events', async () => (await import('./commands/events.ts')).addEventCommands),
  {
    names: ['orders'],
    add: async ({ program, connection, resources }) =>
      (await import('./commands/orders.ts')).addOrderCommands(program, connection, resources),
  },
  {
    names: ['hubs'],
    add: async ({ program, connection }) =>
      (await import('./commands/hubs.ts')).addHubCommands(program, connection, { now: Date.now, pause }),
  },
  aboutService('kafka', async () => (await import('./commands/kafka.ts')).addKafkaCommands),
  aboutService('pools', async () => (await import('./commands/pools.ts')).addPoolCommands),
  aboutService('lanes', async () => (await import('./commands/lanes.ts')).addLaneCommands),
  aboutService('projections', async () => (await import('./commands/projections.ts')).addProjectionCommands),
  aboutService('store', async () => (await import('./commands/store.ts')).addStoreCommands),
  aboutService('audit', async () => (await import('./commands/audit.ts')).addAuditCommands),
  aboutService('usage', async () => (await import('./commands/usage.ts')).addUsageCommand),
  {
    names: ['dev-cert'],
    add: async ({ program, connection }) =>
      (await import('./commands/dev-cert.ts')).addDevCertCommand(program, connection.io),
  },
  aboutKinds(
    ['completion', '__complete'],
    async () => (await import('./commands/completion.ts')).addCompletionCommand,
  ),
];

/** A command that is called stands in the command line; of the others only the line of the help is needed. */
const addCommands = async (parts: Parts, argv: readonly string[] | undefined): Promise<void> => {
  for (const { names, add } of GROUPS)
    if (argv === undefined || names.some((name) => argv.includes(name))) await add(parts);
    else for (const name of names) list(parts.program, name);
};

const list = (program: Command, name: string): void => {
  const listed = own(COMMAND_LIST, name);
  if (listed === undefined) return;
  const command = program.command(`${name} ${listed.takes ?? ''}`.trimEnd()).description(listed.about);
  if (listed.hasOptions === true) command.option('--not-loaded');
};

/** With the commands that this command line may call, the others by name; without one, all. Exit statuses: `exit.ts`. */
export const createCli = async (
  actions: CliActions,
  terminal: CliIo,
  argv?: readonly string[],
): Promise<Command> => {
  const io = readable(terminal);
  const program = new Command('ledgerctl')
    .description('Operates fulfillment-ledger: the service itself, and everything an operator asks of it.')
    .addOption(
      new Option('--url, --address <url>', 'address of the service')
        .env('LEDGERCTL_URL')
        .default(urlOfAddress(actions.httpAddress, actions.tls), `LEDGER_HTTP_ADDRESS, else ${DEFAULT_URL}`),
    )
    .addOption(
      new Option(
        '--token <token>',
        'bearer token of a provider admin (default: one of the development issuer, for which the settings of the service are read)',
      ).env('LEDGERCTL_TOKEN'),
    )
    .addOption(
      new Option(
        '--service-ca <file>',
        'authority of the certificate of the service, PEM (default: those that Node trusts)',
      ).env('LEDGERCTL_SERVICE_CA'),
    )
    .addOption(
      new Option(
        '--client-cert <file>',
        'certificate for a service that asks its clients for one, PEM; with --client-key',
      ).env('LEDGERCTL_CLIENT_CERT'),
    )
    .addOption(
      new Option('--client-key <file>', 'private key of that certificate, PEM, without a passphrase').env(
        'LEDGERCTL_CLIENT_KEY',
      ),
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

  /** Where the service is and what it takes to reach it, as the options say. */
  const reach = async () => {
    const { address, token, timeout, serviceCa, clientCert, clientKey } = program.opts<{
      address: string;
      token?: string;
      timeout: number;
      serviceCa?: string;
      clientCert?: string;
      clientKey?: string;
    }>();
    if (!/^https?:$/.test(URL.parse(address)?.protocol ?? ''))
      throw new InvalidArgumentError(`--url: "${address}" is not an address such as ${DEFAULT_URL}`);
    if (serviceCa !== undefined) await (await import('./trust.ts')).trust(serviceCa);
    const certificate =
      clientCert === undefined && clientKey === undefined
        ? undefined
        : await (await import('./client-certificate.ts')).readCertificate(clientCert, clientKey);
    return {
      address,
      token,
      timeoutMs: timeout * 1000,
      ...(certificate === undefined ? {} : { certificate }),
    };
  };
  const connection: Connection = {
    io,
    isAdmin: () => {
      const { token } = program.opts<{ token?: string }>();
      return token === undefined || namesAdmin(token);
    },
    client: async ({ attempts = ATTEMPTS } = {}) => {
      const { address, token, timeoutMs, certificate } = await reach();
      const fetch =
        certificate === undefined
          ? undefined
          : (await import('./client-certificate.ts')).fetchWithCertificate(certificate);
      return createApiClient(address, token ?? (await ownToken(actions)), {
        attempts,
        timeoutMs,
        ...(fetch === undefined ? {} : { fetch }),
      });
    },
    socket: async (path, bearer) => {
      const [{ address, ...how }, { openSocket }] = await Promise.all([reach(), import('./socket.ts')]);
      return openSocket(new URL(path, address), bearer, how);
    },
  };

  program
    .command('serve')
    .description('run the service; settings are environment variables: docs/configuration.md')
    .addHelpText('after', examples('serve'))
    .action(() => actions.serve());
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
        'token --tenant acme --user rita --role tenant-reader',
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
  const parts: Parts = { program, connection, actions, resources: () => resourcesOf(connection) };
  await addCommands(parts, argv);
  return program;
};

/** Realm roles that give rights (OSAC). */
const REALM_ROLES: readonly string[] = [
  'tenant-admin',
  'tenant-idp-manager',
  'tenant-reader',
  'auditor',
  'osac-csi-driver',
];

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

/** `p1=manager` as the group that says so (OSAC). */
const projectGroup = (text: string): string => {
  const [, project, role] = /^([^=/]+)=(viewer|manager)$/.exec(text) ?? [];
  if (project === undefined)
    throw new InvalidArgumentError(`"${text}" is not a role in a project; give for example p1=manager`);
  return `/${project}/system:${role}s`;
};

const ownToken = async ({ mintToken }: CliActions): Promise<string> => {
  try {
    return await mintToken(ADMIN);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${why}; or give a token of an issuer that the service trusts: --token or LEDGERCTL_TOKEN`,
      { cause: error },
    );
  }
};

/** What the token claims; whether that is so only the service knows. */
const namesAdmin = (token: string): boolean => {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JsonValue;
    return listAt(claims, 'groups').some((group) => group === 'admins' || group === '/admins');
  } catch {
    return false;
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
