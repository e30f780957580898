import { join } from 'node:path';
import { openExportFiles } from '../adapters/audit/export-files.ts';
import { createLineThreads } from '../adapters/audit/line-threads.ts';
import { serveMetrics } from '../adapters/metrics/metrics.ts';
import { createAccessJournal } from '../app/audit/access-journal.ts';
import { createDayJournal } from '../app/audit/day-journal.ts';
import { createErasures } from '../app/audit/erasure.ts';
import { createSuspects } from '../app/audit/changed-events.ts';
import { clusterIdentifier } from '../app/hubs/hub-identity.ts';
import type { Publisher } from '../app/publisher/publisher.ts';
import { createRequestHash } from '../app/commands/command.ts';
import { createConsoles } from '../app/consoles/consoles.ts';
import { createTickets } from '../app/consoles/tickets.ts';
import type { Config } from '../config.ts';
import { kinds } from '../domain/kinds.ts';
import { registry } from '../domain/registry.ts';
import { createGrpcApp } from '../grpc/app.ts';
import { createHttpApp, createHttpServer } from '../http/app.ts';
import { withoutAuditor } from '../http/audit/routes.ts';
import { createAuthenticator, createUserProvisioning } from '../http/authenticate.ts';
import { createConsoleSocket } from '../http/console-socket.ts';
import { requestIds } from '../http/exchange.ts';
import { ledgerRoutes } from '../http/ledger/routes.ts';
import { createAdmission } from '../http/limits/admission.ts';
import { versionOf } from '../http/openapi/serve.ts';
import { createPast } from '../http/osac/as-of.ts';
import { osacSurfaces } from '../http/osac/surfaces.ts';
import { createWatch } from '../http/osac/watch/routes.ts';
import { createPositions } from '../http/positions.ts';
import { createAuditApi } from './audit-api.ts';
import { measureAuditing, measureDamage, watchfulOf } from './auditing.ts';
import type { Closers } from './closers.ts';
import { embeddedStoreServices } from './event-log.ts';
import { addressOf, cannotListen, closeServer, listen, urlOf } from './listeners.ts';
import { moduleUrl, type Opened } from './opening.ts';
import { createReadiness, type ReadinessProbe } from './readiness.ts';
import { createStartGate, type StartGate } from './start-gate.ts';
import type { System } from './system.ts';
import { defined } from '../domain/json-tools.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

export type Served = Awaited<ReturnType<typeof createServed>>;

/** What the surfaces are made of, and the surfaces. */
export const createServed = async (config: Config, opened: Opened, system: System) => {
  const { clock, timers, ids, instance, logger, store, keys, keyStore, personal, openPersonal } = opened;
  const positions = createPositions({
    storeId: store.storeId,
    waitFor: system.readModels.waitFor,
    digits: store.kind === 'eventstoredb' ? 40 : 16,
  });
  const erasures = createErasures({
    runner: system.runner,
    keys: { destroy: personal.erase, has: keyStore.has },
    clock,
    logger: logger.child({ component: 'erasure' }),
  });
  const hubAdapterOf = (id: string) => system.hubs.get(id)?.adapter;
  const ending = new AbortController();
  const tickets = createTickets(opened.consoleKeys);
  const consoles = createConsoles({
    ...opened,
    runner: system.runner,
    adapterOf: hubAdapterOf,
    tickets,
    settings: {
      limitMs: config.consoleMinutes * MINUTE_MS,
      total: config.consoles,
      perTenant: config.consolesPerTenant,
    },
    ending: ending.signal,
  });
  const services = {
    consoleAccess: { consoles, tickets },
    runner: system.runner,
    commands: system.commands,
    resources: system.readModels.resources,
    timeline: system.readModels.timeline,
    secrets: opened.secrets,
    clock,
    ids,
    requestHash: createRequestHash(keys.requestHashKey),
    personal,
    people: { encrypt: keyStore.encrypt, open: openPersonal },
    conceal: keyStore.encrypt,
    access: createAccessJournal({ journal: createDayJournal(store), codec: system.codec, clock, instance }),
    hubs: {
      adapterOf: hubAdapterOf,
      healthOf: (id: string) => system.hubs.get(id)?.health,
      tenantsOn: (id: string) => system.hubs.spacesOn(id).map(({ tenant }) => tenant),
      identify: clusterIdentifier(opened.clusters),
      refusesSimulated: opened.refusesSimulated,
    },
    issuers: opened.verifier.issuers,
    maxVolumeGib: config.maxVolumeGib,
    ...(config.placementDeadline === undefined ? {} : { placementDeadline: config.placementDeadline }),
    maxDiskGib: config.maxDiskGib,
    formatPosition: positions.format,
    lookNow: system.processes.lookNow,
    past: createPast({ store, runner: system.runner, readModels: system.readModels, positions, clock }),
  };
  const surfaces = osacSurfaces(services);
  const tree = system.readModels.audit;
  const suspects = createSuspects({
    store,
    ...(tree === undefined ? {} : { tree }),
    timers,
    logger: logger.child({ component: 'log' }),
  });
  const auditing = system.auditing === undefined ? undefined : watchfulOf(system.auditing, suspects);
  const auditApi =
    auditing === undefined
      ? undefined
      : createAuditApi({
          ...services,
          auditing,
          readModels: system.readModels,
          store,
          codec: system.codec,
          registry,
          open: openPersonal,
          erasures,
          positions,
          files: await openExportFiles(join(config.dataDir, 'exports')),
          makePages: createLineThreads({
            module: moduleUrl('./export-lines-module'),
            config: {
              log: { ...opened.readerConfig },
              subjectKeys: {
                ...opened.subjectKeys,
                kek: Buffer.from(opened.subjectKeys.kek).toString('base64'),
              },
            },
            tree: auditing.reader.source,
          }),
          timers,
          logger,
          productVersion: await versionOf(),
          keepMs: config.auditExportDays * DAY_MS,
          exportsKept: config.auditExportsPerTenant,
        });
  return { positions, erasures, services, surfaces, suspects, auditing, auditApi, ending };
};

/** The service as it is reached: listening, with readiness still to be said. */
export type Listening = {
  /** Base URLs of the API and of the metrics. */
  readonly http: string;
  readonly metrics: string;
  /** `host:port` of the gRPC listener. Absent: there is none. */
  readonly grpc?: string;
  readonly readiness: ReadinessProbe;
  readonly gate: StartGate;
};

/** Listens on both addresses. `running` ends with the service; throws when an address cannot be had. */
export const serve = async (
  config: Config,
  opened: Opened,
  parts: {
    readonly system: System;
    readonly served: Served;
    readonly publisher: Publisher | undefined;
    readonly running: AbortSignal;
  },
  closers: Closers,
): Promise<Listening> => {
  const { system, served, publisher, running } = parts;
  const { positions, services, surfaces, suspects, auditing, auditApi, ending } = served;
  const { clock, timers, ids, logger, metrics, measured, store, pod, verifier, tls } = opened;
  const hasAudit = system.auditing !== undefined;
  const gate = createStartGate({ system, store, timers, signal: running, hasAudit });
  const { isBuilding } = gate;
  const readiness = createReadiness({ system, store, suspects, roles: config.roles, clock, isBuilding });
  measured.follow(system, readiness);
  measureDamage(metrics, suspects, auditing);
  if (auditing !== undefined) measureAuditing(metrics, auditing);
  const suspect = auditing?.suspect ?? suspects.suspect;
  const deploymentNamespace = config.deploymentNamespace ?? pod?.namespace;
  const scopes = new Map(config.trustedIssuers.map(({ issuer, scope }) => [issuer, scope]));
  const users = createUserProvisioning({ ...services, logger: logger.child({ component: 'users' }) });
  closers.push(() => users.idle());
  const authenticate = gate.guard(
    createAuthenticator({
      verifier,
      tenantExists: (tenant) => services.resources.get('tenant', tenant, { all: true }) !== undefined,
      monotonicMs: () => clock.monotonicMs(),
      principal: deploymentNamespace === undefined ? {} : { deploymentNamespace },
      scopeOf: (issuer) => scopes.get(issuer),
      logger,
      ensureUser: users.ensure,
    }),
  );
  const { consoles, tickets } = services.consoleAccess;
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
    looks: services,
    settings: {
      perSubject: config.watchesPerSubject,
      perTenant: config.watchesPerTenant,
      total: config.watches,
    },
  });
  measured.followWatch(watch);
  const shared = {
    authenticate,
    admission,
    cors: { origins: config.corsOrigins },
    positions,
    surfaces: config.roles.includes('api') ? surfaces : [],
    readiness: readiness.check,
    clock,
    ids,
    logger,
    recordRejection: opened.recordRejection,
    keySet: tickets.keySet,
    onRequest: measured.request,
    suspect,
    ending: ending.signal,
  };
  const app = createHttpApp({
    ...shared,
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
      ...defined({ publisher, auditing }),
      suspect,
      hubRegistry: system.hubs,
      pools: system.pools,
      hubHealth: system.hubHealth,
      hubWatches: system.observer.status,
      clusters: opened.clusters,
      ...embeddedStoreServices(opened.sqlite, system.marks, opened.logger),
    }),
    auditRoutes: auditApi?.routes ?? withoutAuditor(),
  });
  const consoleSocket = config.roles.includes('api')
    ? createConsoleSocket({
        ...shared,
        connect: consoles.connect,
        nextRequestId: requestIds(ids),
        timers,
        logger: logger.child({ component: 'consoles' }),
      })
    : undefined;
  const server = createHttpServer(app, { tls, consoleSocket });
  const metricsServer = await serveMetrics(metrics, config.metricsAddress, readiness.check).catch(
    (error: unknown) => {
      throw cannotListen('LEDGER_METRICS_ADDRESS', config.metricsAddress, error);
    },
  );
  closers.push(() => closeServer(metricsServer, 0));
  const { grpcAddress } = config;
  const grpc =
    grpcAddress === undefined
      ? undefined
      : createGrpcApp({
          ...shared,
          streams: config.roles.includes('api') ? watch.streams : [],
          ...(config.roles.includes('api') ? { connectConsole: consoles.connect } : {}),
          timers,
          openReflection: config.trustedIssuers.length === 0,
          ...(tls === undefined ? {} : { accept: tls.accept }),
        });
  closers.push(async () => {
    readiness.drain();
    if (config.drainMs > 0 && server.listening)
      await new Promise<void>((resolve) => timers.after(config.drainMs, () => resolve()));
    ending.abort();
    const closed = Promise.all([closeServer(server, config.shutdownMs), grpc?.close(config.shutdownMs)]);
    tls?.endHandshakes();
    await Promise.all([closed, consoles.idle()]);
  });
  await listen(server, 'LEDGER_HTTP_ADDRESS', config.httpAddress);
  if (grpc !== undefined && grpcAddress !== undefined)
    await listen(grpc.server, 'LEDGER_GRPC_ADDRESS', grpcAddress);
  closers.push(() => {
    readiness.drain();
  });
  return {
    http: urlOf(server),
    metrics: urlOf(metricsServer),
    ...(grpc === undefined ? {} : { grpc: addressOf(grpc.server) }),
    readiness,
    gate,
  };
};
