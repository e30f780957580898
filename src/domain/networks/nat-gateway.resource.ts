import { invalid, type Decider, type DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';
import {
  messageOf,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { withoutDefaultIds } from './default-ids.ts';
import { externalIp } from './external-ip.resource.ts';
import { IN_NETWORK, networkIn, networkRequired } from './virtual-network.resource.ts';

/** The address that the machines of a virtual network reach the outside from (OSAC). A network has one at most. */
const IMMUTABLE = ['spec.virtual_network', 'spec.external_ip'];
export const GATEWAY_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];

export type GatewayEvent = PlacedEvent<
  'NATGateway',
  DomainEvent<'NATGatewayBecameReady', { readonly at: string }>
>;

export const addressOf = (document: JsonObject): string =>
  stringAt(objectAt(objectAt(document, 'spec'), 'external_ip'), 'id');

const stateOf = ({ status, failure, done }: Placed): string => {
  if (failure !== undefined) return 'FAILED';
  if (status === 'deleting') return 'DELETING';
  return done === true ? 'READY' : 'PENDING';
};

const documents = placedDocument({
  words: 'NAT gateway',
  prefix: 'NATGateway',
  done: 'BecameReady',
  immutable: IMMUTABLE,
  reportable: ['state', 'message', 'hub'],
  status: (state) => ({
    state: `NAT_GATEWAY_STATE_${stateOf(state)}`,
    message: messageOf(state),
    hub: state.place?.hub ?? '',
  }),
  check: (document) =>
    networkRequired(document) ??
    (addressOf(document) === ''
      ? invalid('FIELD_REQUIRED', 'spec.external_ip', "field 'spec.external_ip' is required")
      : undefined),
});

export const natGateway: ResourceKind<PlacedState, PlacedCommand, GatewayEvent> = {
  ...placedResource({
    kind: 'natGateway',
    message: 'NATGateway',
    words: 'NAT gateway',
    privateOnly: GATEWAY_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [
      { path: IN_NETWORK.path, kind: IN_NETWORK.kind, scope: 'local' },
      { path: 'spec.external_ip', kind: externalIp.kind, scope: 'local' },
    ],
  }),
  idRule: withoutDefaultIds,
  rights: 'owned',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  uniqueValues: (document) => [
    {
      scope: 'natGateway.network',
      value: networkIn(document),
      field: IN_NETWORK.path,
      taken: 'the virtual network has a NAT gateway already: delete that one first',
    },
  ],
  takes: (document) => [{ kind: externalIp.kind, id: addressOf(document), wanted: {} }],
  decider: documents as unknown as Decider<PlacedState, PlacedCommand, GatewayEvent>,
  view: documents.view,
};
