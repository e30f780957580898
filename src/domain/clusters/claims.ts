import type { CapacityClaim } from '../hubs/capacity-events.ts';
import type { DesiredCluster } from './observed.ts';

/** The claim of a cluster: one hosted control plane and its nodes by host type. */
export const claimOfCluster = (nodeSets: DesiredCluster['nodeSets']): CapacityClaim => {
  const nodes = new Map<string, number>();
  for (const { hostType, size } of Object.values(nodeSets)) {
    if (size > 0) nodes.set(hostType.id, (nodes.get(hostType.id) ?? 0) + size);
  }
  return { controlPlanes: 1, nodes: Object.fromEntries(nodes) };
};
