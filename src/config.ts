import { resolve } from 'node:path';
import { z } from 'zod';
import { SERVICE_LEVELS } from './domain/hot-pool/sizing.ts';
import { MAX_VOLUME_GIB } from './domain/storage/volume.resource.ts';
import { durationMs } from './domain/iso-duration.ts';
import { LABEL } from './domain/tenancy/trusted-issuers.ts';
import {
  address,
  addressOrNone,
  commaList,
  isOrigin,
  milliseconds,
  oneOf,
  optionalPath,
  trustedIssuers,
  wholeNumber,
} from './setting-values.ts';

export type { Address } from './setting-values.ts';

/**
 * The one schema of the environment. Every setting has a default, a unit where it has one, and a
 * sentence; the table of docs/configuration.md is generated from here and a test keeps it in step.
 */
export type Setting = {
  readonly variable: string;
  readonly default: string;
  readonly meaning: string;
  /** A value that would be accepted, shown when a bad one is refused. */
  readonly example: string;
};

export const ROLES = ['api', 'processes', 'publisher', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

type Field = Setting & { readonly schema: z.ZodType };

const field = <Schema extends z.ZodType>(
  variable: string,
  fallback: string,
  example: string,
  schema: Schema,
  meaning: string,
) => ({ variable, default: fallback, example, schema, meaning });

/** Order of this table is the order in docs/configuration.md. */
const fields = {
  httpAddress: field(
    'LEDGER_HTTP_ADDRESS',
    '127.0.0.1:8001',
    '127.0.0.1:8001',
    address,
    'REST address of all surfaces, `host:port`; port 0 takes any free port.',
  ),
  grpcAddress: field(
    'LEDGER_GRPC_ADDRESS',
    '127.0.0.1:8000',
    '127.0.0.1:8000',
    addressOrNone,
    "gRPC address of OSAC's services, health and reflection, `host:port`; port 0 takes any free port. Empty: no gRPC.",
  ),
  metricsAddress: field(
    'LEDGER_METRICS_ADDRESS',
    '127.0.0.1:8003',
    '127.0.0.1:8003',
    address,
    'Address of the Prometheus metrics listener, `host:port`; port 0 takes any free port.',
  ),
  tlsCertFile: field(
    'LEDGER_TLS_CERT_FILE',
    '',
    '/etc/ledger/tls.crt',
    optionalPath,
    'PEM file of the certificate, with its chain, for TLS on the HTTP and the gRPC listener. The service reads the files of these settings again when they change. Empty: plaintext.',
  ),
  tlsKeyFile: field(
    'LEDGER_TLS_KEY_FILE',
    '',
    '/etc/ledger/tls.key',
    optionalPath,
    'PEM file of the private key of that certificate, without a passphrase; needed with `LEDGER_TLS_CERT_FILE`.',
  ),
  tlsClientCaFile: field(
    'LEDGER_TLS_CLIENT_CA_FILE',
    '',
    '/etc/ledger/clients.crt',
    optionalPath,
    'PEM file of the authority that signs the certificates of clients; a connection without such a certificate is refused. Tokens are needed as well. Empty: clients need no certificate.',
  ),
  tls: field(
    'LEDGER_TLS',
    '',
    'off',
    z
      .string()
      .refine((text) => text === '' || text === 'off', 'must be `off` or empty')
      .transform((text) => (text === 'off' ? text : undefined)),
    '`off`: a proxy in front ends TLS, so plaintext is allowed in production (`NODE_ENV=production`). Empty: production refuses plaintext where other machines can reach it.',
  ),
  dataDir: field(
    'LEDGER_DATA_DIR',
    './data',
    './data',
    z
      .string()
      .min(1, 'must name a directory')
      .transform((path) => resolve(path)),
    'Directory of the embedded store, the read models and the simulated hubs. One process at a time may use it.',
  ),
  secretsDir: field(
    'LEDGER_SECRETS_DIR',
    '',
    './data/secrets',
    optionalPath,
    'Directory of secrets, subject keys and the development issuer key; shared by all instances on one EventStoreDB. Empty: `secrets` in the data directory.',
  ),
  eventStore: field(
    'LEDGER_EVENT_STORE',
    'sqlite',
    'esdb://localhost:2113?tls=false',
    z
      .string()
      .refine(
        (text) => text === 'sqlite' || /^esdb(\+discover)?:\/\/.+/.test(text),
        'must be `sqlite` or an esdb:// or esdb+discover:// connection string',
      ),
    'Event log: `sqlite` (embedded), or an EventStoreDB: `esdb://host` for one node, `esdb://a,b,c` for a cluster, `esdb+discover://name` for one DNS name of all nodes.',
  ),
  roles: field(
    'LEDGER_ROLES',
    ROLES.join(','),
    'api,processes',
    commaList.pipe(z.array(oneOf('role', ROLES)).min(1, 'must name at least one role')),
    'Parts that this instance runs: comma list of `api`, `processes`, `publisher`, `auditor`.',
  ),
  trustedIssuers: field(
    'LEDGER_TRUSTED_ISSUERS',
    '',
    'https://sso.example.com/realms/osac=acme;admins',
    trustedIssuers,
    'Comma list of https URLs of trusted token issuers, each optionally with a scope: `https://idp.example=acme;globex;admins;services` (tenants it may speak for, `*` = all; `admins` = provider admins; `services` = service accounts). Without a scope an issuer may claim everything. Empty: the development issuer, on loopback and outside production only.',
  ),
  tokenAudience: field(
    'LEDGER_TOKEN_AUDIENCE',
    '',
    'osac-api',
    z.string().transform((text) => (text === '' ? undefined : text)),
    'Audience that every token must name in its claim `aud`. Empty: the claim is not looked at.',
  ),
  deploymentName: field(
    'LEDGER_DEPLOYMENT_NAME',
    'ledger',
    'prod-east',
    z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
        'must be 1 to 63 letters, digits, dots, hyphens or underscores',
      ),
    'Name of this deployment: its mark on the hubs shows it, and a restore of its backup asks for it. The same for all instances on one event log.',
  ),
  deploymentNamespace: field(
    'LEDGER_DEPLOYMENT_NAMESPACE',
    '',
    'osac',
    z
      .string()
      .refine((text) => text === '' || LABEL.test(text), 'must be the name of a Kubernetes namespace')
      .transform((text) => (text === '' ? undefined : text)),
    "Kubernetes namespace of this deployment: its service accounts `admin`, `osac-operator`, `osac-operator-controller-manager` and `template-publisher` are provider admins. Empty: in a pod the pod's own namespace, elsewhere none.",
  ),
  catalog: field(
    'LEDGER_CATALOG',
    '',
    './fixtures/catalog',
    optionalPath,
    'Folder of catalogue files (tenants, host types, versions, templates, catalogue items, instance types, disk images, hubs) loaded at start; what exists already is left as it is.',
  ),
  kafkaBrokers: field(
    'LEDGER_KAFKA_BROKERS',
    '',
    'kafka-1:9092,kafka-2:9092',
    commaList.pipe(z.array(z.string().regex(/^[^:\s]+:\d+$/, 'must be host:port'))),
    'Comma list of Kafka brokers. Empty: the publisher role idles and says so.',
  ),
  kafkaClientId: field(
    'LEDGER_KAFKA_CLIENT_ID',
    'fulfillment-ledger',
    'fulfillment-ledger',
    z
      .string()
      .regex(/^[A-Za-z0-9._-]{1,100}$/, 'must be 1 to 100 letters, digits, dots, hyphens or underscores'),
    'Name by which the brokers know this service in their logs and quotas.',
  ),
  kafkaTlsCa: field(
    'LEDGER_KAFKA_TLS_CA',
    '',
    '/etc/kafka/ca.pem',
    z
      .string()
      .transform((text) =>
        text === '' ? undefined : text === 'system' ? ('system' as const) : resolve(text),
      ),
    "PEM file of the authority that signed the brokers' certificates, or `system` for those that the operating system trusts. Empty: connections to the brokers are not encrypted.",
  ),
  kafkaSaslMechanism: field(
    'LEDGER_KAFKA_SASL_MECHANISM',
    '',
    'scram-sha-512',
    z
      .string()
      .transform((text) => (text === '' ? undefined : text))
      .pipe(oneOf('mechanism', ['plain', 'scram-sha-256', 'scram-sha-512']).optional()),
    'How this service says who it is to the brokers: `plain` (only with TLS), `scram-sha-256` or `scram-sha-512`. Empty: it does not.',
  ),
  kafkaSaslUsername: field(
    'LEDGER_KAFKA_SASL_USERNAME',
    '',
    'fulfillment-ledger',
    z.string(),
    'User name for the brokers; needed with `LEDGER_KAFKA_SASL_MECHANISM`.',
  ),
  kafkaSaslPasswordFile: field(
    'LEDGER_KAFKA_SASL_PASSWORD_FILE',
    '',
    '/etc/kafka/password',
    optionalPath,
    'File that holds the password for the brokers; read again for each connection. Needed with `LEDGER_KAFKA_SASL_MECHANISM`.',
  ),
  kafkaHeartbeatMs: field(
    'LEDGER_KAFKA_HEARTBEAT_MS',
    '0',
    '60000',
    z
      .string()
      .regex(/^\d{1,9}$/, 'must be a whole number of milliseconds')
      .transform(Number)
      .refine(
        (ms) => ms === 0 || (ms >= 1_000 && ms <= 86_400_000),
        'must be 0, or between 1000 and 86400000',
      ),
    'Milliseconds between two metering heartbeats of each billable component (topic `osac.metering.heartbeat`). 0: none.',
  ),
  logLevel: field(
    'LEDGER_LOG_LEVEL',
    'info',
    'info',
    oneOf('level', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'Least severe level that is logged: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.',
  ),
  watches: field(
    'LEDGER_WATCHES',
    '20000',
    '20000',
    wholeNumber(1, 1_000_000),
    'Watches (`events/watch` and `events`) that this instance serves at one time, each for some memory (`npm run bench -- watch` measures it); more are answered 503.',
  ),
  watchesPerSubject: field(
    'LEDGER_WATCHES_PER_SUBJECT',
    '100',
    '100',
    wholeNumber(1, 1_000_000),
    'Watches that one caller may have open at one time on an instance; more are answered 429. Admins count in the total only.',
  ),
  watchesPerTenant: field(
    'LEDGER_WATCHES_PER_TENANT',
    '10000',
    '10000',
    wholeNumber(1, 1_000_000),
    'Watches that the users of one tenant may have open at one time on an instance, with at most 50 different filters; more are answered 429. Admins count in the total only.',
  ),
  consoles: field(
    'LEDGER_CONSOLES',
    '500',
    '200',
    wholeNumber(0, 100_000),
    'Consoles of machines that this instance serves at one time; more are told to try again later. 0: none.',
  ),
  consolesPerTenant: field(
    'LEDGER_CONSOLES_PER_TENANT',
    '200',
    '50',
    wholeNumber(0, 100_000),
    'Consoles of the machines of one tenant that this instance serves at one time; more are told to try again later.',
  ),
  consoleMinutes: field(
    'LEDGER_CONSOLE_MINUTES',
    '30',
    '120',
    wholeNumber(1, 1_440),
    'Minutes that one console session may last.',
  ),
  corsOrigins: field(
    'LEDGER_CORS_ORIGINS',
    '*',
    'https://console.example.com',
    commaList.pipe(z.array(z.string().refine(isOrigin, 'must be `*` or origins like https://host:port'))),
    'Comma list of origins whose pages may call from a browser, or `*` for all: callers bring a token. The one cookie (`console-ticket`) is taken from pages of the service itself and of listed origins only. Empty: no other origin.',
  ),
  rateLimitTenant: field(
    'LEDGER_RATE_LIMIT_TENANT',
    '120000',
    '600000',
    wholeNumber(0, 100_000_000),
    'Requests per minute of one tenant; more are answered 429 with `Retry-After`. A list counts as one request for each 100 objects it may show (`limit`). 0: no limit.',
  ),
  byteLimitTenant: field(
    'LEDGER_BYTE_LIMIT_TENANT',
    '256',
    '64',
    wholeNumber(0, 1_000_000),
    'MiB of request bodies per minute of one tenant; more are answered 429 with `Retry-After`. 0: no limit.',
  ),
  rateLimitAdmin: field(
    'LEDGER_RATE_LIMIT_ADMIN',
    '0',
    '60000',
    wholeNumber(0, 100_000_000),
    'Requests per minute of one provider admin. 0: no limit.',
  ),
  rateLimitAddress: field(
    'LEDGER_RATE_LIMIT_ADDRESS',
    '6000',
    '600',
    wholeNumber(0, 100_000_000),
    'Requests per minute from one address that come without a valid token; valid ones from there are not held back, nor are `/healthz` and `/readyz`, which probes ask. 0: no limit.',
  ),
  concurrentRequests: field(
    'LEDGER_CONCURRENT_REQUESTS',
    '256',
    '64',
    wholeNumber(0, 100_000),
    'Requests of one tenant that run at once; 1,024 more wait for their turn. Admins are not held back. 0: no limit.',
  ),
  storeDeadlineMs: field(
    'LEDGER_STORE_DEADLINE_MS',
    '10000',
    '10000',
    milliseconds(50, 120_000),
    'Milliseconds for which the service tries an append or a read again while the event store does not answer. ' +
      'After that, an append that was never sent is answered 503; one without an answer is answered 504 with the ' +
      'command id to repeat.',
  ),
  auditExportDays: field(
    'LEDGER_AUDIT_EXPORT_DAYS',
    '7',
    '30',
    wholeNumber(1, 3650),
    'Days that the file of a finished audit export is kept in `exports` of the data directory; what became of the export stays in the log.',
  ),
  auditExportsPerTenant: field(
    'LEDGER_AUDIT_EXPORTS_PER_TENANT',
    '50',
    '20',
    wholeNumber(0, 100_000),
    'Finished audit exports of one tenant whose files are kept, and as many of the whole log; the oldest goes first. 0: no limit.',
  ),
  simulatedHubs: field(
    'LEDGER_SIMULATED_HUBS',
    '',
    'allowed',
    z
      .string()
      .refine((text) => text === '' || text === 'allowed', 'must be `allowed` or empty')
      .transform((text) => text === 'allowed'),
    'Whether simulated hubs (ids that begin with `sim-`) may be registered and take orders in production (`NODE_ENV=production`): `allowed`, or empty for no. Elsewhere they always may.',
  ),
  placementDeadline: field(
    'LEDGER_PLACEMENT_DEADLINE',
    '',
    'P2D',
    z
      .string()
      .refine(
        (text) => text === '' || durationMs(text) !== undefined,
        'must be an ISO 8601 duration such as PT30M or P2D, without years and months',
      )
      .transform((text) => (text === '' ? undefined : text)),
    'ISO 8601 duration that a cluster order may wait for a place before it fails; it holds for orders from then on, and their annotation `fulfillment-ledger/placement-deadline` wins. Empty: as long as it takes.',
  ),
  hotPoolServiceLevel: field(
    'LEDGER_HOT_POOL_SERVICE_LEVEL',
    '0.95',
    '0.99',
    oneOf('choice', SERVICE_LEVELS.map(String)).transform(
      (text) => SERVICE_LEVELS.find((level) => String(level) === text) ?? 0.95,
    ),
    'Probability with which an order finds all of its agents free: `0.95`, `0.99` or `0.999`. The hot pool of each hub and host type is sized by it.',
  ),
  hotPoolOrdersPerHour: field(
    'LEDGER_HOT_POOL_ORDERS_PER_HOUR',
    '0',
    '2',
    wholeNumber(0, 100_000),
    'Orders per hour of each hub and host type that the hot pool reckons with at least. More are expected where more came. 0: nothing is kept free where no order comes.',
  ),
  hotPoolLeadMinutes: field(
    'LEDGER_HOT_POOL_LEAD_MINUTES',
    '15',
    '20',
    wholeNumber(1, 1_440),
    'Minutes that a host takes at most until it is a free agent, for the size of the hot pool.',
  ),
  hotPoolMaxConcurrent: field(
    'LEDGER_HOT_POOL_MAX_CONCURRENT',
    '20',
    '10',
    wholeNumber(1, 1_000),
    'Hosts of one hub that are being discovered at once at most.',
  ),
  maxDiskGib: field(
    'LEDGER_MAX_DISK_GIB',
    '65536',
    '2048',
    wholeNumber(1, 1_000_000),
    'GiB that one disk of a compute instance may have.',
  ),
  maxVolumeGib: field(
    'LEDGER_MAX_VOLUME_GIB',
    String(MAX_VOLUME_GIB),
    '16384',
    wholeNumber(1, 2 ** 40),
    'GiB that a new volume may have at most; a larger order is answered 400.',
  ),
  tenantsSeeJobErrors: field(
    'LEDGER_TENANTS_SEE_JOB_ERRORS',
    'false',
    'true',
    oneOf('choice', ['true', 'false']).transform((text) => text === 'true'),
    "Whether tenants read what a failed job of a hub's automation said, in status, timeline and events from then on: `true` or `false`. The provider always does. With `false` they read that the provider's automation failed, with the correlation id.",
  ),
  drainMs: field(
    'LEDGER_DRAIN_MS',
    '0',
    '5000',
    milliseconds(0, 300_000),
    'Milliseconds on SIGTERM during which `/readyz` says 503 and requests are still served, so that a load balancer notices before connections are refused.',
  ),
  shutdownMs: field(
    'LEDGER_SHUTDOWN_MS',
    '10000',
    '10000',
    milliseconds(0, 300_000),
    'Milliseconds that running requests and effects get to finish on SIGTERM before connections are cut.',
  ),
} as const satisfies Record<string, Field>;

export type Config = { readonly [Name in keyof typeof fields]: z.output<(typeof fields)[Name]['schema']> } & {
  readonly secretsDir: string;
};

export const settings: readonly Setting[] = Object.values(fields).map((entry) => ({
  variable: entry.variable,
  default: entry.default,
  meaning: entry.meaning,
  example: entry.example,
}));

/** A setting that cannot be used: the message says which variable, what is wrong, and shows an example. */
export class BadSetting extends Error {
  override readonly name = 'BadSetting';
}

/** Which of the known names a misspelt one was meant to be, as the end of a sentence; empty: none is near. */
export type Meant = (name: string, known: readonly string[]) => string;

/** Reads the settings from an environment. Throws BadSetting listing every bad variable at once. */
export const readConfig = (
  environment: Readonly<Record<string, string | undefined>>,
  meant: Meant = () => '',
): Config => {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, { variable, default: fallback, example, schema }] of Object.entries(fields)) {
    const given = environment[variable];
    const parsed = schema.safeParse(given === undefined ? fallback : given.trim());
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push(
        `${variable}: ${parsed.error.issues.map((issue) => issue.message).join('; ')} (got ${shown(given)}). Example: ${variable}=${example}`,
      );
  }
  if (problems.length === 0) problems.push(...contradictions(values as unknown as Config));
  problems.push(...unknownSettings(environment, meant));
  if (problems.length > 0) throw new BadSetting(problems.join('\n'));
  const config = values as unknown as Config;
  return { ...config, secretsDir: config.secretsDir ?? resolve(config.dataDir, 'secrets') };
};

/** Settings that are good by themselves and cannot work together. */
const contradictions = (config: Config): string[] => [...ofTls(config), ...ofSasl(config)];

const ofTls = ({ tls, tlsCertFile: cert, tlsKeyFile: key, tlsClientCaFile: clientCa }: Config): string[] => [
  ...(cert === undefined && (key ?? clientCa) !== undefined
    ? [missing(fields.tlsCertFile, 'is needed with a key or an authority of clients')]
    : []),
  ...(cert !== undefined && key === undefined
    ? [missing(fields.tlsKeyFile, 'is needed with LEDGER_TLS_CERT_FILE')]
    : []),
  ...(tls === 'off' && cert !== undefined
    ? ['LEDGER_TLS: off contradicts LEDGER_TLS_CERT_FILE; leave one of them empty']
    : []),
];

const ofSasl = (config: Config): string[] => {
  const { kafkaSaslMechanism: mechanism, kafkaSaslUsername: username, kafkaSaslPasswordFile: file } = config;
  if (mechanism === undefined)
    return username === '' && file === undefined
      ? []
      : [missing(fields.kafkaSaslMechanism, 'is needed with a user name or password file')];
  return [
    ...(username === ''
      ? [missing(fields.kafkaSaslUsername, `is needed with LEDGER_KAFKA_SASL_MECHANISM=${mechanism}`)]
      : []),
    ...(file === undefined
      ? [missing(fields.kafkaSaslPasswordFile, `is needed with LEDGER_KAFKA_SASL_MECHANISM=${mechanism}`)]
      : []),
    ...(mechanism === 'plain' && config.kafkaTlsCa === undefined
      ? [missing(fields.kafkaTlsCa, 'is needed with plain, which would send the password in clear')]
      : []),
  ];
};

const missing = ({ variable, example }: Pick<Field, 'variable' | 'example'>, why: string): string =>
  `${variable}: ${why}. Example: ${variable}=${example}`;

/** Connection strings and issuer URLs may hold credentials: those are not repeated in an error. */
const shown = (given: string | undefined): string =>
  given?.includes('@') ? 'a value with credentials' : JSON.stringify(given);

/** A misspelt variable would silently leave a default in force, so it is refused like a bad value. */
const unknownSettings = (
  environment: Readonly<Record<string, string | undefined>>,
  meant: Meant,
): string[] => {
  const known = new Set(settings.map(({ variable }) => variable));
  return Object.keys(environment)
    .filter((name) => name.startsWith('LEDGER_') && !name.startsWith('LEDGER_TEST_') && !known.has(name))
    .map(
      (name) => `${name}: unknown setting${meant(name, [...known]) || `. Known: ${[...known].join(', ')}`}`,
    );
};
