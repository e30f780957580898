import { constants } from 'node:fs';
import { access, stat, mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createAutomations } from '../adapters/automation/automations.ts';
import { directoryId } from '../adapters/data-directory/directory-id.ts';
import { createWorkerFolds } from '../adapters/folding/worker-folds.ts';
import { openDevelopmentIssuer, whyNoDevelopmentIssuer } from '../adapters/identity/development-issuer.ts';
import { createIssuerKeys, type IssuerKeys } from '../adapters/identity/issuer-keys.ts';
import { type PodIdentity, readPodIdentity } from '../adapters/identity/pod-identity.ts';
import { createTokenVerifier } from '../adapters/identity/token-verifier.ts';
import { openAuditKeyFiles } from '../adapters/keys/audit-keys.ts';
import { openConsoleKeyFiles } from '../adapters/keys/console-keys.ts';
import { type DeploymentKeys, openDeploymentKeys } from '../adapters/keys/deployment-keys.ts';
import { openFileKeyStore } from '../adapters/keys/file-key-store.ts';
import { privateDirectory, UnsafePermissions } from '../adapters/keys/private-files.ts';
import { openSubjectKeyReader } from '../adapters/keys/subject-key-reader.ts';
import { createKubernetesClusters } from '../adapters/management-cluster/kubernetes/kubernetes-hubs.ts';
import { createSimulatedSites } from '../adapters/site/simulated/simulated-sites.ts';
import { createSimulatedHubs } from '../adapters/management-cluster/simulated/simulated-hubs.ts';
import { createMetrics } from '../adapters/metrics/metrics.ts';
import { createLeases } from '../adapters/ownership/lease-ownership.ts';
import { openFileSecretStore } from '../adapters/secrets/file-secret-store.ts';
import { openSqliteSnapshots } from '../adapters/snapshots/sqlite-snapshots.ts';
import { systemClock, systemIds, systemTimers } from '../adapters/system/system-ports.ts';
import { createDayJournal } from '../app/audit/day-journal.ts';
import { createKnownIds } from '../app/audit/known-ids.ts';
import { originOf } from '../app/audit/merkle/checkpoint.ts';
import { createRefusalRecorder, type RefusalRecorder } from '../app/audit/refusal-recorder.ts';
import { createRequestHash } from '../app/commands/command.ts';
import { assertDeployment } from '../app/deployment/deployment.ts';
import { makeDirectory } from '../app/deployment/make-directory.ts';
import { isProduction } from '../app/deployment/production.ts';
import type { ManagementClusters } from '../app/hubs/management-cluster.ts';
import { createEventCodec } from '../app/log/event-codec.ts';
import type { EventStore } from '../app/log/event-store.ts';
import type { Runtime, SecretStore, KeyStore, Logger } from '../app/ports.ts';
import type { Failpoint } from '../app/process-runner/types.ts';
import type { TokenVerifier } from '../app/tenancy/identity.ts';
import { type PersonalMetadata, createPersonalMetadata } from '../app/tenancy/subjects.ts';
import { BadSetting, type Config } from '../config.ts';
import { auditEventTypes } from '../domain/audit/event-types.ts';
import { isSimulatedHub } from '../domain/hubs/hub-facts.ts';
import { readCatalog } from './catalog-files.ts';
import type { Closers } from './closers.ts';
import { openStore } from './event-log.ts';
import { measure } from './measure.ts';
import { openServerTls } from './server-tls.ts';
import { certificateOf, settingFile } from './setting-files.ts';
import { createSystem, type System } from './system.ts';

export type Clusters = ManagementClusters & { close(): Promise<void> };

/**
 * Adapters of all hubs: those whose id says that they are simulated, and those that have a kubeconfig. Threads start
 * with the first call on a hub of theirs.
 */
export const createClusters = (
  options: {
    /** Folder of the simulated hubs' files. */
    readonly dir: string;
    readonly secrets: Pick<SecretStore, 'reveal'>;
  } & Pick<Runtime, 'clock' | 'timers' | 'instance' | 'logger'>,
): Clusters => {
  const { dir, instance, clock, timers, secrets, logger } = options;
  const simulated = createSimulatedHubs({ dir, clock, timers, instance });
  const kubernetes = createKubernetesClusters({
    secrets,
    clock,
    timers,
    logger: logger.child({ component: 'hubs' }),
  });
  return {
    of: (hub) => (isSimulatedHub(hub.id) ? simulated.of(hub) : kubernetes.of(hub)),
    forget: (id) => kubernetes.forget(id),
    hostOf: kubernetes.hostOf,
    candidate: (hub, kubeconfig) => {
      const known = isSimulatedHub(hub.id) ? simulated.of(hub) : undefined;
      // A simulated hub takes any kubeconfig, and is not closed by who only looked at it.
      return known === undefined
        ? kubernetes.candidate(hub, kubeconfig)
        : { ...known, close: () => Promise.resolve() };
    },
    close: async () => {
      await Promise.all([simulated.close(), kubernetes.close()]);
    },
  };
};

/**
 * The directories that the settings name, made where they are not there yet. Throws BadSetting with the variable when one
 * cannot be had, cannot be written to, holds data that every user of the machine could replace, or secrets that others may
 * read.
 */
export const openDirectories = async ({
  dataDir,
  secretsDir,
}: Pick<Config, 'dataDir' | 'secretsDir'>): Promise<void> => {
  await usable('LEDGER_DATA_DIR', dataDir, './data');
  await refuseForEverybody(dataDir);
  await usable('LEDGER_SECRETS_DIR', secretsDir, './data/secrets');
  await privateDirectory(secretsDir).catch((error: unknown) => {
    throw error instanceof UnsafePermissions
      ? new BadSetting(`LEDGER_SECRETS_DIR: ${error.message}`, { cause: error })
      : error;
  });
};

/** A sticky bit does not help: whoever comes first could lay files there that the service takes for its own. */
const refuseForEverybody = async (path: string): Promise<void> => {
  const { mode } = await stat(path);
  if ((mode & constants.S_IWOTH) === 0) return;
  const shown = (mode & 0o7777).toString(8).padStart(4, '0');
  throw new BadSetting(
    `LEDGER_DATA_DIR: every user of this machine can write to ${path} (mode ${shown}); run: chmod o-w '${path}'`,
  );
};

const usable = async (variable: string, path: string, example: string): Promise<void> => {
  try {
    await makeDirectory(path);
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new BadSetting(
      `${variable}: ${path} is not a directory that the service can write to (${why}). Example: ${variable}=${example}`,
      { cause: error },
    );
  }
};

const TLS_CA = { variable: 'LEDGER_KAFKA_TLS_CA', example: '/etc/kafka/ca.pem' };
const PASSWORD = { variable: 'LEDGER_KAFKA_SASL_PASSWORD_FILE', example: '/etc/kafka/password' };

/**
 * Files of the brokers' settings that cannot be used are refused at the start, as those of other settings are. They are read
 * anew for each connection (a password changes), so that this is a look only. Throws BadSetting with the variable.
 */
export const checkKafkaFiles = async ({
  kafkaBrokers: brokers,
  kafkaTlsCa: tlsCa,
  kafkaSaslPasswordFile: passwordFile,
}: Pick<Config, 'kafkaBrokers' | 'kafkaTlsCa' | 'kafkaSaslPasswordFile'>): Promise<void> => {
  if (brokers.length === 0) return;
  if (tlsCa !== undefined && tlsCa !== 'system')
    certificateOf(TLS_CA, tlsCa, await settingFile(TLS_CA, tlsCa));
  if (passwordFile !== undefined) await settingFile(PASSWORD, passwordFile);
};

/** The record of refusals on this instance's own ports. */
const openRefusals = ({
  keys,
  keyStore,
  store,
  ...ports
}: {
  readonly store: EventStore;
  readonly keys: Pick<DeploymentKeys, 'requestHashKey'>;
  readonly keyStore: Pick<KeyStore, 'encrypt'>;
  readonly personal: Pick<PersonalMetadata, 'personal' | 'source'>;
} & Runtime): RefusalRecorder =>
  createRefusalRecorder({
    ...ports,
    journal: createDayJournal(store),
    codec: createEventCodec(auditEventTypes),
    requestHash: createRequestHash(keys.requestHashKey),
    conceal: keyStore.encrypt,
    knownIds: createKnownIds(store),
  });

/**
 * Verifies tokens of the configured issuers, of the development issuer where there are none, and, in a pod, of the
 * cluster's own service accounts. Throws BadSetting when the development issuer is refused here.
 */
export const createVerifier = async (
  config: Pick<Config, 'trustedIssuers' | 'tokenAudience' | 'httpAddress' | 'grpcAddress' | 'secretsDir'>,
  { pod, nodeEnv, logger }: { pod: PodIdentity | undefined; nodeEnv: string | undefined; logger: Logger },
): Promise<TokenVerifier> => {
  const issuers = new Map<string, IssuerKeys>();
  const now = (): number => performance.now();
  const onFailure = (issuer: string, error: unknown): void =>
    logger.warn({ err: error, issuer }, 'keys of a token issuer not fetched');
  for (const { issuer } of config.trustedIssuers)
    issuers.set(issuer, createIssuerKeys({ issuer, now, onFailure }));
  if (issuers.size === 0) {
    const why = [config.httpAddress, config.grpcAddress]
      .map((address) => address && whyNoDevelopmentIssuer({ nodeEnv, listenHost: address.host }))
      .find((reason) => reason !== undefined);
    if (why !== undefined) throw new BadSetting(`LEDGER_TRUSTED_ISSUERS: ${why}`);
    const development = await openDevelopmentIssuer(config.secretsDir);
    issuers.set(development.issuer, development.keys);
  }
  // Service accounts of the cluster do not sign in: their issuer is trusted, not shown.
  const advertised = [...issuers.keys()];
  if (pod !== undefined && !issuers.has(pod.issuer))
    issuers.set(pod.issuer, createIssuerKeys({ issuer: pod.issuer, fetch: pod.fetch, now, onFailure }));
  const { tokenAudience: audience } = config;
  return createTokenVerifier({
    issuers,
    advertised,
    now: Date.now,
    ...(audience === undefined ? {} : { audience }),
  });
};

/** What a process has before it opens anything. */
export type Process = {
  /** Names this run of the service on all its events: tenants read them, and learn nothing of the provider's machines. */
  readonly instance: string;
  /** The same for the provider, in leases and in the log: host, process id and that name. */
  readonly holder: string;
  readonly nodeEnv: string | undefined;
} & Pick<Runtime, 'clock' | 'timers' | 'ids' | 'logger'>;

export const thisProcess = (logger: Logger, nodeEnv: string | undefined): Process => {
  const ids = systemIds();
  const instance = ids.uuidv7().slice(-12);
  const holder = `${hostname()}-${process.pid}-${instance}`;
  return { clock: systemClock(), timers: systemTimers(), ids, instance, holder, logger, nodeEnv };
};

export type Opened = Awaited<ReturnType<typeof openPorts>>;

/**
 * Opens what the settings name: keys, secrets, the event log, hubs. Throws with a sentence for the operator; what was
 * opened by then is left to `closers`.
 */
export const openPorts = async (config: Config, ports: Process, closers: Closers) => {
  const { clock, instance, logger, nodeEnv } = ports;
  await openDirectories(config);
  await checkKafkaFiles(config);
  const tls = await openServerTls(config, ports);
  if (tls !== undefined) closers.push(tls.stop);
  const metrics = createMetrics();
  closers.push(() => {
    metrics.close();
  });
  const catalog = config.catalog === undefined ? undefined : readCatalog(config.catalog);
  const pod = await readPodIdentity();
  const verifier = await createVerifier(config, { pod, nodeEnv, logger });
  const keys = await openDeploymentKeys(config.secretsDir);
  const secrets = await openFileSecretStore({
    directory: join(config.secretsDir, 'values'),
    keys,
    now: () => clock.now(),
  });
  const subjectKeys = { directory: join(config.secretsDir, 'subjects'), kek: keys.subjectKek };
  const keyStore = await openFileKeyStore(subjectKeys);
  const openPersonal = openSubjectKeyReader(subjectKeys);
  const { store, sqlite, readerConfig, openFeed, foreignEvents } = await openStore(config, instance, logger);
  closers.push(() => store.close());
  metrics.onScrape(async () => {
    metrics.foreignEvents.reset();
    metrics.foreignEvents.inc(foreignEvents());
  });
  const deployment = await assertDeployment({
    ...ports,
    store,
    fingerprint: keys.fingerprint,
    name: config.deploymentName,
  });
  const directory = directoryId(config.dataDir);
  const leases = createLeases({ ...ports, store, instance: ports.holder, directory });
  const clusters = createClusters({ ...ports, dir: join(config.dataDir, 'hubs'), secrets });
  closers.push(() => clusters.close());
  const sites = createSimulatedSites({ ...ports, dir: join(config.dataDir, 'sites') });
  closers.push(() => sites.close());
  const automations = createAutomations({ secrets });
  closers.push(() => automations.close());
  const snapshots = openSqliteSnapshots({
    file: join(config.dataDir, 'snapshots.sqlite'),
    storeId: store.storeId,
    logger,
  });
  closers.push(() => snapshots.close());
  const longFolds = createWorkerFolds({
    workerData: { module: moduleUrl('./folding-module'), config: { ...readerConfig } },
    logger,
  });
  closers.push(() => longFolds.close());
  const measured = measure(metrics);
  // One for everybody: who is erased is forgotten by all of them.
  const personal = createPersonalMetadata({ keys: keyStore });
  const refusals = openRefusals({ ...ports, store, keys, keyStore, personal });
  const recordRejection = measured.recordRejection(logger, refusals.record);
  await mkdir(join(config.dataDir, 'read-models'), { recursive: true });
  const auditKeyFiles = config.roles.includes('auditor')
    ? await openAuditKeyFiles({
        directory: join(config.secretsDir, 'audit'),
        kek: keys.auditKek,
        origin: originOf(store.storeId),
      })
    : undefined;
  const consoleKeys = await openConsoleKeyFiles({
    directory: join(config.secretsDir, 'console'),
    kek: keys.consoleKek,
    now: () => Date.parse(clock.now()),
  });
  return {
    ...ports,
    metrics,
    measured,
    tls,
    catalog,
    pod,
    verifier,
    keys,
    secrets,
    subjectKeys,
    keyStore,
    personal,
    openPersonal,
    store,
    deployment,
    directory,
    leases,
    sqlite,
    readerConfig,
    openFeed,
    clusters,
    sites,
    refusesSimulated: isProduction(nodeEnv) && !config.simulatedHubs,
    automations,
    snapshots,
    longFolds,
    refusals,
    recordRejection,
    auditKeyFiles,
    consoleKeys,
  };
};

/** Milliseconds at most that the last head of a service that stops may take. */
const LAST_HEAD_MS = 2000;

const hotPoolOf = ({
  hotPoolServiceLevel: serviceLevel,
  hotPoolOrdersPerHour: ordersPerHour,
  ...config
}: Config) => ({
  serviceLevel,
  ordersPerHour,
  leadHours: config.hotPoolLeadMinutes / 60,
  maxConcurrent: config.hotPoolMaxConcurrent,
});

/** The parts that work on the log, in the roles that the settings give. */
export const openSystem = async (
  config: Config,
  opened: Opened,
  failpoint: Failpoint | undefined,
  closers: Closers,
): Promise<System> => {
  const { store, measured, readerConfig, subjectKeys, auditKeyFiles, leases, directory } = opened;
  const system = await createSystem({
    ...opened,
    tenantsSeeJobErrors: config.tenantsSeeJobErrors,
    settings: { hotPool: hotPoolOf(config) },
    ownership: leases('processes'),
    driver: { deployment: opened.deployment, holder: directory },
    ...(auditKeyFiles !== undefined && {
      auditor: {
        keyFiles: auditKeyFiles,
        ownership: leases('auditor'),
        settings: { lastMs: Math.min(LAST_HEAD_MS, config.shutdownMs) },
      },
    }),
    readModels: {
      dir: join(config.dataDir, 'read-models'),
      hooks: measured.views,
      openFeed: opened.openFeed,
      source: {
        kind: 'worker',
        storeId: store.storeId,
        readerModule: moduleUrl('./log-reader-module'),
        readerConfig: { ...readerConfig },
        viewsModule: moduleUrl('./views-module'),
        viewsConfig: {
          subjectKeys: { ...subjectKeys, kek: Buffer.from(subjectKeys.kek).toString('base64') },
          audit: auditKeyFiles !== undefined,
        },
      },
    },
    processFile: join(config.dataDir, 'processes.sqlite'),
    hooks: measured.commandsAndProcesses,
    ...(failpoint === undefined ? {} : { failpoint }),
  });
  closers.push(() => system.close());
  return system;
};

/** URL of a module beside this one, whether it runs from TypeScript or was compiled. */
export const moduleUrl = (path: string): string =>
  new URL(`${path}${import.meta.url.slice(-3)}`, import.meta.url).href;
