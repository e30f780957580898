import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { mintToken } from '../../src/adapters/identity/development-issuer.ts';
import { createApiClient, ApiError, type ApiClient } from '../../src/cli/api-client.ts';
import {
  startService,
  type ServiceOptions,
  type ServiceProcess,
} from '../../src/cli/demo/service-process.ts';
import { startPeerProcess, type PeerControl } from './e2e-peer.ts';
import { eventually } from './eventually.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Arguments of node for the service itself. */
export const SERVE: readonly string[] = [join(ROOT, 'src/main.ts'), 'serve'];
export const CATALOG = join(ROOT, 'fixtures/catalog');

/** The real service as a process of its own, spoken to over HTTP, on one of the two event stores. */
export type Stack = {
  readonly store: StoreKind;
  readonly dataDir: string;
  readonly service: () => ServiceProcess;
  /** Base URL of the service now. */
  readonly http: () => string;
  token(who: Who): Promise<string>;
  client(who: Who): Promise<ApiClient>;
  /** What the service is started with. */
  readonly environment: Readonly<Record<string, string>>;
  /** Makes the EventStoreDB peer misbehave; throws on the embedded store, which has none. */
  readonly peer: PeerControl;
  /** Starts the service (again) and waits until it is ready. */
  start(environment?: Readonly<Record<string, string>>, how?: StartOptions): Promise<ServiceProcess>;
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
  dispose(): Promise<void>;
};

export type StartOptions = Pick<ServiceOptions, 'launcher' | 'nodeOptions'> & {
  /** Default: until it is ready. */
  readonly until?: 'ready' | 'listening';
};

export type StoreKind = 'sqlite' | 'eventstoredb-peer';
export type Who =
  | { readonly tenant: string; readonly user: string; readonly ttlSeconds?: number }
  | { readonly admin: true; readonly user: string };

/** The stores that the end-to-end suites run on. */
export const E2E_STORES: readonly StoreKind[] = ['sqlite', 'eventstoredb-peer'];

/** The store of the suites that run on one. CI runs them a second time, on the other one. */
export const E2E_STORE: StoreKind = ((): StoreKind => {
  const named = process.env['LEDGER_TEST_STORE'] ?? 'sqlite';
  const store = E2E_STORES.find((known) => known === named);
  if (store === undefined)
    throw new Error(`LEDGER_TEST_STORE is one of ${E2E_STORES.join(', ')}, not ${named}`);
  return store;
})();

export const CLUSTERS = '/api/fulfillment/v1/clusters';
export const PRIVATE = '/api/private/v1';

/** Registers a hub in zone `nowhere` that nothing reaches: orders for this zone are taken, and wait. */
export const registerNowhere = async (stack: Stack): Promise<void> => {
  const admin = await stack.client({ admin: true, user: 'root' });
  await admin.send('POST', `${PRIVATE}/hubs`, {
    id: 'hub-nowhere',
    spec: { namespace: 'osac-hub', zone: 'nowhere', capacity: { nodes: { fc430: 8, 'ci-worker': 8 } } },
  });
};

export type ClusterBody = {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly version?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletion_timestamp?: string;
  };
  readonly spec: { readonly node_sets: Readonly<Record<string, { readonly size?: number }>> };
  readonly status?: {
    readonly state?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status?: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly node_sets?: Readonly<Record<string, { readonly size?: number }>>;
    readonly hub?: string;
  };
};

/**
 * The roles of a service that is deployed alone. Without `publisher` and `auditor` a start costs a sixth less processor
 * time, and nothing is signed beside what a test looks at: a suite that is about faults, starts or audit asks for all.
 */
export const AS_DEPLOYED: Readonly<Record<string, string>> = {
  LEDGER_ROLES: 'api,processes,publisher,auditor',
};

/**
 * A stack that is not started yet, in a temporary directory of its own. `settings` hold for each of its starts, before
 * what is given there.
 */
export const createStack = async (
  store: StoreKind,
  settings: Readonly<Record<string, string>> = {},
): Promise<Stack> => {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-e2e-'));
  const dataDir = join(dir, 'data');
  const peer = store === 'eventstoredb-peer' ? await startPeerProcess() : undefined;
  let service: ServiceProcess | undefined;
  const running = (): ServiceProcess => {
    if (service === undefined) throw new Error('the service is not started');
    return service;
  };
  const token = (who: Who): Promise<string> =>
    mintToken(join(dataDir, 'secrets'), { ttlSeconds: 3600, now: Date.now(), ...who });
  const environment = {
    LEDGER_DATA_DIR: dataDir,
    LEDGER_CATALOG: CATALOG,
    LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
    LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
    LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
    LEDGER_LOG_LEVEL: 'info',
    LEDGER_ROLES: 'api,processes',
    ...(peer === undefined ? {} : { LEDGER_EVENT_STORE: peer.connectionString }),
    ...settings,
  };
  return {
    store,
    dataDir,
    service: running,
    http: () => running().http,
    token,
    client: async (who) => createApiClient(running().http, await token(who)),
    environment,
    get peer() {
      if (peer === undefined) throw new Error('the embedded store has no peer');
      return peer;
    },
    start: async (more = {}, { until: goal = 'ready', ...how } = {}) => {
      service = await startService({ ...how, command: SERVE, environment: { ...environment, ...more } });
      if (goal === 'ready') await untilReady(service);
      return service;
    },
    stop: (signal) => running().stop(signal),
    dispose: async () => {
      await service?.stop('SIGKILL');
      await peer?.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** `/readyz` answers 200, or the process ended. */
export const untilReady = async (service: ServiceProcess): Promise<void> => {
  let last = '';
  const tail = (): string => `${last}\n${service.log.slice(-20).join('\n')}`;
  const ready = until('the service is ready', async () => {
    const ended = await Promise.race([service.ended, pause(0, 'running' as const)]);
    if (ended !== 'running') throw new Error(`the service ended with ${ended}`);
    const answer = await fetch(`${service.http}/readyz`);
    last = await answer.text();
    return answer.ok;
  });
  await ready.catch((error: unknown) => {
    throw new Error(`${String(error)}\n${tail()}`, { cause: error });
  });
};

/** Milliseconds at most between two looks: each is a call, and takes processor time from what is waited for. */
const LAST_LOOK_MS = 100;

/** Polls a condition until it holds; throws after the bound. Not a sleep: it goes on as soon as the condition holds. */
export const until = (
  what: string,
  holds: () => Promise<boolean> | boolean,
  boundMs = 60_000,
): Promise<void> => eventually(what, holds, boundMs, LAST_LOOK_MS);

/** Waits until a cluster is as wanted; returns it. */
export const untilCluster = async (
  client: ApiClient,
  id: string,
  wanted: (cluster: ClusterBody) => boolean,
  boundMs?: number,
): Promise<ClusterBody> => {
  let last: ClusterBody | undefined;
  try {
    await until(
      `cluster ${id}`,
      async () => {
        last = await client.get<ClusterBody>(`${CLUSTERS}/${id}`);
        return wanted(last);
      },
      boundMs,
    );
  } catch (error) {
    throw new Error(`${String(error)}; last seen: ${JSON.stringify(last?.status)}`, { cause: error });
  }
  return last as ClusterBody;
};

export const isReady = (cluster: ClusterBody): boolean => cluster.status?.state === 'CLUSTER_STATE_READY';

/** Waits until GET answers 404. */
export const untilGone = (client: ApiClient, id: string, boundMs?: number): Promise<void> =>
  until(
    `cluster ${id} is gone`,
    async () => {
      try {
        await client.get(`${CLUSTERS}/${id}`);
        return false;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return true;
        throw error;
      }
    },
    boundMs,
  );

/** The status and body of a call that is expected to fail. */
export const refusal = async (call: Promise<unknown>): Promise<ApiError> => {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the call was not refused');
};
