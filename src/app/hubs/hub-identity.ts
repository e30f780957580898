import { HubError, type HubConnection, type ManagementClusters } from './management-cluster.ts';

/**
 * Which cluster credentials lead to that a hub is to have. Undefined: that cannot be told now, because nobody answers,
 * the credentials cannot be used, or their rights do not show it. Throws nothing for what it finds.
 */
export type ClusterIdentifier = (
  hub: Pick<HubConnection, 'id' | 'namespace' | 'tenant'>,
  kubeconfig: Uint8Array,
) => Promise<string | undefined>;

/** Milliseconds that a change of a hub waits for the answer; who cannot answer now is asked before anything is done. */
const ASK_MS = 5_000;

export const clusterIdentifier =
  (clusters: Pick<ManagementClusters, 'candidate'>): ClusterIdentifier =>
  async (hub, kubeconfig) => {
    const adapter = clusters.candidate?.({ ...hub, revision: 0 }, kubeconfig);
    if (adapter?.identify === undefined) return undefined;
    const signal = AbortSignal.timeout(ASK_MS);
    try {
      return await adapter.identify({ effectId: `hub-identity/${hub.id}`, deadlineMs: ASK_MS, signal });
    } catch (error) {
      if (error instanceof HubError) return undefined;
      throw error;
    } finally {
      await adapter.close();
    }
  };
