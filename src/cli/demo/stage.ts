import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createApiClient, type ApiClient } from '../api-client.ts';
import type { DemoRequest, TokenRequest } from '../connection.ts';
import type { FollowRecords } from './kafka.ts';
import type { DemoTopics } from './kafka-topics.ts';
import { ClaimFailed, type Narrator } from './narrator.ts';
import { startService, type ServiceProcess } from './service-process.ts';

export type DemoOptions = Omit<DemoRequest, 'catalog'> & {
  /** The service's executable and arguments, for example `['…/main.ts', 'serve']`. */
  readonly command: readonly string[];
  readonly catalog: string;
  readonly mintToken: (secretsDir: string, request: TokenRequest) => Promise<string>;
  readonly followRecords: FollowRecords;
  readonly topics: DemoTopics;
  readonly stream: NodeJS.WriteStream;
};

/** The whole demo has to be over in a minute; no single wait may take longer than this. */
export const PATIENCE_MS = 30_000;
/** Where machines are installed, a cluster takes most of an hour. */
const PATIENCE_ON_A_HUB_MS = 2 * 3_600_000;
/** Tokens outlive the demo, but for one that takes hours. */
const TOKEN_SECONDS = 12 * 3_600;

/** Everything that a step needs: rebuilt when the service is started again. */
export type Stage = {
  readonly narrator: Narrator;
  readonly request: DemoOptions;
  readonly patienceMs: number;
  readonly dataDir: string;
  readonly service: () => ServiceProcess;
  readonly tenant: () => ApiClient;
  readonly admin: () => ApiClient;
  /** Somebody of the tenant who may read its history. */
  readonly auditor: () => ApiClient;
  /** Somebody of another tenant, which exists by then. */
  readonly userOf: (tenant: string) => Promise<ApiClient>;
  /** Bytes of a path, as the auditor. */
  readonly download: (path: string) => Promise<Uint8Array>;
  readonly restart: () => Promise<void>;
  readonly shown: Set<string>;
};

/** Starts the service, with tokens of those who play in the demo. Throws ClaimFailed when its catalogue is not offered. */
export const setStage = async (
  options: DemoOptions,
  narrator: Narrator,
  dataDir: string,
  running: { service?: ServiceProcess },
): Promise<Stage> => {
  const start = async (): Promise<ServiceProcess> => {
    const environment = {
      LEDGER_DATA_DIR: dataDir,
      LEDGER_CATALOG: options.catalog,
      LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
      LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
      LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
      LEDGER_KAFKA_BROKERS: (options.kafka ?? []).join(','),
    };
    const service = await startService({ command: options.command, environment });
    running.service = service;
    await untilReady(service.http);
    narrator.say(`listening on ${service.http} (process ${service.pid})`);
    return service;
  };
  let service = await start();
  const secretsDir = join(dataDir, 'secrets');
  const mint = (request: Partial<TokenRequest> & { user: string }): Promise<string> =>
    options.mintToken(secretsDir, { admin: false, roles: [], ttlSeconds: TOKEN_SECONDS, ...request });
  const tenantToken = await mint({ tenant: 'acme', user: 'alice' });
  const adminToken = await mint({ user: 'operator', admin: true });
  const auditorToken = await mint({ tenant: 'acme', user: 'carol', roles: ['auditor'] });
  narrator.say(
    'tokens of the development issuer for tenant user alice of acme, its auditor carol, and a provider admin',
  );
  const stage: Stage = {
    narrator,
    request: options,
    patienceMs: options.patienceMs ?? (options.hub === undefined ? PATIENCE_MS : PATIENCE_ON_A_HUB_MS),
    dataDir,
    service: () => service,
    tenant: () => createApiClient(service.http, tenantToken),
    admin: () => createApiClient(service.http, adminToken),
    auditor: () => createApiClient(service.http, auditorToken),
    userOf: async (tenant) => createApiClient(service.http, await mint({ tenant, user: 'bob' })),
    download: async (path) => {
      const headers = { authorization: `Bearer ${auditorToken}` };
      const answer = await fetch(new URL(path, service.http), { headers });
      if (!answer.ok) throw new ClaimFailed(`${path} answered ${answer.status}`);
      return new Uint8Array(await answer.arrayBuffer());
    },
    restart: async () => {
      service = await start();
    },
    shown: new Set(),
  };
  const { items = [] } = await stage
    .tenant()
    .get<{ items?: { id: string; title: string }[] }>('/api/fulfillment/v1/cluster_templates');
  narrator.check(
    'the catalogue is offered to the tenant',
    items.some(({ id }) => id === options.template),
    items.map(({ title }) => title).join(', '),
  );
  return stage;
};

/** `/readyz` says when the catalogue is loaded and the read models know the log. */
const untilReady = async (http: string): Promise<void> => {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await fetch(`${http}/readyz`);
    const text = await answer.text();
    if (answer.ok) return;
    if (performance.now() > deadline) throw new ClaimFailed(`the service is not ready: ${text}`);
    await pause(50);
  }
};
