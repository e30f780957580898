import { own } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { OrderedSpec } from '../cluster-order-manifest.ts';
import type { ClusterEvent } from '../events.ts';

/** The spec after one of the cluster's own events. */
export const changedSpec = (spec: OrderedSpec, type: string, facts: JsonObject): OrderedSpec => {
  const { nodeSets } = spec;
  // The facts are the data of the cluster's own event of this type.
  const event = { type, data: facts } as unknown as ClusterEvent;
  switch (event.type) {
    case 'NodeSetAdded':
      return { ...spec, nodeSets: { ...nodeSets, [event.data.name]: event.data.nodeSet } };
    case 'NodeSetResized': {
      const { name, to } = event.data;
      const set = own(nodeSets, name);
      return set === undefined ? spec : { ...spec, nodeSets: { ...nodeSets, [name]: { ...set, size: to } } };
    }
    case 'NodeSetRemoved': {
      const { [event.data.name]: _removed, ...kept } = nodeSets;
      return { ...spec, nodeSets: kept };
    }
    case 'ClusterSpecRevised': {
      const { sshPublicKey: _key, pullSecret: _secret, network: _network, ...kept } = spec;
      return { ...kept, ...event.data.spec, version: event.data.spec.version ?? spec.version };
    }
    default:
      return spec;
  }
};
