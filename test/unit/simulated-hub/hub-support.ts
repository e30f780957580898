import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CallOptions, HubError, TENANT_ANNOTATION } from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER_UUID_LABEL,
  type ClusterOrderManifest,
} from '../../../src/domain/clusters/hub-objects.ts';
import {
  createSimulatedHub,
  type SimulatedHub,
  type SimulatedHubOptions,
} from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { createVirtualTime } from './virtual-time.ts';

export const NAMESPACE = 'osac-hub';
export const HOSTED = (name: string) => ({ namespace: `${NAMESPACE}-${name}`, name });
export const REF = (name: string) => ({ namespace: NAMESPACE, name });

/** A valid order of two nodes; `simulation` is its annotation. */
export const manifestOf = (
  name: string,
  options: { simulation?: string; clusterId?: string; nodes?: number; spec?: object } = {},
): ClusterOrderManifest => ({
  name,
  namespace: NAMESPACE,
  labels: { [CLUSTER_ORDER_UUID_LABEL]: options.clusterId ?? `cluster-of-${name}` },
  annotations: {
    [TENANT_ANNOTATION]: 'acme',
    ...(options.simulation === undefined ? {} : { simulation: options.simulation }),
  },
  spec: {
    templateID: 'osac.templates.ocp_small',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: options.nodes ?? 2 }],
    pullSecret: '{}',
    ...options.spec,
  },
});

/** A hub in virtual time on a file of its own, with calls that need no options spelt out. */
export const createHubBench = (options: Partial<SimulatedHubOptions> = {}) => {
  const dir = mkdtempSync(join(tmpdir(), 'sim-hub-'));
  const file = join(dir, 'sim-one.sqlite');
  const time = createVirtualTime();
  const opened: SimulatedHub[] = [];
  let effects = 0;
  const open = (more: Partial<SimulatedHubOptions> = {}): SimulatedHub => {
    const hub = createSimulatedHub({
      hubId: 'sim-one',
      file,
      clock: time.clock,
      timers: time.timers,
      inline: true,
      seed: 'unit',
      watchPollMs: 200,
      ...options,
      ...more,
    });
    opened.push(hub);
    return hub;
  };
  const by = (more: Partial<CallOptions> = {}): CallOptions => {
    effects += 1;
    return {
      effectId: `effect-${effects}`,
      deadlineMs: 10_000,
      signal: new AbortController().signal,
      ...more,
    };
  };
  return {
    file,
    time,
    open,
    by,
    hub: open(),
    close: async (): Promise<void> => {
      for (const hub of opened) await hub.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** The HubError that a call fails with; anything else is thrown on. */
export const hubErrorOf = async (work: Promise<unknown>): Promise<HubError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof HubError) return error;
    throw error;
  }
  throw new Error('the call succeeded');
};
