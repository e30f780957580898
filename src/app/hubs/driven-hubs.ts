import type { Automation, Automations } from '../automation/automation.ts';
import { AutomationError } from '../automation/automation.ts';
import type { HubMarks } from './hub-marks.ts';
import {
  HubError,
  type CallOptions,
  type ManagementCluster,
  type ManagementClusters,
} from './management-cluster.ts';

type Gate = Pick<HubMarks, 'assertDriven'>;

/**
 * Adapters that write to a hub only while its mark is ours: every write goes through here, whoever makes it. Reads and
 * watches pass.
 */
export const drivenClusters = (clusters: ManagementClusters, gate: Gate): ManagementClusters => {
  /** The same adapter again for the same hub, as the port says. */
  const known = new WeakMap<ManagementCluster, ManagementCluster>();
  return {
    ...clusters,
    of: (connection) => {
      const cluster = clusters.of(connection);
      if (cluster === undefined) return undefined;
      const before = known.get(cluster);
      if (before !== undefined) return before;
      const driven = drivenCluster(cluster, gate);
      known.set(cluster, driven);
      return driven;
    },
  };
};

const drivenCluster = (cluster: ManagementCluster, gate: Gate): ManagementCluster => {
  const { controller, hubId } = cluster;
  const driving = async <T>(by: CallOptions, write: () => Promise<T>): Promise<T> => {
    await gate.assertDriven(hubId, by.signal);
    return write();
  };
  return {
    ...cluster,
    ensureTenantNamespace: (namespace, by) => driving(by, () => cluster.ensureTenantNamespace(namespace, by)),
    removeTenantNamespace: (namespace, by) => driving(by, () => cluster.removeTenantNamespace(namespace, by)),
    create: (kind, manifest, by) => driving(by, () => cluster.create(kind, manifest, by)),
    patch: (kind, ref, spec, by) => driving(by, () => cluster.patch(kind, ref, spec, by)),
    delete: (kind, ref, by) => driving(by, () => cluster.delete(kind, ref, by)),
    ...(controller !== undefined && {
      controller: {
        prepare: (kind, place, by) => driving(by, () => controller.prepare(kind, place, by)),
        writeStatus: (kind, place, status, by) =>
          driving(by, () => controller.writeStatus(kind, place, status, by)),
        release: (kind, place, by) => driving(by, () => controller.release(kind, place, by)),
      },
    }),
  };
};

/** The same for what a hub's automation is asked to do. */
export const drivenAutomations = (automations: Automations, gate: Gate): Automations => ({
  ...automations,
  of: (connection) => {
    const automation = automations.of(connection);
    const driving = async <T>(by: CallOptions, act: () => Promise<T>): Promise<T> => {
      await gate.assertDriven(connection.hub, by.signal).catch(asAutomationError);
      return act();
    };
    const { cancel } = automation;
    return {
      ...automation,
      trigger: (request, by) => driving(by, () => automation.trigger(request, by)),
      ...(cancel !== undefined && {
        cancel: (job, by) => driving(by, () => cancel(job, by)),
      }),
    } satisfies Automation;
  },
});

/** Nothing was asked for. */
const asAutomationError = (error: unknown): never => {
  if (!(error instanceof HubError)) throw error;
  throw new AutomationError('unavailable', error.message, { cause: error });
};
