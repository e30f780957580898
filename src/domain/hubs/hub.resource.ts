import { isRejection, type Decider, type Decision, type Rejection } from '../decider.ts';
import {
  isStored,
  type DocumentCommand,
  type DocumentFacts,
  type DocumentState,
} from '../catalog/document.ts';
import { documentKind } from '../catalog/document-kind.ts';
import type { DocumentEventOf } from '../catalog/events.ts';
import type { JsonObject } from '../json.ts';
import { listAt, mergePaths, objectAt, stringAt, withoutEmpty } from '../json-tools.ts';
import { nameFromId } from '../catalog/derived-names.ts';
import {
  conditionsOf,
  decideHealth,
  evolveHealth,
  isHealthEvent,
  shownHosts,
  withoutAutomation,
  type HubHealth,
  type ReportHubCheck,
} from './health.ts';
import {
  callsAutomation,
  formerSecretPath,
  HMAC_SECRET_PATH,
  ownModeRejection,
  TOKEN_PATH,
  withFormerMode,
} from './former-modes.ts';
import { isSimulatedHub } from './hub-facts.ts';
import { acceptedCluster } from './identity.ts';
import { hubSpecRejection } from './hub-spec.ts';
import { originRejection } from './automation-origins.ts';
import type { HubHealthEvent } from './health-events.ts';
import type { SecretRef } from '../secret-ref.ts';

/** Management clusters (OSAC) with additive fields. */
export const KUBECONFIG_PATH = 'spec.kubeconfig';
const secret = (path: string, kind: 'automation-token' | 'automation-key') =>
  ({ path, kind, reads: 'absent', encoding: 'text' }) as const;

const EVENTS = {
  created: 'HubRegistered',
  revised: 'HubRevised',
  deletionRequested: 'HubDeregistrationRequested',
  retired: 'HubDeregistered',
} as const;
type HubDocumentEvent = DocumentEventOf<typeof EVENTS>;
type Documents = Decider<DocumentState, DocumentCommand, HubDocumentEvent>;

/** A hub's document and what looking at it showed. */
export type HubState = DocumentState & { readonly health?: HubHealth };
export type HubEvent = HubDocumentEvent | HubHealthEvent;
export type HubCommand = DocumentCommand | ReportHubCheck | FinishDeregistration;

/** Nothing of ours is left on a hub that was given up with orders on it. */
export type FinishDeregistration = { readonly type: 'FinishDeregistration'; readonly at: string };

/**
 * Annotation of a hub that is to be given up although orders are on it. Its deletion then begins at once and ends when
 * the last of them has left: until then hub and orders are there to be seen, and worked on.
 */
export const DECOMMISSION_ANNOTATION = 'fulfillment-ledger/decommission';
const FORCE = 'force';

/** True when a document says so. */
export const isGivenUp = (document: JsonObject): boolean =>
  stringAt(objectAt(objectAt(document, 'metadata'), 'annotations'), DECOMMISSION_ANNOTATION) === FORCE;

/** Which cluster has to answer as this hub; undefined: any may, the first one will be it. */
export const expectedCluster = (state: HubState): string | undefined =>
  (isStored(state) ? acceptedCluster(state.document) : undefined) ?? state.health?.cluster;

/** What looking at a hub showed, beside its document. */
const withHealth = (documents: Documents): Decider<HubState, HubCommand, HubEvent> => ({
  initialState: documents.initialState,
  evolve: (state, event) => {
    const next = evolved(documents, state, event);
    // A listener that failed would keep orders away from a hub that was switched because of it.
    return next.health === undefined || !isStored(next) || callsAutomation(next.document)
      ? next
      : { ...next, health: withoutAutomation(next.health, event.data.at) };
  },
  decide: (state, command) => {
    if (command.type === 'ReportHubCheck') return reportCheck(state, command);
    if (command.type === 'FinishDeregistration') return finish(state, command.at);
    const asked = command.type === 'ReviseDocument' ? withFormerMode(state, command) : command;
    const strays = asked.type === 'ReviseDocument' ? strayRejection(state, asked) : undefined;
    return strays ?? stillThere(state, documents.decide(state, asked));
  },
});

const evolved = (documents: Documents, state: HubState, event: HubEvent): HubState => {
  if (isHealthEvent(event))
    return isStored(state) ? { ...state, health: evolveHealth(state.health ?? {}, event) } : state;
  const next = documents.evolve(state, event);
  // What was seen is of that hub: another one under its id begins with nothing.
  return state.health === undefined || event.type === 'HubRegistered'
    ? next
    : { ...next, health: state.health };
};

const strayRejection = (
  state: HubState,
  { document, paths, secrets = {} }: Extract<DocumentCommand, { type: 'ReviseDocument' }>,
): Rejection | undefined => {
  if (!isStored(state) || state.status === 'retired') return undefined;
  const after = Object.entries({ ...state.secrets, ...secrets });
  return originRejection(state, {
    document: paths === undefined ? document : mergePaths(state.document, document, paths),
    secrets: Object.fromEntries(after.filter((entry): entry is [string, SecretRef] => entry[1] !== null)),
  });
};

const finalizersOf = (document: JsonObject): readonly unknown[] =>
  listAt(objectAt(document, 'metadata'), 'finalizers');

const finish = (state: HubState, at: string): Decision<HubEvent> =>
  isStored(state) && state.status === 'deleting' && finalizersOf(state.document).length === 0
    ? [{ type: 'HubDeregistered', data: { at } }]
    : [];

/** A hub that is given up ends only when nothing is left on it, not with the request or a change on the way. */
const stillThere = (state: HubState, decision: Decision<HubEvent>): Decision<HubEvent> => {
  if (isRejection(decision) || !isStored(state) || !isGivenUp(state.document)) return decision;
  return decision.flatMap((event): HubEvent[] => {
    if (event.type !== 'HubDeregistered') return [event];
    return state.status === 'deleting'
      ? []
      : [{ type: 'HubDeregistrationRequested', data: { at: event.data.at } }];
  });
};

const reportCheck = (state: HubState, command: ReportHubCheck): Decision<HubEvent> => {
  if (!isStored(state) || state.status === 'retired') return [];
  if (command.kubeconfig !== state.secrets[KUBECONFIG_PATH]?.version) return [];
  const { automation, ...findings } = command.findings;
  // A look that began before the mode was left tells of a listener that counts no longer.
  const counted =
    automation === undefined || callsAutomation(state.document) ? command : { ...command, findings };
  return decideHealth(state.health ?? {}, counted, acceptedCluster(state.document));
};

export const hub = documentKind({
  kind: 'hub',
  context: 'hubs',
  events: EVENTS,
  inCatalogue: true,
  untold: true,
  methods: { public: [], private: ['List', 'Get', 'Create', 'Update', 'Delete'] },
  deriveName: (document) => nameFromId(stringAt(document, 'id')),
  secrets: [
    { path: KUBECONFIG_PATH, kind: 'kubeconfig', reads: 'absent', encoding: 'base64' },
    secret(TOKEN_PATH, 'automation-token'),
    secret(HMAC_SECRET_PATH, 'automation-key'),
    secret(formerSecretPath('eda', 'token'), 'automation-token'),
    secret(formerSecretPath('eda', 'hmac_secret'), 'automation-key'),
    secret(formerSecretPath('aap', 'token'), 'automation-token'),
  ],
  // What a caller sends as status is not kept: the view derives it.
  normalize: ({ status: _sent, ...document }) => document,
  check: (document, { id, secrets }) =>
    hubSpecRejection(objectAt(document, 'spec'), { simulated: isSimulatedHub(id) }) ??
    ownModeRejection(document, secrets),
  behaviour: (documents) => withHealth(documents),
  stateVersion: 3,
  render: (document, facts) => renderHub(document, facts),
});

type ShownHub = DocumentFacts & { readonly health?: HubHealth; readonly deletedAt?: string };

/** What is known of the hub, and whether it is being given up. Condition `NoAdapter`: without a kubeconfig nothing reaches it. */
const renderHub = (document: JsonObject, facts: ShownHub): JsonObject => {
  const { health = {}, deletedAt } = facts;
  const simulated = isSimulatedHub(facts.id);
  const reached = simulated || facts.secrets[KUBECONFIG_PATH] !== undefined;
  // A simulated hub is there as long as this service is: it has conditions only once somebody looked at it.
  const known = simulated && health.ready === undefined ? [] : conditionsOf(health, facts.createdAt);
  const conditions = [
    ...(reached ? known : [noAdapter(facts.createdAt)]),
    ...(deletedAt !== undefined && isGivenUp(document) ? [leaving(facts.id, deletedAt)] : []),
  ];
  return {
    ...document,
    status: withoutEmpty({
      adapter: simulated ? 'simulated' : reached ? 'kubernetes' : 'none',
      conditions,
      version: health.version,
      hosts: health.hosts === undefined ? {} : shownHosts(health.hosts.counts),
    }),
  };
};

const holds = (type: string, since: string, reason: string, message: string): JsonObject => ({
  type,
  status: 'CONDITION_STATUS_TRUE',
  last_transition_time: since,
  reason,
  message,
});

const noAdapter = (since: string): JsonObject =>
  holds(
    'NoAdapter',
    since,
    'NoKubeconfig',
    'the hub has no kubeconfig, so that nothing reaches it; orders are not placed on it',
  );

const leaving = (id: string, since: string): JsonObject =>
  holds(
    'Leaving',
    since,
    'OrdersLeft',
    `the hub is given up and goes when the last order has left it: \`ledgerctl hubs orders ${id}\` lists them`,
  );
