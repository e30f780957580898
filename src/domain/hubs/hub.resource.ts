import {
  documentDecider,
  documentView,
  type DocumentCommand,
  type DocumentFacts,
  type DocumentState,
} from '../catalog/document.ts';
import type { HubEvent } from '../catalog/events.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { nameFromId } from '../catalog/derived-names.ts';
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
const SECRETS = [
  { path: 'spec.kubeconfig', kind: 'kubeconfig', reads: 'absent', encoding: 'base64' },
  { path: 'spec.automation.token', kind: 'automation-token', reads: 'absent', encoding: 'text' },
  { path: 'spec.automation.hmac_secret', kind: 'automation-key', reads: 'absent', encoding: 'text' },
] as const;

export const hubDecider = documentDecider({
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

export const hub: ResourceKind<DocumentState, DocumentCommand, HubEvent> = {
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
  stateVersion: 1,
  view: (state) => documentView(state, SECRETS, renderHub),
};

/** Condition `NoAdapter`: the hub is accepted, but nothing in this release can reach it. */
const renderHub = (document: JsonObject, facts: DocumentFacts): JsonObject => {
  const simulated = isSimulatedHub(facts.id);
  const condition = {
    type: 'NoAdapter',
    status: 'CONDITION_STATUS_TRUE',
    last_transition_time: facts.createdAt,
    reason: 'NoAdapter',
    message: 'no adapter of this release reaches this hub; orders are not placed on it',
  };
  const status = simulated ? { adapter: 'simulated' } : { adapter: 'none', conditions: [condition] };
  return { ...document, status };
};
