import type { HubConnection, ManagementClusters } from '../../../app/hubs/management-cluster.ts';
import type { Clock, Logger, SecretStore, Timers } from '../../../app/ports.ts';
import { createWorkerChannel, type HubChannel } from './channel.ts';
import { readKubeconfig } from './kubeconfig.ts';
import { createKubernetesHub, type KubernetesHub } from './kubernetes-hub.ts';

export type KubernetesClustersOptions = {
  readonly secrets: Pick<SecretStore, 'reveal'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  /** Where the clients run. Default: in one worker thread for all hubs, which `close` ends. */
  readonly channel?: HubChannel;
};

export type KubernetesClusters = Omit<Required<ManagementClusters>, 'of'> & {
  of(hub: HubConnection): KubernetesHub | undefined;
  close(): Promise<void>;
};

/**
 * Adapters of the hubs that have a kubeconfig, made when first asked for. `of` gives undefined for a hub without one.
 * The worker thread starts with the first call on a hub; credentials reach it by message and are never on disk.
 */
export const createKubernetesClusters = (options: KubernetesClustersOptions): KubernetesClusters => {
  const { secrets, clock, timers } = options;
  const channel = options.channel ?? createWorkerChannel({ logger: options.logger });
  const hubs = new Map<string, KubernetesHub>();
  const monotonicMs = (): number => clock.monotonicMs();

  /** The value as a copy: what is sent to another thread is not the store's own. */
  const kubeconfigOf = async ({ kubeconfig, tenant }: HubConnection): Promise<Uint8Array | undefined> =>
    kubeconfig === undefined ? undefined : secrets.reveal(kubeconfig, kubeconfig.tenant ?? tenant);

  return {
    of: (connection) => {
      const known = hubs.get(connection.id);
      if (connection.kubeconfig === undefined) return undefined;
      if (known !== undefined) {
        known.update(connection);
        return known;
      }
      const made = createKubernetesHub({ connection, channel, timers, monotonicMs, kubeconfigOf });
      hubs.set(connection.id, made);
      return made;
    },
    forget: (id) => {
      const known = hubs.get(id);
      hubs.delete(id);
      // It answers nobody from now on; what is under way ends with its connections.
      known?.close().catch(() => undefined);
    },
    hostOf: (kubeconfig) => {
      try {
        return new URL(readKubeconfig(kubeconfig).server).host;
      } catch {
        return undefined;
      }
    },
    candidate: (connection, kubeconfig) =>
      createKubernetesHub({
        connection,
        channel,
        timers,
        monotonicMs,
        kubeconfigOf: () => Promise.resolve(kubeconfig),
      }),
    close: async () => {
      await Promise.all([...hubs.values()].map((hub) => hub.close()));
      await channel.close();
    },
  };
};
