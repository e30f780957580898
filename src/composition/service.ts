import { hostname } from 'node:os';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readPodIdentity } from '../adapters/identity/pod-identity.ts';
import { openExportFiles } from '../adapters/audit/export-files.ts';
import { openAuditKeyFiles } from '../adapters/keys/audit-keys.ts';
import { openDeploymentKeys } from '../adapters/keys/deployment-keys.ts';
import { openFileKeyStore } from '../adapters/keys/file-key-store.ts';
import { openSubjectKeyReader } from '../adapters/keys/subject-key-reader.ts';
import { createMetrics, serveMetrics } from '../adapters/metrics/metrics.ts';
import { createLeaseOwnership } from '../adapters/ownership/lease-ownership.ts';
import { openFileSecretStore } from '../adapters/secrets/file-secret-store.ts';
import { createWorkerFolds } from '../adapters/folding/worker-folds.ts';
import { openSqliteSnapshots } from '../adapters/snapshots/sqlite-snapshots.ts';
import { systemClock, systemIds, systemTimers } from '../adapters/system/system-ports.ts';
import { originOf } from '../app/audit/merkle/checkpoint.ts';
import { assertDeployment } from '../app/deployment.ts';
import type { Logger, Timers } from '../app/ports.ts';
import type { Failpoint } from '../app/process-runner/types.ts';
import type { Publisher } from '../app/publisher/publisher.ts';
import { createRequestHash } from '../app/request-hash.ts';
import { createPersonalMetadata } from '../app/subjects.ts';
import { createErasures } from '../app/audit/erasure.ts';
import type { RefusalRecorder } from '../app/audit/refusal-recorder.ts';
import { type Config, type Role } from '../config.ts';
import { kinds } from '../domain/kinds.ts';
import { registry } from '../domain/registry.ts';
import { createUserProvisioning } from '../http/user-provisioning.ts';
import { createHttpApp, createHttpServer } from '../http/app.ts';
import { createAuthenticator } from '../http/authenticate.ts';
import { withoutAuditor } from '../http/audit/routes.ts';
import { versionOf } from '../http/openapi/serve.ts';
import { ledgerRoutes } from '../http/ledger/routes.ts';
import { createAdmission } from '../http/limits/admission.ts';
import { createPositions } from '../http/positions.ts';
import { createPast } from '../http/osac/as-of.ts';
import { osacSurfaces } from '../http/osac/surfaces.ts';
import { createWatch } from '../http/osac/watch/routes.ts';
import { readCatalog } from './catalog-files.ts';
import { loadCatalog } from './catalog-loader.ts';
import { createAutomations } from '../adapters/automation/automations.ts';
import { clusterIdentifier } from '../app/hub-identity.ts';
import { createAuditApi, type AuditApi } from './audit-api.ts';
import { measureAuditing } from './auditing.ts';
import { createClusters } from './clusters.ts';
import { embeddedStoreServices, openStore } from './event-log.ts';
import { cannotListen, closeServer, listen, urlOf } from './listeners.ts';
import { measure } from './measure.ts';
import { openPublisher } from './publishing.ts';
import { createReadiness } from './readiness.ts';
import { openRefusals } from './refusals.ts';
import { createStartGate } from './start-gate.ts';
import { createSystem, type System } from './system.ts';
import { startUpkeep, type Upkeep } from './upkeep.ts';
import { createVerifier } from './token-verification.ts';

export type ServiceOptions = {
  readonly logger: Logger;
  readonly nodeEnv: string | undefined;
  /** Writes the one line that names the bound addresses, whatever the log level: scripts wait for it. */
  readonly announce: (fields: object, message: string) => void;
  /** Fires when the service is told to stop; a start that is under way is then taken back, and throws StartStopped. */
  readonly stop?: AbortSignal;
  /** Tests only: called at the named points of the process runner. */
  readonly failpoint?: Failpoint;
};

export type Service = {
  readonly http: string;
  readonly metrics: string;
  /** Stops in order: no new requests, running ones finish, processes stop, stores close. */
  stop(): Promise<void>;
  /** Rejects when a part that must run has broken down for good. */
  readonly broken: Promise<never>;
};

export class StartStopped extends Error {
  override readonly name = 'StartStopped';
}

/** Builds the whole service from its settings and starts it. Throws with a sentence for the operator when it cannot. */
export const startService = async (
  config: Config,
  { logger, announce, nodeEnv, stop, failpoint }: ServiceOptions,
): Promise<Service> => {
  const clock = systemClock();
  const timers = systemTimers();
  const ids = systemIds();
  const instance = `${hostname()}-${process.pid}-${ids.uuidv7().slice(-12)}`;
  const closers: (() => Promise<void> | void)[] = [];
  /** One part that cannot close does not keep the others open; the first such error is thrown at the end. */
  const closeAll = async (): Promise<void> => {
    const errors: unknown[] = [];
    for (const close of closers.splice(0).toReversed()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  };

  try {
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
    const { store, sqlite, readerConfig } = await openStore(config, instance, logger);
    closers.push(() => store.close());
    await assertDeployment({ store, fingerprint: keys.fingerprint, clock, ids, instance });

    const clusters = createClusters({
      dir: join(config.dataDir, 'hubs'),
      instance,
      secrets,
      clock,
      timers,
      logger,
    });
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
    const refusals = openRefusals({ store, keys, keyStore, clock, timers, ids, instance, logger });
    const recordRejection = measured.recordRejection(logger, refusals.record);
    await mkdir(join(config.dataDir, 'read-models'), { recursive: true });
    const auditKeyFiles = config.roles.includes('auditor')
      ? await openAuditKeyFiles({
          directory: join(config.secretsDir, 'audit'),
          kek: keys.auditKek,
          origin: originOf(store.storeId),
        })
      : undefined;
    const system = await createSystem({
      store,
      clock,
      timers,
      ids,
      logger,
      instance,
      clusters,
      automations,
      secrets,
      snapshots,
      longFolds,
      openPersonal,
      recordRejection,
      ownership: createLeaseOwnership({ store, name: 'processes', instance, clock, timers, logger }),
      ...(auditKeyFiles !== undefined && {
        auditor: {
          keyFiles: auditKeyFiles,
          ownership: createLeaseOwnership({ store, name: 'auditor', instance, clock, timers, logger }),
        },
      }),
      readModels: {
        dir: join(config.dataDir, 'read-models'),
        hooks: measured.views,
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

    const running = new AbortController();
    const background: { parts?: Background; upkeep?: Upkeep } = {};
    closers.push(async () => {
      running.abort();
      await background.parts?.ended;
      await background.upkeep?.ended;
      await system.idle();
    });

    const publisher = await openPublisher(config, {
      store,
      clock,
      timers,
      ids,
      instance,
      logger,
      hooks: { published: measured.published },
      readModels: system.readModels,
    });
    if (publisher !== undefined && config.roles.includes('publisher')) measured.followPublisher(publisher);
    const positions = createPositions({
      storeId: store.storeId,
      waitFor: system.readModels.waitFor,
      digits: store.kind === 'eventstoredb' ? 40 : 16,
    });
    const personal = createPersonalMetadata({ keys: keyStore });
    const erasures = createErasures({
      runner: system.runner,
      keys: { destroy: personal.erase },
      clock,
      logger: logger.child({ component: 'erasure' }),
    });
    const services = {
      runner: system.runner,
      commands: system.commands,
      resources: system.readModels.resources,
      timeline: system.readModels.timeline,
      secrets,
      clock,
      ids,
      requestHash: createRequestHash(keys.requestHashKey),
      personal,
      people: { encrypt: keyStore.encrypt, open: openPersonal },
      hubs: {
        adapterOf: (id: string) => system.hubs.get(id)?.adapter,
        identify: clusterIdentifier(clusters),
      },
      issuers: verifier.issuers,
      formatPosition: positions.format,
      past: createPast({ store, runner: system.runner, readModels: system.readModels, positions, clock }),
    };
    const surfaces = osacSurfaces(services);
    const auditApi =
      system.auditing === undefined
        ? undefined
        : createAuditApi({
            ...services,
            auditing: system.auditing,
            readModels: system.readModels,
            store,
            codec: system.codec,
            registry,
            open: openPersonal,
            erasures,
            positions,
            files: await openExportFiles(join(config.dataDir, 'exports')),
            timers,
            instance,
            logger,
            productVersion: await versionOf(),
            keepMs: config.auditExportDays * DAY_MS,
          });
    const readiness = createReadiness({ system, store, roles: config.roles, clock });
    measured.follow(system, readiness);
    if (system.auditing !== undefined) measureAuditing(metrics, system.auditing);
    const gate = createStartGate({ system, store, timers, signal: running.signal });
    const deploymentNamespace = config.deploymentNamespace ?? pod?.namespace;
    const users = createUserProvisioning({ ...services, logger: logger.child({ component: 'users' }) });
    closers.push(() => users.idle());
    const authenticate = gate.guard(
      createAuthenticator({
        verifier,
        tenantExists: (tenant) => services.resources.get('tenant', tenant, { all: true }) !== undefined,
        monotonicMs: () => clock.monotonicMs(),
        principal: deploymentNamespace === undefined ? {} : { deploymentNamespace },
        ensureUser: users.ensure,
      }),
    );
    const ending = new AbortController();
    const admission = createAdmission(config, clock);
    const watch = createWatch({
      changes: system.readModels.changes,
      kinds,
      authenticate,
      admission,
      positions,
      clock,
      timers,
      logger: logger.child({ component: 'watch' }),
      ending: ending.signal,
      settings: {
        perSubject: config.watchesPerSubject,
        perTenant: config.watchesPerTenant,
        total: config.watches,
      },
    });
    measured.followWatch(watch);
    const app = createHttpApp({
      authenticate,
      admission,
      cors: { origins: config.corsOrigins },
      positions,
      surfaces: config.roles.includes('api') ? surfaces : [],
      watches: config.roles.includes('api') ? watch.routes : [],
      ledgerRoutes: ledgerRoutes({
        ...services,
        store,
        codec: system.codec,
        registry,
        positions,
        readModels: system.readModels,
        runOf: system.runOf,
        processes: system.processes,
        lanes: system.processes,
        ...(publisher === undefined ? {} : { publisher }),
        ...(system.auditing === undefined ? {} : { auditing: system.auditing }),
        hubRegistry: system.hubs,
        hubHealth: system.hubHealth,
        hubWatches: system.observer.status,
        clusters,
        ...embeddedStoreServices(sqlite),
      }),
      auditRoutes: auditApi?.routes ?? withoutAuditor(),
      readiness: readiness.check,
      ending: ending.signal,
      clock,
      ids,
      logger,
      recordRejection,
      onRequest: measured.request,
    });
    const server = createHttpServer(app);
    const metricsServer = await serveMetrics(metrics, config.metricsAddress).catch((error: unknown) => {
      throw cannotListen('LEDGER_METRICS_ADDRESS', config.metricsAddress, error);
    });
    closers.push(() => closeServer(metricsServer, 0));
    await listen(server, 'LEDGER_HTTP_ADDRESS', config.httpAddress);
    closers.push(async () => {
      readiness.drain();
      if (config.drainMs > 0)
        await new Promise<void>((resolve) => timers.after(config.drainMs, () => resolve()));
      ending.abort();
      await closeServer(server, config.shutdownMs);
    });
    closers.push(() => {
      readiness.drain();
    });

    // Only now, so that a start which is refused for its addresses has taken no lease and touched no hub.
    const parts = runInBackground(
      { system, publisher, refusals, auditApi },
      config.roles,
      running.signal,
      logger,
    );
    background.parts = parts;
    const addresses = { http: urlOf(server), metrics: urlOf(metricsServer) };
    announce({ ...addresses, store: store.kind, roles: config.roles, instance }, 'listening');
    sayWhatIdles(config, logger);
    const privateSurface = surfaces.find(({ surface }) => surface === 'private');
    // The catalogue's references are looked up in the read model, so that has to know the log first.
    const finish = async (): Promise<void> => {
      await gate.passed;
      background.upkeep = startUpkeep(
        {
          ...services,
          erasures,
          timers,
          logger,
          applied: positions.applied,
          onDangling: (total) => metrics.danglingReferences.set(total),
        },
        running.signal,
      );
      await background.upkeep.first;
      if (catalog !== undefined && privateSurface !== undefined)
        await loadCatalog(catalog, {
          ...services,
          privateSurface,
          positions,
          logger,
          signal: running.signal,
        });
    };
    await Promise.race([finish(), parts.broken, stopped(stop)]);
    readiness.started();
    return { ...addresses, stop: closeAll, broken: parts.broken };
  } catch (error) {
    // Why it cannot start matters more than how well it was taken down, and must be said even if that hangs.
    await within(CLOSE_MS, timers, closeAll()).catch((problem: unknown) =>
      logger.error({ err: problem }, 'not closed in order'),
    );
    throw error;
  }
};

/** Rejects when the signal fires. */
const stopped = (stop: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    const end = (): void => reject(new StartStopped('told to stop during the start'));
    if (stop?.aborted === true) end();
    stop?.addEventListener('abort', end, { once: true });
  });

const DAY_MS = 86_400_000;

/** Milliseconds that the parts of a start that failed get to close. */
const CLOSE_MS = 5_000;

/** What the work comes to; rejects when that takes longer than `ms` milliseconds. */
const within = async (ms: number, timers: Timers, work: Promise<void>): Promise<void> => {
  let cancel = (): void => undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = timers.after(ms, () => reject(new Error(`not within ${ms} ms`)));
  });
  await Promise.race([work, late]).finally(() => cancel());
};

const moduleUrl = (path: string): string =>
  new URL(`${path}${import.meta.url.slice(-3)}`, import.meta.url).href;

type Background = { readonly ended: Promise<unknown>; readonly broken: Promise<never> };

/** Parts that follow the log for as long as the service runs. One that ends by itself takes the service down. */
const runInBackground = (
  {
    system,
    publisher,
    refusals,
    auditApi,
  }: {
    readonly system: System;
    readonly publisher: Publisher | undefined;
    readonly refusals: RefusalRecorder;
    readonly auditApi: AuditApi | undefined;
  },
  roles: readonly Role[],
  signal: AbortSignal,
  logger: Logger,
): Background => {
  const parts = [
    { name: 'hub registry', ended: system.runHubRegistry(signal) },
    { name: 'record of refusals', ended: refusals.run(signal) },
    ...(roles.includes('processes') ? [{ name: 'processes', ended: system.runProcesses(signal) }] : []),
    ...(system.auditing === undefined ? [] : [{ name: 'auditor', ended: system.auditing.run(signal) }]),
    ...(auditApi === undefined ? [] : [{ name: 'exports', ended: auditApi.exports.run(signal) }]),
    ...(roles.includes('publisher') && publisher !== undefined
      ? [{ name: 'publisher', ended: publisher.run(signal) }]
      : []),
  ];
  const broken = new Promise<never>((_, reject) => {
    for (const { name, ended } of parts) {
      ended.then(
        () => signal.aborted || reject(new Error(`${name} ended by itself`)),
        (error: unknown) => {
          logger.error({ err: error, part: name }, 'a part of the service broke down');
          reject(new Error(`${name} broke down`, { cause: error }));
        },
      );
    }
  });
  broken.catch(() => undefined);
  return { ended: Promise.allSettled(parts.map(({ ended }) => ended)), broken };
};

/** Roles that were asked for and have nothing to do say so: a silent idle part would look like a working one. */
const sayWhatIdles = (config: Config, logger: Logger): void => {
  if (config.roles.includes('publisher') && config.kafkaBrokers.length === 0)
    logger.warn({ role: 'publisher' }, 'role publisher idles: no LEDGER_KAFKA_BROKERS are set');
};
