import type { Decider, DomainEvent, Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, sameJson } from '../json-tools.ts';
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
import { withoutDefaultIds } from './default-ids.ts';
import { stateInNetwork } from './subnet.resource.ts';
import { IN_NETWORK, networkRequired, ownerReference } from './virtual-network.resource.ts';
import { DIRECTIONS, hubRules, normalizedRules, rulesRejection, type HubRule } from './security-rules.ts';

/** What may reach the machines of a virtual network, and what they may reach (OSAC). */
const IMMUTABLE = ['spec.virtual_network'];
export const GROUP_PRIVATE_ONLY = ['metadata.finalizers', 'spec.implementation_strategy'];
const RULES = DIRECTIONS.map((way) => `spec.${way}`);
/** The only one that there is. */
export const STRATEGY = 'network_policy';

/** What its hub carried out last, and by which name it called that. */
type Shown = { readonly version: string; readonly rules: readonly (readonly HubRule[])[] };
export type GroupState = PlacedState & { readonly shown?: Shown };
export type GroupCommand =
  | PlacedCommand
  /** The hub shows it ready, as this version of what is wanted; empty: it names none. */
  | { readonly type: 'RecordShown'; readonly at: string; readonly version: string };
type Ready = { readonly at: string; readonly version?: string };
export type GroupEvent = PlacedEvent<'SecurityGroup', DomainEvent<'SecurityGroupBecameReady', Ready>>;

export const specOf = (document: JsonObject): JsonObject => objectAt(document, 'spec');
const rulesOf = (document: JsonObject): Shown['rules'] =>
  DIRECTIONS.map((way) => hubRules(specOf(document), way));

const plainDocument = (document: JsonObject): JsonObject => ({
  ...document,
  spec: normalizedRules(specOf(document)),
});

const documents = placedDocument({
  words: 'security group',
  prefix: 'SecurityGroup',
  done: 'BecameReady',
  immutable: IMMUTABLE,
  reportable: ['state', 'message'],
  carriedOut: RULES,
  status: (state) => {
    const shown = stateInNetwork(state);
    return { state: shown && `SECURITY_GROUP_STATE_${shown}`, message: messageOf(state) };
  },
  annotations: ownerReference,
  normalize: (document) => {
    const plain = plainDocument(document);
    return { ...plain, spec: { ...specOf(plain), implementation_strategy: STRATEGY } };
  },
  check: (document) => networkRequired(document) ?? rulesRejection(specOf(document)),
});

/** What the hub shows may still be about the rules before. */
const isStale = ({ shown, document }: GroupState & Placed, version: string): boolean =>
  version !== '' && shown?.version === version && !sameJson(shown.rules, rulesOf(document));

export const groupDecider: Decider<GroupState, GroupCommand, GroupEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    const next = documents.evolve(state, event);
    if (event.type !== 'SecurityGroupBecameReady' || !isUnderWay(next)) return next;
    return { ...next, shown: { version: event.data.version ?? '', rules: rulesOf(next.document) } };
  },
  decide: (state, command) => {
    if (command.type !== 'RecordShown')
      return documents.decide(state, command) as readonly GroupEvent[] | Rejection;
    const { at, version } = command;
    if (!isUnderWay(state) || isSettled(state) || isStale(state, version)) return [];
    return [{ type: 'SecurityGroupBecameReady', data: { at, ...(version === '' ? {} : { version }) } }];
  },
};

export const securityGroup: ResourceKind<GroupState, GroupCommand, GroupEvent> = {
  ...placedResource({
    kind: 'securityGroup',
    message: 'SecurityGroup',
    words: 'security group',
    privateOnly: GROUP_PRIVATE_ONLY,
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
  decider: groupDecider,
  view: documents.view,
};
