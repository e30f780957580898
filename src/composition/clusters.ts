import { isSimulatedHub } from '../domain/hubs/hub-facts.ts';
import { createKubernetesClusters } from '../adapters/management-cluster/kubernetes/kubernetes-hubs.ts';
import { createSimulatedHubs } from '../adapters/management-cluster/simulated/simulated-hubs.ts';
import type { ManagementClusters } from '../app/hubs/management-cluster.ts';
import type { Runtime, SecretStore } from '../app/ports.ts';

export type Clusters = ManagementClusters & { close(): Promise<void> };

/**
 * Adapters of all hubs: those whose id says that they are simulated, and those that have a kubeconfig. Threads start
 * with the first call on a hub of theirs.
 */
export const createClusters = (
  options: {
    /** Folder of the simulated hubs' files. */
    readonly dir: string;
    readonly secrets: Pick<SecretStore, 'reveal'>;
  } & Pick<Runtime, 'clock' | 'timers' | 'instance' | 'logger'>,
): Clusters => {
  const { dir, instance, clock, timers, secrets, logger } = options;
  const simulated = createSimulatedHubs({ dir, clock, timers, instance });
  const kubernetes = createKubernetesClusters({
    secrets,
    clock,
    timers,
    logger: logger.child({ component: 'hubs' }),
  });
  return {
    of: (hub) => (isSimulatedHub(hub.id) ? simulated.of(hub) : kubernetes.of(hub)),
    forget: (id) => kubernetes.forget(id),
    hostOf: kubernetes.hostOf,
    candidate: (hub, kubeconfig) => {
      const known = isSimulatedHub(hub.id) ? simulated.of(hub) : undefined;
      // A simulated hub takes any kubeconfig, and is not closed by who only looked at it.
      return known === undefined
        ? kubernetes.candidate(hub, kubeconfig)
        : { ...known, close: () => Promise.resolve() };
    },
    close: async () => {
      await Promise.all([simulated.close(), kubernetes.close()]);
    },
  };
};
