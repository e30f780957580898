import { randomUUID } from 'node:crypto';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { CommandContext, CommandRunner } from '../../../src/app/commands/command.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { createEventCodec, type EventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createHubRegistry, type HubRegistry } from '../../../src/app/hubs/hub-registry.ts';
import type { ManagementCluster, ManagementClusters } from '../../../src/app/hubs/management-cluster.ts';
import type { EffectCall } from '../../../src/app/process-runner/types.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { aggregateOf, hub as hubKind } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { byKind, type FakeOrders } from './fake-orders.ts';
import { silentLogger } from '../loggers.ts';

/** A log with hubs in it, and what follows from it: registry and command runner. */
export type HubFixture = {
  readonly store: EventStore;
  readonly codec: EventCodec;
  readonly commandRunner: CommandRunner;
  readonly registry: HubRegistry;
  readonly register: (id: string, spec?: JsonObject) => Promise<void>;
  readonly revise: (id: string, spec: JsonObject, annotations?: JsonObject) => Promise<void>;
  readonly deregister: (id: string) => Promise<void>;
  /** Ends the registry's subscription. */
  stop(): Promise<void>;
};

export const commandContext = (commandId: string, tenant = 'shared'): CommandContext => ({
  tenant,
  project: 'default',
  actor: { subjectId: 'admin', roles: ['admin'], authMethod: 'internal' },
  commandId,
  requestHash: commandId,
  correlationId: commandId,
  causationId: commandId,
});

export const hubFixture = (
  clusters: ManagementClusters = { of: () => undefined },
  store: EventStore = createMemoryEventStore(),
): HubFixture => {
  const codec = createEventCodec(eventTypes);
  const clock = systemClock();
  const commandRunner = createCommandRunner({
    store,
    codec,
    clock,
    instance: 'fixture',
    recordRejection: () => undefined,
  });
  const registry = createHubRegistry({
    store,
    codec,
    clusters,
    timers: systemTimers(),
    logger: silentLogger,
  });
  const stop = new AbortController();
  const ended = registry.run(stop.signal);
  const aggregate = aggregateOf(hubKind);
  let commands = 0;
  const execute = async (
    id: string,
    command: Parameters<typeof aggregate.decider.decide>[1],
  ): Promise<void> => {
    commands += 1;
    const done = await commandRunner.execute(
      aggregate,
      id,
      command,
      commandContext(`hub-command-${commands}`),
    );
    if (done.outcome === 'rejected') throw new Error(done.rejection.message);
  };
  return {
    store,
    codec,
    commandRunner,
    registry,
    register: (id, spec = {}) =>
      execute(id, {
        type: 'CreateDocument',
        at: clock.now(),
        id,
        tenant: 'shared',
        project: '',
        name: id,
        creator: 'admin',
        document: { spec: { namespace: 'orders', ...spec } },
      }),
    revise: (id, spec, annotations = {}) =>
      execute(id, {
        type: 'ReviseDocument',
        at: clock.now(),
        document: {
          ...(Object.keys(annotations).length === 0 ? {} : { metadata: { annotations } }),
          spec: { namespace: 'orders', ...spec },
        },
      }),
    deregister: (id) => execute(id, { type: 'DeleteDocument', at: clock.now() }),
    stop: async () => {
      stop.abort();
      await ended;
    },
  };
};

/** A call of an effect port as the process runner makes it. */
export const effectCall = (more: Partial<EffectCall> = {}): EffectCall => {
  return {
    effectId: `clusterOrder-1/${randomUUID()}`,
    attempt: 1,
    mode: 'perform',
    deadlineMs: 5_000,
    signal: new AbortController().signal,
    workflow: 'clusterOrder',
    runId: '1',
    tenant: 'acme',
    project: 'default',
    correlationId: 'correlation',
    causationId: 'causation',
    ...more,
  };
};

/** An adapter of which only what a test overrides may be called. */
export const fakeCluster = (
  hubId: string,
  more: Partial<ManagementCluster & FakeOrders> = {},
): ManagementCluster => {
  const unexpected = (what: string) => async (): Promise<never> => {
    throw new Error(`unexpected call: ${what}`);
  };
  return {
    hubId,
    simulated: true,
    create: unexpected('create'),
    patch: unexpected('patch'),
    delete: unexpected('delete'),
    get: unexpected('get'),
    read: unexpected('read'),
    find: unexpected('find'),
    readSecret: unexpected('read-secret'),
    readMark: unexpected('read-mark'),
    writeMark: unexpected('write-mark'),
    check: unexpected('check'),
    inventory: unexpected('inventory'),
    ensureTenantNamespace: unexpected('ensure-tenant-namespace'),
    removeTenantNamespace: unexpected('remove-tenant-namespace'),
    watch: () => {
      throw new Error('unexpected call: watch');
    },
    close: async () => undefined,
    ...byKind(more),
    ...more,
  };
};
