import type { Decider, DomainEvent } from '../decider.ts';
import { objectAt } from '../json-tools.ts';
import {
  messageOf,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';
import { withoutDefaultIds } from './default-ids.ts';
import { plainDocument, rangesOf, rangesRejection } from './ranges-of-spec.ts';
import { IN_NETWORK, networkIn, networkRequired, ownerReference } from './virtual-network.resource.ts';

/** Parts of virtual networks (OSAC): the ranges of no two of a network overlap. */
const IMMUTABLE = ['spec.virtual_network', 'spec.ipv4_cidr', 'spec.ipv6_cidr'];
export const SUBNET_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];

export type SubnetEvent = PlacedEvent<'Subnet', DomainEvent<'SubnetBecameReady', { readonly at: string }>>;

/** As kinds show it that lie in a network and have all of OSAC's states. */
export const stateInNetwork = ({ status, place, waiting, failure, done }: Placed): string => {
  if (status === 'deleting') return failure === undefined ? 'DELETING' : 'DELETE_FAILED';
  if (failure !== undefined) return 'FAILED';
  if (done === true) return 'READY';
  return place === undefined && waiting === undefined ? '' : 'PENDING';
};

const documents = placedDocument({
  words: 'subnet',
  prefix: 'Subnet',
  done: 'BecameReady',
  immutable: IMMUTABLE,
  reportable: ['state', 'message', 'hub'],
  status: (state) => {
    const shown = stateInNetwork(state);
    return {
      state: shown && `SUBNET_STATE_${shown}`,
      message: messageOf(state),
      hub: state.place?.hub ?? '',
    };
  },
  annotations: ownerReference,
  normalize: plainDocument,
  check: (document) => networkRequired(document) ?? rangesRejection(objectAt(document, 'spec')),
});

export const subnet: ResourceKind<PlacedState, PlacedCommand, SubnetEvent> = {
  ...placedResource({
    kind: 'subnet',
    message: 'Subnet',
    words: 'subnet',
    privateOnly: SUBNET_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [{ path: IN_NETWORK.path, kind: IN_NETWORK.kind, scope: 'local' }],
  }),
  idRule: withoutDefaultIds,
  rights: 'owned',
  plain: plainDocument,
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  takes: (document) => [
    {
      kind: IN_NETWORK.kind,
      id: networkIn(document),
      wanted: { ranges: rangesOf(objectAt(document, 'spec')).map(({ text }) => text) },
    },
  ],
  decider: documents as unknown as Decider<PlacedState, PlacedCommand, SubnetEvent>,
  view: documents.view,
};
