import { createHmac, randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  SignJWT,
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  type CryptoKey,
  type JWTVerifyGetKey,
} from 'jose';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { createTokenVerifier } from '../../../src/adapters/identity/token-verifier.ts';
import { consolesOf } from '../consoles/access.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createAccessJournal } from '../../../src/app/audit/access-journal.ts';
import { createDayJournal } from '../../../src/app/audit/day-journal.ts';
import { createKnownIds } from '../../../src/app/audit/known-ids.ts';
import { createRefusalRecorder } from '../../../src/app/audit/refusal-recorder.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { IssuerScope } from '../../../src/domain/tenancy/trusted-issuers.ts';
import type { ClusterIdentifier } from '../../../src/app/hubs/hub-identity.ts';
import type { ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { Encrypted } from '../../../src/app/log/metadata.ts';
import { createNames } from '../../../src/app/names/names.ts';
import type { RejectionRecord, SecretStore } from '../../../src/app/ports.ts';
import { createRequestHash } from '../../../src/app/commands/command.ts';
import { createPersonalMetadata } from '../../../src/app/tenancy/subjects.ts';
import { createResourceCommands } from '../../../src/app/commands/resource-commands.ts';
import { caughtUpWith } from '../../../src/composition/system.ts';
import { actingKinds, meteredKinds } from '../../../src/domain/acting-kinds.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { revealing } from '../../../src/domain/personal.ts';
import { eventTypes, registry } from '../../../src/domain/registry.ts';
import { createGrpcApp, type GrpcAppOptions } from '../../../src/grpc/app.ts';
import { createHttpApp, createHttpServer, type HttpLimits, type Readiness } from '../../../src/http/app.ts';
import {
  createAuthenticator,
  type Authenticate,
  createUserProvisioning,
} from '../../../src/http/authenticate.ts';
import type { RequestHook } from '../../../src/http/exchange.ts';
import { ledgerRoutes, type LedgerServices } from '../../../src/http/ledger/routes.ts';
import { createAdmission, type AdmissionSettings } from '../../../src/http/limits/admission.ts';
import type { CorsSettings } from '../../../src/http/limits/cors.ts';
import { createPast } from '../../../src/http/osac/as-of.ts';
import { osacSurfaces } from '../../../src/http/osac/surfaces.ts';
import { createWatch, type WatchServices } from '../../../src/http/osac/watch/routes.ts';
import { createPositions, type PositionsOptions } from '../../../src/http/positions.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { auditView } from '../../../src/projections/audit/audit-view.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { timelineView } from '../../../src/projections/timeline/timeline-view.ts';
import { usageView } from '../../../src/projections/usage/usage-view.ts';
import { startAuditPart } from '../audit/audit-part.ts';
import { eventually } from '../eventually.ts';
import { recordingLogger, silentLogger } from '../loggers.ts';

/** What specs over HTTP need beside the service itself. */
export * from './caller.ts';
export { seedCatalogue } from './seed-catalogue.ts';

/**
 * The HTTP side over the real command runner and read models on an event log in memory: everything but threads,
 * files and hubs.
 */
export type TestService = Awaited<ReturnType<typeof startTestService>>;

export type TestServiceOptions = {
  readonly store?: EventStore;
  readonly hub?: ManagementCluster;
  readonly identify?: ClusterIdentifier;
  readonly positions?: Partial<PositionsOptions>;
  readonly readiness?: () => Readiness;
  readonly onRequest?: RequestHook;
  readonly ledger?: Partial<LedgerServices>;
  /** Default: `memorySecrets()`. */
  readonly secrets?: ReturnType<typeof memorySecrets>;
  readonly limits?: HttpLimits;
  /** What callers may take; default: everything. */
  readonly admission?: Partial<AdmissionSettings>;
  readonly cors?: CorsSettings;
  readonly slowReaderMs?: number;
  readonly ending?: AbortSignal;
  readonly watch?: NonNullable<WatchServices['settings']>;
  /** What the gRPC listener is given beside what both have. */
  readonly grpc?: Pick<
    GrpcAppOptions,
    'keepalive' | 'openReflection' | 'arrivalMs' | 'bodies' | 'connectConsole'
  >;
  /** Days that watches resume back. Default 90. */
  readonly retentionDays?: number;
  /** Keeps neither log lines nor rejections: for specs that watch the heap. */
  readonly forgetful?: boolean;
  /** Callers are made Users, as the service does; default: not, so that specs count their own events only. */
  readonly provisionUsers?: boolean;
  /** Namespace whose service accounts may be admins. Default: none is. */
  readonly deploymentNamespace?: string;
  /** What the issuer of `token` may claim. Default: everything. */
  readonly issuerScope?: IssuerScope;
  /** `/api/audit/v1` is served, with heads that are signed and exports that are made unless told otherwise. */
  readonly audit?: {
    readonly signs?: boolean;
    readonly exports?: boolean;
    /** Refusals are stored, too, within milliseconds. */
    readonly refusals?: boolean;
    /** Milliseconds at least between two looks at leaves. */
    readonly sampleMs?: number;
    /** Finished exports that are kept of each tenant. */
    readonly exportsKept?: number;
  };
  /** Stands in front of the check of tokens, as the gate of a start does. */
  readonly guard?: (readModels: ReadModels, authenticate: Authenticate) => Authenticate;
  /** Told which run is to look at its hub. */
  readonly lookNow?: (workflow: string, runId: string) => void;
  /** Told of every question to the read model: its name and what was asked. */
  readonly onRead?: (question: string, asked: readonly unknown[]) => void;
};

const UNLIMITED: AdmissionSettings = {
  rateLimitTenant: 0,
  byteLimitTenant: 0,
  rateLimitAdmin: 0,
  rateLimitAddress: 0,
  concurrentRequests: 0,
};

export const ISSUER = 'https://sso.example/realms/osac';

export const memorySecrets = (): SecretStore & { readonly values: Map<string, Uint8Array> } => {
  const values = new Map<string, Uint8Array>();
  return {
    values,
    put: async ({ id, version, kind, value }) => {
      values.set(`${id} ${version}`, value);
      return {
        id,
        version,
        kind,
        fingerprint: createHmac('sha256', 'k').update(value).digest('hex').slice(0, 16),
      };
    },
    reveal: async ({ id, version }) => values.get(`${id} ${version}`),
    remove: async ({ id, version }) => void values.delete(`${id} ${version}`),
    async *list() {},
  };
};

const hidden: Encrypted = { alg: 'A256GCM', keyId: 'k', nonce: 'n', ct: 'c', tag: 't' };

let signer: Promise<{ key: CryptoKey; keys: JWTVerifyGetKey }> | undefined;
const sharedSigner = (): Promise<{ key: CryptoKey; keys: JWTVerifyGetKey }> =>
  (signer ??= (async () => {
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'test' };
    return { key: privateKey, keys: createLocalJWKSet({ keys: [jwk] }) };
  })());

export type TokenOptions = {
  readonly user?: string;
  readonly tenants?: readonly string[];
  readonly admin?: boolean;
  /** Realm roles, for example `tenant-admin`. */
  readonly roles?: readonly string[];
  /** Claims that come on top of these, or in place of them. */
  readonly claims?: object;
  readonly expiresIn?: number;
};

const spied = <Reader extends object>(reader: Reader, onRead: TestServiceOptions['onRead']): Reader =>
  onRead === undefined
    ? reader
    : new Proxy(reader, {
        get: (target, name, receiver): unknown => {
          const member: unknown = Reflect.get(target, name, receiver);
          if (typeof member !== 'function') return member;
          return (...asked: unknown[]): unknown => {
            onRead(String(name), asked);
            return Reflect.apply(member, target, asked);
          };
        },
      });

export const startTestService = async (options: TestServiceOptions = {}) => {
  const store = options.store ?? createMemoryEventStore();
  const clock = systemClock();
  const ids = systemIds();
  const codec = createEventCodec(eventTypes);
  const rejections: RejectionRecord[] = [];
  const people = createMemoryKeyStore();
  const metadata = createPersonalMetadata({ keys: people });
  const requestHash = createRequestHash(Buffer.from('test deployment'));
  const refusals = createRefusalRecorder({
    journal: createDayJournal(store),
    codec,
    clock,
    timers: systemTimers(),
    ids,
    instance: 'test',
    logger: silentLogger,
    requestHash,
    conceal: people.encrypt,
    knownIds: createKnownIds(store),
    personal: metadata,
    everyMs: 5,
  });
  const recordRejection = (record: RejectionRecord): void => {
    if (options.audit?.refusals === true) refusals.record(record);
    if (options.forgetful !== true) rejections.push(record);
  };
  const stopping = new AbortController();
  const refusing = options.audit?.refusals === true ? refusals.run(stopping.signal) : Promise.resolve();
  const runner = createCommandRunner({ store, codec, clock, instance: 'test', recordRejection });
  const commands = createResourceCommands({
    runner,
    names: createNames({ runner, clock, ids }),
    clock,
    timers: systemTimers(),
    recordRejection,
    singleWriter: store.singleWriter,
    caughtUp: (signal) => caughtUpWith(store, models)(signal),
    announcedTo: (kind, id, before) => models.resources.announcedTo(kind, id, { before, limit: 100 }),
  });
  const models = await openReadModels({
    dir: undefined,
    views: [
      resourcesView({
        kinds: kinds.map((kind) => revealing(kind, { open: people.open })),
        codec,
        ...(options.retentionDays === undefined ? {} : { retentionDays: options.retentionDays }),
      }),
      timelineView({
        words: {
          decode: (event) => codec.decode(event),
          redact: (event, audience) => registry.redact(event, audience),
        },
        kinds: actingKinds,
      }),
      usageView({ codec, kinds: meteredKinds }),
      auditView(),
    ],
    source: { kind: 'inline', reader: store },
  });
  const secrets = options.secrets ?? memorySecrets();
  const { key, keys } = await sharedSigner();
  const verifier = createTokenVerifier({ issuers: new Map([[ISSUER, keys]]), now: () => Date.now() });
  const positions = createPositions({
    storeId: store.storeId,
    waitFor: (view, position, wait) => models.waitFor(view, position, wait),
    ...options.positions,
  });
  const logger = recordingLogger();
  const personal =
    options.audit === undefined ? { personal: async () => hidden, source: async () => hidden } : metadata;
  const services = {
    runner,
    commands,
    resources: spied(models.resources, options.onRead),
    secrets,
    clock,
    ids,
    requestHash,
    personal,
    conceal: people.encrypt,
    access: createAccessJournal({ journal: createDayJournal(store), codec, clock, instance: 'test' }),
  };
  const past = createPast({ store, runner, readModels: models, positions, clock });
  const audit =
    options.audit === undefined
      ? undefined
      : await startAuditPart({
          ...services,
          ...options.audit,
          store,
          codec,
          registry,
          open: people.open,
          positions,
          past,
          readModels: models,
          logger,
          erase: metadata.erase,
          hasKey: people.has,
        });
  const consoleAccess = consolesOf({
    ...services,
    store,
    timers: systemTimers(),
    logger,
    adapterOf: () => options.hub,
  });
  const surfaces = osacSurfaces({
    ...services,
    timeline: models.timeline,
    people,
    hubs: {
      adapterOf: () => options.hub,
      ...(options.identify === undefined ? {} : { identify: options.identify }),
    },
    issuers: verifier.issuers,
    formatPosition: (position) => positions.format(position),
    past,
    consoleAccess,
    ...(options.lookNow === undefined ? {} : { lookNow: options.lookNow }),
  });
  const provisioning = { ...services, people };
  const users = createUserProvisioning({ ...provisioning, logger });
  const authenticator = createAuthenticator({
    verifier,
    tenantExists: (tenant) => models.resources.get('tenant', tenant, { all: true }) !== undefined,
    monotonicMs: () => clock.monotonicMs(),
    ...(options.deploymentNamespace === undefined
      ? {}
      : { principal: { deploymentNamespace: options.deploymentNamespace } }),
    scopeOf: () => options.issuerScope,
    logger,
    ...(options.provisionUsers === true ? { ensureUser: users.ensure } : {}),
  });
  const authenticate = options.guard?.(models, authenticator) ?? authenticator;
  const watch = createWatch({
    changes: models.changes,
    kinds,
    authenticate,
    positions,
    clock,
    timers: systemTimers(),
    logger,
    looks: services,
    ...(options.ending === undefined ? {} : { ending: options.ending }),
    ...(options.watch === undefined ? {} : { settings: options.watch }),
  });
  const suspected: string[] = [];
  const shared = {
    clock,
    ids,
    logger: options.forgetful === true ? silentLogger : logger,
    recordRejection,
    ...(options.onRequest === undefined ? {} : { onRequest: options.onRequest }),
    ...(options.admission === undefined
      ? {}
      : { admission: createAdmission({ ...UNLIMITED, ...options.admission }, clock) }),
    ...(options.cors === undefined ? {} : { cors: options.cors }),
    ...(options.slowReaderMs === undefined ? {} : { slowReaderMs: options.slowReaderMs }),
    authenticate,
    positions,
    surfaces,
    suspect: (event: string) => {
      suspected.push(event);
      audit?.auditing.suspect(event);
    },
    readiness: options.readiness ?? (() => ({ ready: true, checks: [] })),
    ...(options.ending === undefined ? {} : { ending: options.ending }),
  };
  const app = createHttpApp({
    ...shared,
    watches: watch.routes,
    ledgerRoutes: ledgerRoutes({
      ...services,
      store,
      readModels: models,
      registry,
      codec,
      positions,
      past,
      storeInfo: async () => ({ kind: store.kind }),
      ...options.ledger,
    }),
    ...(audit === undefined ? {} : { auditRoutes: audit.api.routes }),
  });
  const server: Server = createHttpServer(app, options.limits);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const grpc = createGrpcApp({
    ...shared,
    streams: watch.streams,
    timers: systemTimers(),
    openReflection: true,
    connectConsole: consoleAccess.consoles.connect,
    keySet: consoleAccess.tickets.keySet,
    ...options.grpc,
  });
  await new Promise<void>((resolve) => grpc.server.listen(0, '127.0.0.1', resolve));

  const token = ({
    user = 'alice',
    tenants = [],
    admin = false,
    roles = [],
    claims = {},
    expiresIn = 300,
  }: TokenOptions): Promise<string> =>
    new SignJWT({
      preferred_username: user,
      organization: [...tenants],
      groups: admin ? ['admins'] : [],
      realm_access: { roles: [...roles] },
      typ: 'Bearer',
      jti: randomUUID(),
      sub: user,
      ...claims,
    })
      .setProtectedHeader({ alg: 'RS256', kid: 'test' })
      .setIssuer(ISSUER)
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1000) + expiresIn)
      .sign(key);

  return {
    url,
    /** `host:port` of the gRPC listener. */
    grpcAddress: `127.0.0.1:${(grpc.server.address() as AddressInfo).port}`,
    grpc,
    authenticate,
    app,
    server,
    store,
    runner,
    commands,
    models,
    surfaces,
    watch,
    users,
    provisioning,
    people,
    positions,
    ids,
    secrets,
    rejections,
    /** Resolves when no refusal waits to be stored. */
    refusalsStored: () => eventually('every refusal is stored', () => refusals.waiting() === 0),
    logger,
    /** Events that an answer found to be others than were recorded. */
    suspected,
    audit,
    token,
    close: async () => {
      server.closeAllConnections();
      await Promise.all([new Promise((resolve) => server.close(resolve)), grpc.close(0)]);
      await users.idle();
      stopping.abort();
      await refusing;
      await audit?.close();
      await models.close();
      await store.close();
    },
  };
};
