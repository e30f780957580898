import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt, textOf, textsAt } from '../../../src/domain/json-tools.ts';
import { HubError } from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER_UUID_LABEL,
  type ObservedHostedCluster,
} from '../../../src/domain/clusters/hub-objects.ts';
import { fakeCluster } from '../../support/hubs/hub-fixture.ts';
import { orderCalled } from './contract.ts';

export const HUB = 'hub-a';
export const PLACE = { namespace: 'orders', name: 'order-a', clusterId: 'id-of-order-a' };
const INFRASTRUCTURE = 'osac.openshift.io/infrastructure';

/** A hub with one order, which playbooks change as Ansible does. */
export const automatedHub = () => {
  const hub = {
    order: orderCalled(PLACE.name) as JsonObject | undefined,
    hosted: new Map<string, ObservedHostedCluster>(),
    clockSkewMs: 0,
    /** How often the order was looked at. */
    looks: 0,
    readable: true,
    /** What a create playbook does first; by name, so that the second one changes nothing. */
    create: async (order: JsonObject): Promise<void> => {
      const name = stringAt(objectAt(order, 'metadata'), 'name');
      hub.mark([INFRASTRUCTURE]);
      hub.hosted.set(name, { name, namespace: `orders-${name}`, conditions: [] });
    },
    mark: (finalizers: string[], annotations: { [key: string]: string } = {}): void => {
      hub.order = { ...hub.order, metadata: { ...objectAt(hub.order, 'metadata'), finalizers, annotations } };
    },
  };
  const cluster = fakeCluster(HUB, {
    readClusterOrder: async () => hub.order,
    getClusterOrder: async () => {
      hub.looks += 1;
      if (hub.order === undefined) return undefined;
      const metadata = objectAt(hub.order, 'metadata');
      return {
        name: stringAt(metadata, 'name'),
        namespace: PLACE.namespace,
        uid: 'u',
        id: stringAt(objectAt(metadata, 'labels'), CLUSTER_ORDER_UUID_LABEL),
        resourceVersion: '1',
        generation: 1,
        creationTimestamp: '2026-11-21T09:00:00Z',
        finalizers: listAt(metadata, 'finalizers').map(textOf),
        annotations: textsAt(metadata, 'annotations'),
        spec: { templateID: 't', templateParameters: '{}', nodeRequests: [] },
        conditions: [],
        jobs: [],
      };
    },
    getHostedCluster: async ({ namespace, name }) => {
      if (!hub.readable) throw new HubError('unauthorized', 'no right', { facts: { status: 403 } });
      const hosted = hub.hosted.get(name);
      return hosted?.namespace === namespace ? hosted : undefined;
    },
    check: async () => ({ problems: [], clockSkewMs: hub.clockSkewMs }),
  });
  return { hub, cluster };
};
