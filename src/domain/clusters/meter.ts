import { byKey } from '../json-tools.ts';
import type { JsonObject } from '../json.ts';
import { meterOf, type Component, type Meter } from '../metering/meter.ts';
import { evolveCluster } from './cluster.ts';
import type { ClusterEvent } from './events.ts';
import { effectiveState } from './shown-status.ts';
import {
  initialCluster,
  isLiveCluster,
  isStoredCluster,
  type ClusterState,
  type StoredCluster,
} from './state.ts';

const CONTROL_PLANE = '_control_plane';

/** The control plane first, then the node sets by name. */
const componentsOf = ({ template, version, nodeSets }: StoredCluster): readonly Component[] => {
  const componentOf = (
    component: string,
    nodeSet: string,
    hostType: string,
    nodeCount: number,
  ): Component => ({
    component,
    nodeSet,
    hostType,
    nodeCount,
    dimensions: {
      cluster_template: template.name,
      node_set: nodeSet,
      component,
      host_type: hostType,
      node_count: nodeCount,
      ...releaseOf(version),
    },
  });
  const workers = Object.entries(nodeSets)
    .sort(byKey)
    .map(([nodeSet, { hostType, size }]) => componentOf('worker', nodeSet, hostType.name, size));
  return [componentOf('control_plane', CONTROL_PLANE, CONTROL_PLANE, 1), ...workers];
};

/** Name of the cluster version; an order may have none. */
const releaseOf = ({ name }: StoredCluster['version']): JsonObject =>
  name === '' ? {} : { release_image: name };

const BILLABLE: ReadonlySet<string> = new Set(['PROGRESSING', 'READY']);

/** A cluster is billed for its control plane and each of its node sets, by what was ordered (OSAC). */
export const clusterMeter: Meter<ClusterState> = meterOf<ClusterState, ClusterEvent>(
  {
    version: 1,
    resourceType: 'cluster_order',
    templateKind: 'clusterTemplate',
    facts: (state) => {
      if (!isStoredCluster(state)) return undefined;
      const { id, tenant, project, name, template, version, catalogItem } = state;
      const shown = effectiveState(state).replace(/^CLUSTER_STATE_/, '') || 'UNSPECIFIED';
      return {
        id,
        tenant,
        project,
        name,
        template,
        ...(catalogItem === undefined ? {} : { catalogItem: catalogItem.id }),
        state: shown,
        isBillable: BILLABLE.has(shown),
        isDelivered: shown === 'READY',
        isGone: !isLiveCluster(state),
        dimensions: { cluster_template: template.name, ...releaseOf(version) },
      };
    },
    components: (state) => (isStoredCluster(state) ? componentsOf(state) : []),
    sameComponents: (before, after) =>
      isStoredCluster(before) &&
      isStoredCluster(after) &&
      before.nodeSets === after.nodeSets &&
      before.template === after.template &&
      before.version === after.version,
  },
  { initialState: initialCluster, evolve: evolveCluster },
);
