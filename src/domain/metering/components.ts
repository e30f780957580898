import type { StoredCluster } from '../clusters/state.ts';
import { byKey } from '../json-tools.ts';

/**
 * What a cluster is billed for: its control plane and each of its node sets, by what was ordered (metering-events.md §5).
 * Names, not ids, as the order resolved them: a later change of the catalogue changes no bill.
 */
export type Component = {
  readonly component: 'control_plane' | 'worker';
  readonly nodeSet: string;
  readonly hostType: string;
  readonly nodeCount: number;
  readonly template: string;
  /** Name of the cluster version; absent when the order has none. */
  readonly releaseImage?: string;
};

const CONTROL_PLANE = '_control_plane';

/** The control plane first, then the node sets by name. */
export const componentsOf = (cluster: StoredCluster): readonly Component[] => {
  const shared = sharedOf(cluster);
  const controlPlane: Component = {
    component: 'control_plane',
    nodeSet: CONTROL_PLANE,
    hostType: CONTROL_PLANE,
    nodeCount: 1,
    ...shared,
  };
  const workers = Object.entries(cluster.nodeSets)
    .sort(byKey)
    .map(
      ([nodeSet, { hostType, size }]): Component => ({
        component: 'worker',
        nodeSet,
        hostType: hostType.name,
        nodeCount: size,
        ...shared,
      }),
    );
  return [controlPlane, ...workers];
};

const sharedOf = ({ template, version }: StoredCluster): Pick<Component, 'template' | 'releaseImage'> => ({
  template: template.name,
  ...(version.name === '' ? {} : { releaseImage: version.name }),
});

export const sameComponent = (left: Component, right: Component): boolean =>
  left.hostType === right.hostType &&
  left.nodeCount === right.nodeCount &&
  left.template === right.template &&
  left.releaseImage === right.releaseImage;

/** What tells the components of one cluster apart: a node set may bear any name. */
export const componentKey = ({ component, nodeSet }: Component): string => `${component}/${nodeSet}`;
