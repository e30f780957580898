import { isStored } from '../catalog/document.ts';
import { invalid, reject, type Decider, type DomainEvent, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { defined, listAt, objectAt, stringAt, withoutValueAt } from '../json-tools.ts';
import {
  isAborted,
  messageOf,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { placedResource } from '../placed-resource.ts';
import type { Parent } from '../placed-with-parent.ts';
import type { ResourceKind } from '../resource.ts';
import { SERVICE, withoutDefaultIds } from './default-ids.ts';
import { HUB_ANNOTATION } from './external-ip-pool.resource.ts';
import { familyRejection, isReadyClass } from './network-class.resource.ts';
import { plainDocument, rangesOf, rangesRejection, rangeTexts, withPlainRanges } from './ranges-of-spec.ts';
import {
  claimOf,
  claimsOf,
  decidePlan,
  emptyPlan,
  evolvePlan,
  isPlanEvent,
  isUnclaimed,
  PLAN_EVENTS,
  partsOfPlan,
  planFrom,
  withoutParts,
  type PlanCommand,
  type PlanEvent,
  type SubnetPlan,
} from './subnet-plan.ts';

/** Networks of tenants (OSAC). Each owns its subnets' ranges. */
const STATE = 'VIRTUAL_NETWORK_STATE_';
export const NETWORK_READY = `${STATE}READY`;
const PROVIDED = ['spec.region', 'spec.network_class', 'spec.implementation_strategy'];
const IMMUTABLE = [...PROVIDED, 'spec.ipv4_cidr', 'spec.ipv6_cidr'];
/** Set where the service pins a network of its own; tenants are not told of hubs. */
export const PINNED = `metadata.annotations.${HUB_ANNOTATION}`;
export const NETWORK_PRIVATE_ONLY = ['metadata.finalizers', ...PROVIDED, 'status.hub'];
/** Of what lies in a network: which one it is (OSAC). */
const OWNER_ANNOTATION = 'osac.openshift.io/owner-reference';

export type NetworkState = PlacedState & { readonly plan?: SubnetPlan };
export type NetworkCommand = PlacedCommand | PlanCommand;
export type NetworkEvent =
  | PlacedEvent<'VirtualNetwork', DomainEvent<'VirtualNetworkBecameReady', { readonly at: string }>>
  | PlanEvent;

export const isOfService = (state: NetworkState): boolean => isStored(state) && state.creator === SERVICE;
export const planOf = ({ plan }: Pick<NetworkState, 'plan'>): SubnetPlan => plan ?? emptyPlan();

/** OSAC has no state of deletion here. */
const stateOf = ({ status, place, waiting, failure, done }: Placed): string => {
  if (failure !== undefined) return 'FAILED';
  if (status === 'deleting') return 'PENDING';
  if (done === true) return 'READY';
  return place === undefined && waiting === undefined ? '' : 'PENDING';
};

const documents = placedDocument({
  words: 'virtual network',
  prefix: 'VirtualNetwork',
  done: 'BecameReady',
  immutable: IMMUTABLE,
  reportable: ['state', 'message', 'hub'],
  status: (state) => {
    const shown = stateOf(state);
    return { state: shown && STATE + shown, message: messageOf(state), hub: state.place?.hub ?? '' };
  },
  normalize: (document, { previous }) => {
    const { implementation_strategy: sent, ...spec } = withPlainRanges(objectAt(document, 'spec'));
    const strategy = previous === undefined ? sent : objectAt(previous, 'spec')['implementation_strategy'];
    return {
      ...document,
      spec: { ...spec, ...(strategy === undefined ? {} : { implementation_strategy: strategy }) },
    };
  },
  check: (document) => {
    const spec = objectAt(document, 'spec');
    if (stringAt(spec, 'region') === '')
      return invalid('FIELD_REQUIRED', 'spec.region', "field 'spec.region' is required");
    return stringAt(objectAt(spec, 'network_class'), 'id') === '' ? noClass() : rangesRejection(spec);
  },
  inUse: (state) => {
    const count = claimsOf(planOf(state as Placed & NetworkState)).length;
    return count === 0
      ? undefined
      : reject(
          'failed-precondition',
          'STILL_REFERENCED',
          `cannot delete VirtualNetwork '${state.id}': ${count} Subnet(s) still reference it`,
        );
  },
});

export const noClass = (): Rejection =>
  invalid(
    'NETWORK_CLASS_REQUIRED',
    'spec.network_class',
    "field 'spec.network_class' is required (no default NetworkClass is configured)",
  );

/** Where networks are that say nothing of it (OSAC). */
const DEFAULT_REGION = 'default';

/** The network as its class makes it, or why the class cannot. `ofTenant`: nobody can have said a region. */
export const withClass = (
  document: JsonObject,
  {
    id,
    name,
    document: found,
  }: { readonly id: string; readonly name: string; readonly document: JsonObject },
  ofTenant: boolean,
): JsonObject | Rejection => {
  const field = 'spec.network_class';
  if (!isReadyClass(found))
    return reject('failed-precondition', 'NETWORK_CLASS_NOT_READY', `network class '${id}' is not ready`, {
      field,
    });
  const spec = objectAt(document, 'spec');
  const families = rangeTexts(spec).map(({ family }) => family);
  const wrong = rangesRejection(spec) ?? familyRejection(found, families, `network class '${id}'`);
  if (wrong !== undefined) return wrong;
  return {
    ...document,
    spec: {
      ...spec,
      ...(ofTenant ? { region: DEFAULT_REGION } : {}),
      network_class: { id, name },
      implementation_strategy: stringAt(found, 'implementation_strategy'),
    },
  };
};

export const networkDecider: Decider<NetworkState, NetworkCommand, NetworkEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    if (!isPlanEvent(event)) return documents.evolve(state, event);
    return isStored(state) ? { ...state, plan: evolvePlan(planOf(state), event) } : state;
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'ClaimRanges':
        if (!isStored(state) || state.status !== 'present' || isAborted(state))
          return reject('failed-precondition', 'NETWORK_GONE', 'the virtual network is being deleted');
        return decidePlan(planOf(state), command, rangesOf(objectAt(state.document, 'spec')));
      case 'ReleaseRanges':
        return isStored(state) ? decidePlan(planOf(state), command, []) : [];
      default:
        return documents.decide(state, command) as readonly NetworkEvent[] | Rejection;
    }
  },
};

export const virtualNetwork: ResourceKind<NetworkState, NetworkCommand, NetworkEvent> = {
  ...placedResource({
    kind: 'virtualNetwork',
    message: 'VirtualNetwork',
    words: 'virtual network',
    privateOnly: NETWORK_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [{ path: 'spec.network_class', kind: 'networkClass', scope: 'full' }],
  }),
  idRule: withoutDefaultIds,
  rights: 'owned',
  plain: plainDocument,
  countsUsers: true,
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  lends: {
    claim: (at, holder, wanted, by) => {
      const ranges = listAt(wanted, 'ranges').filter((each) => typeof each === 'string');
      return { type: 'ClaimRanges', at, holder, ranges, ...defined({ by }) };
    },
    release: (at, holder, generation) => ({ type: 'ReleaseRanges', at, holder, generation }),
    held: (state) => claimsOf(planOf(state)),
    heldBy: (state, holder) => claimOf(planOf(state), holder)?.generation,
    holdsAny: (state) => !isUnclaimed(planOf(state)),
  },
  apart: {
    events: Object.keys(PLAN_EVENTS),
    split: ({ plan, ...state }) => ({
      rest: { ...state, ...(plan === undefined ? {} : { plan: withoutParts(plan) }) },
      parts: plan === undefined ? {} : partsOfPlan(plan),
    }),
    join: (stored, parts) => {
      const { plan, ...rest } = stored as NetworkState;
      return plan === undefined ? rest : { ...rest, plan: planFrom(plan, parts) };
    },
  },
  decider: networkDecider,
  view: (state) => {
    const view = documents.view(state);
    return view.exists && isOfService(state)
      ? { ...view, document: withoutValueAt(view.document, PINNED) }
      : view;
  },
};

/** Of kinds that lie in a network. */
export const IN_NETWORK: Parent = {
  kind: virtualNetwork.kind,
  path: 'spec.virtual_network',
  words: virtualNetwork.words,
  ready: NETWORK_READY,
  message: virtualNetwork.message,
  done: 'BecameReady',
};

export const networkIn = (document: JsonObject): string =>
  stringAt(objectAt(objectAt(document, 'spec'), 'virtual_network'), 'id');

/** The annotation that says where it lies. */
export const ownerReference = (document: JsonObject): JsonObject => ({
  [OWNER_ANNOTATION]: networkIn(document),
});

export const networkRequired = (document: JsonObject): Rejection | undefined =>
  networkIn(document) === ''
    ? invalid('FIELD_REQUIRED', IN_NETWORK.path, `field '${IN_NETWORK.path}' is required`)
    : undefined;

/** Why nothing can be made in a network now; the service itself waits instead. */
export const parentRejection = (id: string, state: string): Rejection | undefined =>
  state === NETWORK_READY
    ? undefined
    : reject(
        'failed-precondition',
        'NETWORK_NOT_READY',
        `parent VirtualNetwork '${id}' is not in READY state (current state: ${state.replace(STATE, '') || 'UNSPECIFIED'})`,
        { field: IN_NETWORK.path },
      );
