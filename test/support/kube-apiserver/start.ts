import { readFileSync, readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parseAllDocuments } from 'yaml';
import { createAuthority, type KeyPair } from './access/certificates.ts';
import { createIdentities } from './access/identities.ts';
import { createAccess } from './access/rbac.ts';
import { bootstrap } from './bootstrap.ts';
import { admitDefinition, isDefinition } from './controllers/definitions.ts';
import { startControllers } from './controllers/manager.ts';
import { consoleUpgrades } from './server/consoles.ts';
import { faultStatus, createFaults } from './server/faults.ts';
import { createHandler, type AuditEntry } from './server/http.ts';
import { createResources } from './server/resources.ts';
import { serviceAccountTokens } from './server/token-request.ts';
import { BUILT_IN_KINDS } from './kinds.ts';
import { kubeconfigOf, type Credentials } from './kubeconfig.ts';
import { createLists } from './read/list.ts';
import { createWatches, type LiveWatch } from './read/watch.ts';
import { createStore } from './store.ts';
import type { JsonObject, Kind, KubeObject, User } from './types.ts';
import type { KubeAnswer, RequestOptions } from './client.ts';
import { createObjects, type Admission } from './write/objects.ts';

export type KubeApiServerOptions = {
  /** Port on 127.0.0.1; default 0, any free one. */
  readonly port?: number;
  /** CustomResourceDefinitions installed at the start; default those of `ops/crds` and the open stubs beside them. */
  readonly crds?: readonly JsonObject[];
  /** Namespaces created at the start. */
  readonly namespaces?: readonly string[];
  /** Roles, bindings and other objects created at the start, by whoever may do anything. */
  readonly objects?: readonly JsonObject[];
  /** What the server's clock is ahead of ours, milliseconds: timestamps and the Date header. */
  readonly clockSkewMs?: number;
  /** Changes of a kind kept for watches; default 2000. */
  readonly historyLimit?: number;
  /** Idle time between two bookmarks, milliseconds; default 60 s as in the real server. */
  readonly bookmarkMs?: number;
  /** When a watch without `timeoutSeconds` is ended, milliseconds; default 30 min. */
  readonly watchTimeoutMs?: number;
  /** Time that a namespace is Terminating at least, milliseconds; default 0 (a real one: 5 s). */
  readonly namespaceDelayMs?: number;
  /** Tokens that are taken from the start, as those of a real server's token file; other servers may take them, too. */
  readonly tokens?: { readonly [token: string]: User };
  /** False: no controller manager beside the server. Default true. */
  readonly controllers?: boolean;
  /** `gitVersion` of /version; default `v1.36.3`. */
  readonly version?: string;
  /** False: requests are not kept for `audit()` (benchmarks). Default true. */
  readonly audit?: boolean;
};

export type KubeApiServer = Awaited<ReturnType<typeof startKubeApiServer>>;

const ADMIN: User = { name: 'admin', groups: ['system:masters'] };

/** Starts a Kubernetes API server in this process, on loopback with a throw-away authority. */
export const startKubeApiServer = async (options: KubeApiServerOptions = {}) => {
  const host = '127.0.0.1';
  let skewMs = options.clockSkewMs ?? 0;
  const now = (): Date => new Date(Date.now() + skewMs);
  const authority = await createAuthority(host);
  const store = createStore(options.historyLimit ?? 2000);
  for (const kind of BUILT_IN_KINDS) store.register(kind);
  const identities = createIdentities(now);
  for (const [token, user] of Object.entries(options.tokens ?? {})) identities.agreed(token, user);
  const access = createAccess(store);
  const objects = createObjects(
    store,
    now,
    admissionWith(access, () => now().toISOString()),
  );
  const lists = createLists(store);
  const watches = createWatches(store, {
    bookmarkMs: options.bookmarkMs ?? 60_000,
    timeoutMs: options.watchTimeoutMs ?? 1_800_000,
  });
  const faults = createFaults();
  const controllers = startControllers(store, objects, identities, authority.ca, now, {
    enabled: options.controllers ?? true,
    namespaceDelayMs: options.namespaceDelayMs ?? 0,
  });
  bootstrap(store, objects);
  const seed = seeder(store, objects);
  for (const body of options.crds ?? loadDefinitions()) seed(body);
  for (const name of options.namespaces ?? [])
    seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const body of options.objects ?? []) seed(body);

  const log: AuditEntry[] = [];
  const { handle, direct } = createHandler({
    store,
    identities,
    access,
    resources: createResources(store, objects, lists),
    watches,
    faults,
    tokens: serviceAccountTokens(store, identities, now),
    now,
    gitVersion: options.version ?? 'v1.36.3',
    audit: (entry) => void (options.audit === false || log.push(entry)),
  });
  const server = createServer(
    { ...authority.server, ca: authority.ca, requestCert: true, rejectUnauthorized: false },
    (request, response) => void handle(request, response),
  );
  const consoles = consoleUpgrades({ store, identities, access });
  server.on('upgrade', consoles.upgrade);
  // As long as a real one keeps them: a client's idle connection must not die under its next request.
  server.keepAliveTimeout = 90_000;
  const port = await listen(server, host, options.port ?? 0);
  const url = `https://${host}:${port}`;
  const adminToken = identities.token(ADMIN);

  const kubeconfig = (credentials: Credentials = { token: adminToken }, namespace?: string): string =>
    kubeconfigOf({ url, ca: authority.ca, credentials, ...(namespace === undefined ? {} : { namespace }) });
  const chosen = (match: WatchMatch): LiveWatch[] => watches.live().filter((one) => watchMatches(match, one));

  return {
    url,
    /** PEM of the authority that signed the server's certificate. */
    ca: authority.ca,
    /** A token of somebody who may do everything (group `system:masters`). */
    adminToken,
    /** A new bearer token of any user; with `ttlMs` it ends by itself. */
    tokenFor: (user: User, ttlMs?: number): string => identities.token(user, ttlMs),
    revoke: (token: string): void => identities.revoke(token),
    /** A client certificate of any user. */
    certificateFor: (user: User, validMs?: number): Promise<KeyPair> =>
      authority.issue(user.name, user.groups, validMs),
    /** A kubeconfig for these credentials; the administrator's token without any. */
    kubeconfig,

    /** Creates an object past every right, or replaces the one of that name. */
    seed,
    /** The stored object now; undefined: there is none. */
    find: (plural: string, namespace: string, name: string): KubeObject | undefined => {
      const kind = kindNamed(store.kinds(), plural);
      return store.get(kind, kind.namespaced ? namespace : '', name);
    },
    list: (plural: string, namespace?: string): KubeObject[] =>
      store.list(kindNamed(store.kinds(), plural), namespace),
    version: (): number => store.version(),
    /** Resolves when the controllers inside the server have nothing left to do at once. */
    settled: controllers.settled,

    /** A request without a connection, for players in this process: it meets no fault and no audit. */
    call: (
      method: string,
      path: string,
      { body, type = 'application/json', query = {} }: RequestOptions = {},
      user: User = ADMIN,
    ): Promise<KubeAnswer> => {
      const at = new URL(path, url);
      for (const [name, value] of Object.entries(query)) at.searchParams.set(name, String(value));
      const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
      const answer = direct(user, method, at, type, text);
      const { code, body: answered } = answer;
      const json = typeof answered === 'string' ? {} : answered;
      return Promise.resolve({
        code,
        headers: {},
        body: json,
        text: typeof answered === 'string' ? answered : '',
      });
    },

    faults,
    /** Consoles that are open now. */
    consoles,
    /** Requests since the start or the last `forget`, in order of arrival. */
    audit: (): readonly AuditEntry[] => log,
    forgetAudit: (): void => void log.splice(0),

    /** Watches that run now and match. */
    watching: (match: WatchMatch = {}): number => chosen(match).length,
    /** Ends watches with an ERROR event inside the stream; 410 by default. Returns how many. */
    failWatches: (match: WatchMatch = {}, code = 410): number => {
      const found = chosen(match);
      for (const one of found) one.fail(faultStatus({ kind: 'stream-error', code }));
      return found.length;
    },
    /** Watches stay open and say nothing any more. */
    silenceWatches: (match: WatchMatch = {}): number => {
      const found = chosen(match);
      for (const one of found) one.silence();
      return found.length;
    },
    /** Cuts every connection of the moment, watches included. */
    cutConnections: (): void => server.closeAllConnections(),
    /** Forgets the history: watches from any earlier version are 410, at connect inside the stream. */
    compact: store.compact,
    /** Continue tokens given out so far answer 410. */
    expirePages: lists.expire,
    setClockSkew: (ms: number): void => void (skewMs = ms),
    /** Refuses connections until `resume`: the port is closed. */
    pause: (): Promise<void> => stop(server),
    resume: async (): Promise<void> => void (await listen(server, host, port)),
    close: async (): Promise<void> => {
      controllers.stop();
      faults.clear();
      consoles.cut();
      await stop(server);
    },
  };
};

export type WatchMatch = { readonly resource?: string; readonly namespace?: string; readonly user?: string };

const watchMatches = ({ resource, namespace, user }: WatchMatch, watch: LiveWatch): boolean =>
  (resource === undefined || watch.kind.plural === resource) &&
  (namespace === undefined || watch.namespace === namespace) &&
  (user === undefined || watch.user === user);

const kindNamed = (kinds: readonly Kind[], plural: string): Kind => {
  const found = kinds.find((kind) => kind.plural === plural);
  if (found === undefined) throw new Error(`no kind ${plural} is served`);
  return found;
};

const admissionWith =
  (access: ReturnType<typeof createAccess>, at: () => string): Admission =>
  (kind, object, before, { user }) => {
    if (isDefinition(kind)) return admitDefinition(object, before, at());
    if (kind.plural === 'rolebindings' || kind.plural === 'clusterrolebindings') {
      access.checkGrant(user, kind, object);
    }
    if (before === undefined && kind.group === '' && kind.plural === 'namespaces') {
      const labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
      const metadata = { ...object.metadata, labels };
      return { ...object, metadata, spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } };
    }
    return kind.group === '' && kind.plural === 'secrets' ? encodedSecret(object) : object;
  };

/** `stringData` is written and never read. */
const encodedSecret = (secret: KubeObject): KubeObject => {
  const { stringData, ...rest } = secret;
  if (stringData === undefined) return secret;
  const encoded = Object.entries(stringData as JsonObject).map(([key, text]) => [
    key,
    Buffer.from(typeof text === 'string' ? text : '').toString('base64'),
  ]);
  const data = { ...(rest['data'] as JsonObject | undefined), ...Object.fromEntries(encoded) };
  return { ...rest, data } as KubeObject;
};

const seeder =
  (store: ReturnType<typeof createStore>, objects: ReturnType<typeof createObjects>) =>
  (body: JsonObject): KubeObject => {
    const kind = store.kinds().find((one) => one.kind === body['kind']);
    if (kind === undefined) throw new Error(`no kind ${JSON.stringify(body['kind'])} is served`);
    const metadata = (body['metadata'] ?? {}) as { name?: string; namespace?: string };
    const namespace = kind.namespaced ? (metadata.namespace ?? 'default') : '';
    const current = store.get(kind, namespace, metadata.name ?? '');
    const context = { user: ADMIN, manager: 'seed' };
    const main =
      current === undefined
        ? objects.create(kind, namespace, body, context)
        : objects.update(kind, current, body, context, false);
    if (body['status'] === undefined || !kind.statusSubresource || isDefinition(kind)) return main;
    const whole = { ...main, status: body['status'] } as unknown as JsonObject;
    return objects.update(kind, main, whole, { ...context, subresource: 'status' }, false);
  };

const FOLDERS = [new URL('../../../ops/crds/', import.meta.url), new URL('./crds/', import.meta.url)];

/** Our CRDs and the open stubs of other people's kinds, as they would be sent to an API server. */
export const loadDefinitions = (): readonly JsonObject[] => {
  definitions ??= FOLDERS.flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.yaml'))
      .sort()
      .flatMap((file) => objectsOf(readFileSync(new URL(file, folder), 'utf8'))),
  );
  return definitions;
};

/** Read once in a process: every suite starts servers. */
let definitions: readonly JsonObject[] | undefined;

/** The objects of a YAML text with one or more documents. */
export const objectsOf = (yaml: string): JsonObject[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS() as JsonObject | null)
    .filter((one) => one !== null);

const listen = (server: Server, host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });

const stop = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
