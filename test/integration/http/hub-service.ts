import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { systemIds, systemTimers, systemClock } from '../../../src/adapters/system/system-ports.ts';
import { createHubHealth } from '../../../src/app/hubs/hub-health.ts';
import type { HubProblem, ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';
import { fakeCluster, hubFixture, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { silentLogger } from '../../support/loggers.ts';

export const KUBECONFIG = Buffer.from('kind: Config # a-secret-token').toString('base64');

const wordOf = (token: string | SecretRef = '-'): string =>
  typeof token === 'string' ? token : `ref:${token.id.replace(/^hub\.[^.]*\./, '')}`;

export type HubService = {
  readonly service: TestService;
  readonly hubs: HubFixture;
  readonly admin: Caller;
  /** Of tenant t1. */
  readonly user: Caller;
  /** What the hubs show when they are looked at. */
  readonly shown: { problems: readonly HubProblem[]; cluster: string | undefined };
  /** Hubs that the registry hears of only when somebody waits for it. */
  readonly late: Set<string>;
  /** What candidates were made with, and how many were closed. */
  readonly candidates: { used: string[]; connections: object[]; closed: number };
};

/** A service whose hubs and automations are played here. */
export const startHubService = async (): Promise<HubService> => {
  const shown: HubService['shown'] = { problems: [], cluster: undefined };
  const late = new Set<string>();
  const candidates: HubService['candidates'] = { used: [], connections: [], closed: 0 };

  const adapter = (id: string): ManagementCluster =>
    fakeCluster(id, {
      simulated: false,
      check: async () => ({
        problems: shown.problems,
        version: 'v1.36.0',
        clockSkewMs: 12.4,
        canReadNodePools: false,
        canReadAgents: false,
        ...(shown.cluster === undefined ? {} : { cluster: shown.cluster }),
      }),
      close: async () => void (candidates.closed += 1),
    });

  const store = createMemoryEventStore();
  const hubs = hubFixture(
    {
      of: ({ id, kubeconfig }) =>
        kubeconfig === undefined && !id.startsWith('sim-') ? undefined : adapter(id),
    },
    store,
  );
  const hubHealth = createHubHealth({
    registry: hubs.registry,
    commandRunner: hubs.commandRunner,
    clock: systemClock(),
    timers: systemTimers(),
    ids: systemIds(),
    logger: silentLogger,
    automations: {
      of: () => {
        throw new Error('no hub here has an automation');
      },
      candidate: (candidate) => ({
        trigger: async () => ({ kind: 'queued' }),
        check: async () => ({
          problems: [`${candidate.mode} ${candidate.url} ${wordOf(candidate.token)}`],
        }),
      }),
      close: async () => undefined,
    },
  });
  const service = await startTestService({
    store,
    ledger: {
      hubRegistry: {
        hubs: hubs.registry.hubs,
        spacesOn: hubs.registry.spacesOn,
        agentPool: hubs.registry.agentPool,
        get: (id) => (late.has(id) ? undefined : hubs.registry.get(id)),
        onChange: (listener) => {
          setImmediate(() => {
            for (const id of late) {
              late.delete(id);
              listener(id, hubs.registry.get(id));
            }
          });
          return () => true;
        },
      },
      hubHealth,
      hubWatches: () => [
        {
          hub: 'hub-2',
          namespace: 'osac-hub',
          kind: 'ClusterOrder',
          synced: false,
          orders: 4,
          unknown: 1,
          observations: 7,
          orphans: 1,
          failures: 2,
          lastError: 'the watch broke',
          lastErrorAt: '2026-11-21T12:00:00.000Z',
        },
      ],
      clusters: {
        candidate: (connection, kubeconfig) => {
          candidates.used.push(Buffer.from(kubeconfig).toString('utf8'));
          candidates.connections.push(connection);
          return adapter(connection.id);
        },
      },
    },
  });
  const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
  await seedCatalogue(admin);
  const user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  return { service, hubs, admin, user, shown, late, candidates };
};
