import type { Decider, Decision } from '../decider.ts';
import {
  documentDecider,
  documentView,
  isStored,
  type DocumentCommand,
  type DocumentFacts,
  type DocumentState,
} from '../catalog/document.ts';
import type { HubEvent } from '../catalog/events.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { nameFromId } from '../catalog/derived-names.ts';
import {
  conditionsOf,
  decideHealth,
  evolveHealth,
  isHealthEvent,
  shownHosts,
  type HubHealth,
  type ReportHubCheck,
} from './health.ts';
import { isSimulatedHub } from './hub-facts.ts';
import { hubSpecRejection } from './hub-spec.ts';
import type { ResourceKind } from '../resource.ts';

export {
  DELEGATED_STEPS,
  hubFacts,
  isSimulatedHub,
  namespaceOf,
  tenantNamespace,
  type DelegatedStep,
  type HubController,
  type HubFacts,
  type HubMode,
  type HubScheduling,
  type StepRule,
} from './hub-facts.ts';

/** Management clusters (osac-api.md §11 Hubs) with the additive fields of design §6. */
export const KUBECONFIG_PATH = 'spec.kubeconfig';
const SECRETS = [
  { path: KUBECONFIG_PATH, kind: 'kubeconfig', reads: 'absent', encoding: 'base64' },
  { path: 'spec.automation.token', kind: 'automation-token', reads: 'absent', encoding: 'text' },
  { path: 'spec.automation.hmac_secret', kind: 'automation-key', reads: 'absent', encoding: 'text' },
] as const;

const documents = documentDecider({
  words: 'hub',
  events: {
    created: 'HubRegistered',
    revised: 'HubRevised',
    deletionRequested: 'HubDeregistrationRequested',
    retired: 'HubDeregistered',
  },
  immutable: [],
  // What a caller sends as status is not kept: the view derives it.
  normalize: ({ status: _sent, ...document }) => document,
  check: (document, { id, previous }) =>
    hubSpecRejection(
      objectAt(document, 'spec'),
      { simulated: isSimulatedHub(id) },
      previous === undefined ? undefined : objectAt(previous, 'spec'),
    ),
});

/** A hub's document and what looking at it showed. */
export type HubState = DocumentState & { readonly health?: HubHealth };
export type HubCommand = DocumentCommand | ReportHubCheck;

export const hubDecider: Decider<HubState, HubCommand, HubEvent> = {
  initialState: documents.initialState,
  evolve: (state, event) => {
    if (isHealthEvent(event))
      return isStored(state) ? { ...state, health: evolveHealth(state.health ?? {}, event) } : state;
    const next = documents.evolve(state, event);
    // What was seen is of that hub: another one under its id begins with nothing.
    return state.health === undefined || event.type === 'HubRegistered'
      ? next
      : { ...next, health: state.health };
  },
  decide: (state, command) =>
    command.type === 'ReportHubCheck' ? reportCheck(state, command) : documents.decide(state, command),
};

const reportCheck = (state: HubState, command: ReportHubCheck): Decision<HubEvent> => {
  if (!isStored(state) || state.status === 'retired') return [];
  if (command.kubeconfig !== state.secrets[KUBECONFIG_PATH]?.version) return [];
  return decideHealth(state.health ?? {}, command);
};

export const hub: ResourceKind<HubState, HubCommand, HubEvent> = {
  kind: 'hub',
  collection: 'hubs',
  words: 'hub',
  message: 'Hub',
  service: 'Hubs',
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  ids: 'client-may-choose',
  nameScope: 'project',
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  event: { field: 'hub', public: false },
  defaultTenant: 'shared',
  privateOnly: [],
  secrets: SECRETS,
  immutable: [],
  references: [],
  pointsAt: () => [],
  protectedWhileReferenced: true,
  decider: hubDecider,
  stateVersion: 2,
  view: (state) => documentView(state, SECRETS, renderHub),
};

/** Condition `NoAdapter`: the hub is accepted, but without a kubeconfig nothing can reach it. */
const renderHub = (
  document: JsonObject,
  facts: DocumentFacts & { readonly health?: HubHealth },
): JsonObject => {
  const { health = {} } = facts;
  const simulated = isSimulatedHub(facts.id);
  const { version, hosts } = health;
  const seen = {
    ...(version === undefined ? {} : { version }),
    ...(hosts === undefined ? {} : { hosts: shownHosts(hosts.counts) }),
  };
  // A simulated hub is there as long as this service is: it has conditions only once something was found wrong.
  if (simulated) {
    const conditions = health.ready === undefined ? [] : [...conditionsOf(health, facts.createdAt)];
    return {
      ...document,
      status: { adapter: 'simulated', ...(conditions.length === 0 ? {} : { conditions }), ...seen },
    };
  }
  if (facts.secrets[KUBECONFIG_PATH] !== undefined) {
    const conditions = [...conditionsOf(health, facts.createdAt)];
    return { ...document, status: { adapter: 'kubernetes', conditions, ...seen } };
  }
  const condition = {
    type: 'NoAdapter',
    status: 'CONDITION_STATUS_TRUE',
    last_transition_time: facts.createdAt,
    reason: 'NoKubeconfig',
    message: 'the hub has no kubeconfig, so that nothing reaches it; orders are not placed on it',
  };
  return { ...document, status: { adapter: 'none', conditions: [condition] } };
};
