import { invalid, type Decider, type DomainEvent, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt, without } from '../json-tools.ts';
import {
  isSettled,
  isUnderWay,
  messageOf,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';
import { externalIp } from './external-ip.resource.ts';

/** Uses of external IPs (OSAC): one at a time of each address, on the hub of the address. */
const ENDPOINT = 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_';
/** What an address may be attached to, by its field of the spec, as a hub calls it; of a cluster one of its endpoints. */
const TARGETS = [
  { field: 'compute_instance', kind: 'computeInstance', onHub: 'computeInstance' },
  { field: 'cluster', kind: 'cluster', onHub: 'cluster', endpoints: ['API', 'INGRESS'] },
  { field: 'baremetal_instance', kind: 'bareMetalInstance', onHub: 'baremetalInstance' },
] as const satisfies readonly {
  readonly field: string;
  readonly kind: string;
  readonly onHub: string;
  readonly endpoints?: readonly string[];
}[];
const IMMUTABLE = [
  'spec.external_ip',
  ...TARGETS.map(({ field }) => `spec.${field}`),
  'spec.target_endpoint',
];
export const ATTACHMENT_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];

export type AttachmentState = PlacedState & { readonly address?: string };
export type AttachmentCommand =
  | PlacedCommand
  | { readonly type: 'RecordAttached'; readonly at: string; readonly address: string };
export type AttachmentEvent = PlacedEvent<
  'ExternalIPAttachment',
  DomainEvent<'ExternalIPAttachmentBecameReady', { readonly at: string; readonly address: string }>
>;

type Target = {
  readonly kind: string;
  readonly id: string;
  readonly field: string;
  readonly onHub: string;
  readonly endpoints?: readonly string[];
};

const specOf = (document: JsonObject): JsonObject => objectAt(document, 'spec');
export const addressIn = (document: JsonObject): string =>
  stringAt(objectAt(specOf(document), 'external_ip'), 'id');
/** What the address is attached to. */
export const targetIn = (document: JsonObject): Target | undefined =>
  TARGETS.map((target) => ({ ...target, id: stringAt(objectAt(specOf(document), target.field), 'id') })).find(
    ({ id }) => id !== '',
  );
/** `API`, `INGRESS`, or none. */
export const endpointIn = (document: JsonObject): string => {
  const endpoint = stringAt(specOf(document), 'target_endpoint');
  return endpoint === `${ENDPOINT}UNSPECIFIED` ? '' : endpoint.replace(ENDPOINT, '');
};

/** The document of an attachment of this address. */
export const attachmentSpec = (
  address: JsonObject,
  field: (typeof TARGETS)[number]['field'],
  target: JsonObject,
  endpoint: string,
): JsonObject => ({
  external_ip: address,
  [field]: target,
  ...(endpoint === '' ? {} : { target_endpoint: `${ENDPOINT}${endpoint}` }),
});

const stateOf = ({ status, failure, done }: Placed): string => {
  if (status === 'deleting') return 'DELETING';
  return failure !== undefined ? 'FAILED' : done === true ? 'READY' : 'PENDING';
};

const refused = (field: string, message: string): Rejection => invalid('INVALID_ATTACHMENT', field, message);

const attachmentRejection = (document: JsonObject): Rejection | undefined => {
  if (addressIn(document) === '')
    return refused('spec.external_ip', "field 'spec.external_ip' is required: name an external IP");
  const target = targetIn(document);
  if (target === undefined) {
    const fields = TARGETS.map(({ field }) => `'spec.${field}'`).join(', ');
    return refused('spec.cluster', `one of ${fields} is required: name what the address is attached to`);
  }
  const { field } = target;
  const { endpoints: possible = [] } = target;
  const endpoint = endpointIn(document);
  if (possible.length === 0 && endpoint === '') return undefined;
  if (possible.includes(endpoint)) return undefined;
  return refused(
    'spec.target_endpoint',
    possible.length === 0
      ? `field 'spec.target_endpoint' must be left out with 'spec.${field}'`
      : `field 'spec.target_endpoint' must be one of ${possible.map((one) => ENDPOINT + one).join(', ')} with 'spec.${field}'`,
  );
};

const documents = placedDocument({
  words: 'external IP attachment',
  prefix: 'ExternalIPAttachment',
  done: 'BecameReady',
  immutable: IMMUTABLE,
  reportable: ['state', 'message', 'hub', 'external_ip_address'],
  status: (state) => {
    const { address = '' } = state as Placed & AttachmentState;
    return {
      state: `EXTERNAL_IP_ATTACHMENT_STATE_${stateOf(state)}`,
      message: messageOf(state),
      hub: state.place?.hub ?? '',
      external_ip_address: address,
    };
  },
  check: attachmentRejection,
});

export const attachmentDecider: Decider<AttachmentState, AttachmentCommand, AttachmentEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    const next = documents.evolve(state, event);
    if (event.type === 'ExternalIPAttachmentBecameReady') return { ...next, address: event.data.address };
    return event.type === 'ExternalIPAttachmentWithdrawn' ? without(next, 'address') : next;
  },
  decide: (state, command) => {
    if (command.type !== 'RecordAttached')
      return documents.decide(state, command) as readonly AttachmentEvent[] | Rejection;
    const { at, address } = command;
    return !isUnderWay(state) || (isSettled(state) && state.address === address)
      ? []
      : [{ type: 'ExternalIPAttachmentBecameReady', data: { at, address } }];
  },
};

export const externalIpAttachment: ResourceKind<AttachmentState, AttachmentCommand, AttachmentEvent> = {
  ...placedResource({
    kind: 'externalIpAttachment',
    message: 'ExternalIPAttachment',
    words: 'external IP attachment',
    privateOnly: ATTACHMENT_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [
      { path: 'spec.external_ip', kind: externalIp.kind, scope: 'local' },
      ...TARGETS.map(({ field, kind }) => ({ path: `spec.${field}`, kind, scope: 'local' as const })),
    ],
  }),
  rights: 'owned',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  // The address first: who asks for one that is in use is told so, whatever the target is (OSAC).
  takes: (document) => {
    const target = targetIn(document);
    const part = endpointIn(document);
    return [
      { kind: externalIp.kind, id: addressIn(document), wanted: {} },
      ...(target === undefined ? [] : [{ kind: target.kind, id: target.id, wanted: { part } }]),
    ];
  },
  decider: attachmentDecider,
  view: documents.view,
};
