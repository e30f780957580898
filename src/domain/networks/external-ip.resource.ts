import { invalid, reject, type Decider, type DomainEvent, type Rejection } from '../decider.ts';
import {
  creationUnderWay,
  isHeldBy,
  lendsItself,
  userText,
  type UseCommand,
  type UseData,
  type User,
} from '../exclusive-use.ts';
import type { JsonObject } from '../json.ts';
import { defined, objectAt, stringAt, without } from '../json-tools.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';
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
import { parseAddress } from '../ranges.ts';
import { withoutDefaultIds } from './default-ids.ts';

/** Addresses of tenants (OSAC), on the hub of the pool that they are taken from. */
export const ADDRESS_ANNOTATION = 'fulfillment-ledger/address';
export const ALREADY_ATTACHED = 'ALREADY_ATTACHED';
const IMMUTABLE = ['spec.pool'];
export const IP_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];

export type ExternalIpState = PlacedState & {
  readonly address?: string;
  /** The one that the operator of its hub chose, whatever the pool says of it. */
  readonly shown?: { readonly address: string; readonly changes: number };
  /** The attachment or the NAT gateway that uses it. */
  readonly user?: User;
  /** Claims so far. */
  readonly claims?: number;
};
export type ExternalIpCommand =
  | PlacedCommand
  | UseCommand
  | { readonly type: 'RecordShown'; readonly at: string; readonly address: string }
  | { readonly type: 'RecordAllocated'; readonly at: string; readonly address: string };
export type ExternalIpEvent =
  | PlacedEvent<
      'ExternalIP',
      DomainEvent<
        'ExternalIPAddressShown' | 'ExternalIPAllocated',
        { readonly at: string; readonly address: string }
      >
    >
  | DomainEvent<'ExternalIPAttached' | 'ExternalIPDetached', UseData>;

/** The address that was asked for, if one was. */
export const wantedAddress = (document: JsonObject): string | undefined =>
  stringAt(objectAt(objectAt(document, 'metadata'), 'annotations'), ADDRESS_ANNOTATION) || undefined;

const stateOf = ({ status, failure, done }: Placed): string => {
  if (status === 'deleting') return 'DELETING';
  return failure !== undefined ? 'FAILED' : done === true ? 'ALLOCATED' : 'PENDING';
};

const documents = placedDocument({
  words: 'external IP',
  prefix: 'ExternalIP',
  done: 'Allocated',
  immutable: [...IMMUTABLE, `metadata.annotations.${ADDRESS_ANNOTATION}`],
  reportable: ['state', 'message', 'hub', 'address', 'pool'],
  status: (state) => {
    const { address = '', user } = state as Placed & ExternalIpState;
    return {
      state: `EXTERNAL_IP_STATE_${stateOf(state)}`,
      message: messageOf(state),
      hub: state.place?.hub ?? '',
      address,
      ...(user === undefined ? {} : { attached: true }),
    };
  },
  check: (document) => {
    const wanted = wantedAddress(document);
    if (stringAt(objectAt(objectAt(document, 'spec'), 'pool'), 'id') === '')
      return invalid('POOL_REQUIRED', 'spec.pool', "field 'spec.pool' is required");
    return wanted === undefined || parseAddress(wanted) !== undefined
      ? undefined
      : invalid(
          'INVALID_ADDRESS',
          'metadata.annotations',
          `annotation '${ADDRESS_ANNOTATION}' must be an IPv4 or IPv6 address (got '${wanted}')`,
        );
  },
  checkReport: (shown, status) => {
    const [from, to] = [shown, status].map((each) => stringAt(each, 'state'));
    return from === to || TRANSITIONS[from ?? '']?.includes(to ?? '') === true
      ? undefined
      : reject(
          'failed-precondition',
          'INVALID_STATE_TRANSITION',
          `invalid state transition from '${from}' to '${to || 'EXTERNAL_IP_STATE_UNSPECIFIED'}'`,
          { field: 'status.state' },
        );
  },
  inUse: (state) => {
    const { user } = state as Placed & ExternalIpState;
    return user === undefined
      ? undefined
      : notReleasable(state, `${userText(user.holder)} uses it: remove that first`);
  },
  checkRemoval: (state) => {
    const { state: shown = '' } = documents.view(state) as { readonly state?: string };
    // One that waits may wait for ever: its pool has no room.
    const isWaiting = shown === 'EXTERNAL_IP_STATE_PENDING' && state.waiting !== undefined;
    return shown === 'EXTERNAL_IP_STATE_ALLOCATED' || isWaiting
      ? undefined
      : notReleasable(state, `its state is ${shown}, and only an allocated one can be deleted`);
  },
});

const notReleasable = ({ name }: Placed, why: string): Rejection =>
  reject('failed-precondition', 'NOT_RELEASABLE', `cannot delete external IP '${name}': ${why}`);

/**
 * What a private caller may say of it; `DELETING` is what the operator says
 * at its end.
 */
const TRANSITIONS: { readonly [from: string]: readonly string[] } = Object.fromEntries(
  Object.entries({
    PENDING: ['ALLOCATED', 'FAILED', 'DELETING'],
    FAILED: ['ALLOCATED', 'DELETING'],
    ALLOCATED: ['DELETING'],
  }).map(([from, to]) => [`EXTERNAL_IP_STATE_${from}`, to.map((state) => `EXTERNAL_IP_STATE_${state}`)]),
);

/** Its hub showed that it failed: what it shows next is news, also where it is the same address. */
const isOfHub = ({ failure }: PlacedState): boolean =>
  failure?.reason === 'ProvisioningFailed' || failure?.reason === 'ObjectLost';

/** One user at a time, and none of what is about to go. */
const use = (state: ExternalIpState, command: UseCommand): readonly ExternalIpEvent[] | Rejection => {
  const { user, claims = 0 } = state;
  const { at, holder } = command;
  const isUser = isHeldBy(user, holder);
  if (command.type === 'DetachFrom') {
    const { generation } = command;
    return isUser && user.generation === generation
      ? [{ type: 'ExternalIPDetached', data: { at, holder, generation } }]
      : [];
  }
  const { by } = command;
  if (isUser && by === undefined) return [];
  if (isUser && user.by !== by) return creationUnderWay(holder);
  if (!isUnderWay(state))
    return refuseUse('ADDRESS_GONE', 'the external IP is being deleted or was given up: use another one');
  return user === undefined || isUser
    ? [{ type: 'ExternalIPAttached', data: { at, holder, generation: claims + 1, ...defined({ by }) } }]
    : alreadyAttached(state.id);
};

export const alreadyAttached = (id: string): Rejection =>
  refuseUse(ALREADY_ATTACHED, `external IP '${id}' is already attached`);

const refuseUse = (code: string, message: string): Rejection =>
  reject('failed-precondition', code, message, { field: 'spec.external_ip' });

export const externalIpDecider: Decider<ExternalIpState, ExternalIpCommand, ExternalIpEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    const next = documents.evolve(state, event);
    if (event.type === 'ExternalIPWithdrawn') {
      const { address: _address, shown: _shown, ...kept } = next;
      return kept;
    }
    if (event.type === 'ExternalIPAddressShown') {
      const shown = { address: event.data.address, changes: (next.shown?.changes ?? 0) + 1 };
      return { ...(isOfHub(next) ? without(next, 'failure') : next), shown };
    }
    if (event.type === 'ExternalIPAllocated') return { ...next, address: event.data.address };
    if (event.type === 'ExternalIPAttached') {
      const { at: _at, ...user } = event.data;
      return { ...next, user, claims: user.generation };
    }
    return event.type === 'ExternalIPDetached' ? without(next, 'user') : next;
  },
  decide: (state, command) => {
    if (command.type === 'AttachTo' || command.type === 'DetachFrom') return use(state, command);
    if (command.type !== 'RecordAllocated' && command.type !== 'RecordShown')
      return documents.decide(state, command) as readonly ExternalIpEvent[] | Rejection;
    if (!isUnderWay(state)) return [];
    const { at, address } = command;
    if (command.type === 'RecordShown')
      return state.shown?.address === address && !isOfHub(state)
        ? []
        : [{ type: 'ExternalIPAddressShown', data: { at, address } }];
    return isSettled(state) && state.address === address
      ? []
      : [{ type: 'ExternalIPAllocated', data: { at, address } }];
  },
};

export const externalIp: ResourceKind<ExternalIpState, ExternalIpCommand, ExternalIpEvent> = {
  ...placedResource({
    kind: 'externalIp',
    message: 'ExternalIP',
    words: 'external IP',
    privateOnly: IP_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [{ path: 'spec.pool', kind: 'externalIpPool', scope: 'full' }],
  }),
  idRule: withoutDefaultIds,
  lends: {
    ...lendsItself,
    held: ({ user }) => (user === undefined ? [] : [user]),
    heldBy: ({ user }, holder) => (isHeldBy(user, holder) ? user.generation : undefined),
  },
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  decider: externalIpDecider,
  view: documents.view,
};
