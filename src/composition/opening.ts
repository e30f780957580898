import { hostname } from 'node:os';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createAutomations } from '../adapters/automation/automations.ts';
import { directoryId } from '../adapters/data-directory/directory-id.ts';
import { createWorkerFolds } from '../adapters/folding/worker-folds.ts';
import { readPodIdentity } from '../adapters/identity/pod-identity.ts';
import { openAuditKeyFiles } from '../adapters/keys/audit-keys.ts';
import { openDeploymentKeys } from '../adapters/keys/deployment-keys.ts';
import { openFileKeyStore } from '../adapters/keys/file-key-store.ts';
import { openSubjectKeyReader } from '../adapters/keys/subject-key-reader.ts';
import { createMetrics } from '../adapters/metrics/metrics.ts';
import { createLeases } from '../adapters/ownership/lease-ownership.ts';
import { openFileSecretStore } from '../adapters/secrets/file-secret-store.ts';
import { openSqliteSnapshots } from '../adapters/snapshots/sqlite-snapshots.ts';
import { systemClock, systemIds, systemTimers } from '../adapters/system/system-ports.ts';
import { originOf } from '../app/audit/merkle/checkpoint.ts';
import { assertDeployment } from '../app/deployment/deployment.ts';
import type { Logger, Runtime } from '../app/ports.ts';
import { isProduction } from '../app/deployment/production.ts';
import { createPersonalMetadata } from '../app/tenancy/subjects.ts';
import type { Failpoint } from '../app/process-runner/types.ts';
import type { Config } from '../config.ts';
import { readCatalog } from './catalog-files.ts';
import type { Closers } from './closers.ts';
import { createClusters } from './clusters.ts';
import { openDirectories } from './directories.ts';
import { checkKafkaFiles } from './kafka-files.ts';
import { openStore } from './event-log.ts';
import { measure } from './measure.ts';
import { openRefusals } from './refusals.ts';
import { openServerTls } from './server-tls.ts';
import { createSystem, type System } from './system.ts';
import { createVerifier } from './token-verification.ts';

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
    refusesSimulated: isProduction(nodeEnv) && !config.simulatedHubs,
    automations,
    snapshots,
    longFolds,
    refusals,
    recordRejection,
    auditKeyFiles,
  };
};

/** Milliseconds at most that the last head of a service that stops may take. */
const LAST_HEAD_MS = 2000;

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
