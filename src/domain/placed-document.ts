import type { PlacementDecision } from './hubs/capacity-events.ts';
import { FULFILLMENT_FINALIZER } from './hubs/hub-object.ts';
import {
  alreadyExists,
  documentDecider,
  documentView,
  isStored,
  type DocumentCommand,
  type DocumentFacts,
  type DocumentRules,
  type DocumentState,
} from './catalog/document.ts';
import type { DocumentKind } from './catalog/document-kind.ts';
import { documentTypes } from './catalog/document-types.ts';
import type {
  CreationAbandoned,
  DocumentCreated,
  DocumentEventNames,
  DocumentRevised,
} from './catalog/events.ts';
import { isRejection, reject, type Decision, type DomainEvent, type Rejection } from './decider.ts';
import type { EventType } from './event-type.ts';
import type { JsonObject } from './json.ts';
import { listAt, objectAt, sameJson, stringAt, withoutEmpty, withoutPaths } from './json-tools.ts';
import type { ResourceView } from './resource.ts';
import { jsonObject, text, typesOf, yes } from './schemas.ts';
import { z } from 'zod';

/**
 * A document that is carried out on a hub as one object there: the rules of a document (`documentDecider`),
 * and what has become of it. Once it has a place, it is gone only when its absence there was observed: until
 * then our finalizer stands (design §6). A status that a private caller writes is shown until the next report
 * of the workflow.
 */
export type Place = {
  readonly hub: string;
  readonly namespace: string;
  /** Name of the object on the hub. */
  readonly objectName: string;
  readonly simulated: boolean;
  /** Who reconciles the object there. */
  readonly controller: 'operator' | 'ledger';
  /** The namespace is the tenant's own and made when first needed. */
  readonly tenantNamespace?: true;
};

export type PlacedState = DocumentState & Progress;
type Progress = {
  readonly place?: Place;
  /** Why it does not go on, as far as that is no failure. */
  readonly waiting?: string;
  readonly failure?: { readonly reason: string; readonly message: string };
  /** The hub showed that it is as wanted. */
  readonly done?: true;
  readonly reported?: JsonObject;
};
/** A document that was created; `deleting` and `retired` ones too. */
export type Placed = Extract<DocumentState, DocumentFacts> & Progress;

export type PlacedCommand =
  | DocumentCommand
  | ({ readonly type: 'PlaceOnHub'; readonly at: string; readonly decision?: PlacementDecision } & Place)
  | { readonly type: 'ReportWaiting'; readonly at: string; readonly message: string }
  | {
      readonly type: 'RecordFailure';
      readonly at: string;
      readonly reason: string;
      readonly message: string;
    }
  /** Somebody wants another try of what failed. */
  | { readonly type: 'RetryOrder'; readonly at: string }
  /** Nothing of it is left on its hub. */
  | { readonly type: 'ConfirmAbsence'; readonly at: string };

type At = { readonly at: string };
/** Events of a kind whose words begin with `P`; `D` is what it says when it is as wanted. */
export type PlacedEvent<P extends string, Done extends DomainEvent> =
  | DocumentCreated<`${P}Ordered`>
  | DocumentRevised<`${P}Revised`>
  | DomainEvent<`${P}DeletionRequested` | `${P}RetryRequested` | `${P}Withdrawn` | `${P}Deleted`, At>
  | DomainEvent<`${P}StatusReported`, At & { readonly status: JsonObject }>
  | DomainEvent<`${P}Placed`, At & Place & { readonly decision?: PlacementDecision }>
  | DomainEvent<`${P}Waiting`, At & { readonly message: string }>
  | DomainEvent<`${P}Failed`, At & { readonly reason: string; readonly message: string }>
  | Done
  | CreationAbandoned;

export type PlacedRules = Pick<DocumentRules, 'words' | 'immutable' | 'normalize' | 'check'> & {
  /** What its events begin with: `ExternalIP`. */
  readonly prefix: string;
  /** The event that says that it is as wanted. */
  readonly done: string;
  /** Fields of `status` that private callers may write. */
  readonly reportable: readonly string[];
  readonly status: (state: Placed) => JsonObject;
  /** Why a written status is refused. */
  readonly checkReport?: (shown: JsonObject, status: JsonObject) => Rejection | undefined;
  readonly checkRemoval?: (state: Placed) => Rejection | undefined;
};

/** The hub showed before that it is as wanted, and nothing else was told since. */
export const isSettled = ({ done, failure, waiting, reported }: Progress): boolean =>
  done === true && failure === undefined && waiting === undefined && reported === undefined;

type AnyEvent = DomainEvent<string, JsonObject & At>;

export const placedDocument = (rules: PlacedRules) => {
  const { prefix, words } = rules;
  const documents = documentDecider({
    ...rules,
    events: eventsOf(prefix),
    normalize: (sent, context) => {
      const { status: _derived, metadata: _sent, ...document } = sent;
      const metadata = objectAt(sent, 'metadata');
      const finalizers = listAt(metadata, 'finalizers').filter((one) => one !== FULFILLMENT_FINALIZER);
      const kept = { ...withoutEmpty({ metadata: withoutEmpty({ ...metadata, finalizers }) }), ...document };
      return rules.normalize?.(kept, context) ?? kept;
    },
  });
  const made = (name: string, at: string, data: object = {}): AnyEvent => ({
    type: `${prefix}${name}`,
    data: { at, ...data } as JsonObject & At,
  });

  const reportable = (status: JsonObject): JsonObject =>
    withoutEmpty(Object.fromEntries(rules.reportable.map((field) => [field, status[field]])));
  /** What was written stands for all that may be written. */
  const shownStatus = (state: Placed): JsonObject => {
    const derived = withoutEmpty(rules.status(state));
    if (state.reported === undefined) return derived;
    return { ...withoutPaths(rules.reportable)(derived), ...state.reported };
  };

  const report = (
    state: Placed,
    { at, document, paths }: Extract<DocumentCommand, { type: 'ReviseDocument' }>,
  ): Decision<AnyEvent> => {
    if (paths !== undefined || document['status'] === undefined) return [];
    const status = reportable(objectAt(document, 'status'));
    const shown = reportable(shownStatus(state));
    if (sameJson(status, shown)) return [];
    return rules.checkReport?.(shown, status) ?? [made('StatusReported', at, { status })];
  };

  const revise = (
    state: PlacedState,
    command: Extract<DocumentCommand, { type: 'ReviseDocument' }>,
  ): Decision<DomainEvent> => {
    const revised = documents.decide(state, command);
    if (isRejection(revised) || !isStored(state)) return revised;
    const reported = report(state, command);
    if (isRejection(reported)) return reported;
    // Its last finalizer but ours was removed.
    const kept =
      state.place === undefined ? revised : revised.filter((event) => event.type !== `${prefix}Deleted`);
    return [...reported, ...kept];
  };

  const remove = (state: PlacedState, at: string): Decision<DomainEvent> => {
    const removed = documents.decide(state, { type: 'DeleteDocument', at });
    if (isRejection(removed) || removed.length === 0 || !isStored(state)) return removed;
    return (
      rules.checkRemoval?.(state) ?? (state.place === undefined ? removed : [made('DeletionRequested', at)])
    );
  };

  const confirm = (state: Placed, at: string): Decision<AnyEvent> => {
    if (state.place === undefined) return [];
    if (state.status !== 'deleting')
      return reject('failed-precondition', 'NOT_DELETING', `nobody asked to delete this ${words}`);
    const others = listAt(objectAt(state.document, 'metadata'), 'finalizers');
    return [made(others.length === 0 ? 'Deleted' : 'Withdrawn', at)];
  };

  /** What the workflow reports. Nothing is told of what is gone, and nothing twice. */
  const progress = (
    state: PlacedState,
    command: Exclude<PlacedCommand, DocumentCommand>,
  ): Decision<AnyEvent> => {
    if (!isStored(state) || state.status === 'retired') return [];
    const { type: _type, at, ...data } = command;
    switch (command.type) {
      case 'PlaceOnHub': {
        const { decision: _why, ...place } = data as Place & { decision?: PlacementDecision };
        if (state.place !== undefined)
          return sameJson(state.place, place)
            ? []
            : reject('failed-precondition', 'ALREADY_PLACED', `the ${words} has a place already`);
        if (state.status === 'deleting')
          return reject('failed-precondition', 'DELETION_REQUESTED', `the ${words} is being deleted`);
        return [made('Placed', at, data)];
      }
      case 'ReportWaiting':
        return state.waiting === command.message ? [] : [made('Waiting', at, data)];
      case 'RecordFailure':
        return sameJson(state.failure, data) && state.reported === undefined
          ? []
          : [made('Failed', at, data)];
      case 'RetryOrder':
        return state.failure === undefined
          ? reject('failed-precondition', 'NOT_FAILED', `the ${words} did not fail`)
          : [made('RetryRequested', at)];
      case 'ConfirmAbsence':
        return confirm(state, at);
    }
  };

  const evolve = (state: PlacedState, event: DomainEvent): PlacedState => {
    if (!isStored(state)) return documents.evolve(state, event as never);
    const { type, data } = event as AnyEvent;
    const { waiting: _waiting, reported: _reported, ...told } = state;
    const { failure: _failure, ...well } = told;
    switch (type.startsWith(prefix) ? type.slice(prefix.length) : '') {
      case 'Placed': {
        const { at: _at, decision: _why, ...place } = data;
        return { ...well, place: place as Place };
      }
      case 'Waiting':
        return { ...well, waiting: stringAt(data, 'message') };
      case 'Failed':
        return {
          ...told,
          failure: { reason: stringAt(data, 'reason'), message: stringAt(data, 'message') },
        };
      case 'RetryRequested':
        return well;
      case 'StatusReported':
        return { ...state, reported: objectAt(data, 'status') };
      case 'DeletionRequested':
        return documents.evolve(well, event as never);
      case 'Withdrawn': {
        const { place: _place, ...withdrawn } = told;
        return withdrawn;
      }
      case rules.done:
        return { ...well, done: true };
      default:
        return documents.evolve(state, event as never);
    }
  };

  /** Its objects on a hub bore names made of this id. Other tenants are not told. */
  const idUsed = (
    { tenant }: Placed,
    { id, tenant: asking }: Extract<DocumentCommand, { type: 'CreateDocument' }>,
  ): Rejection =>
    tenant !== asking
      ? alreadyExists(words, id)
      : reject(
          'already-exists',
          'ALREADY_EXISTS',
          `identifier '${id}' was used by an ${words} that is gone: choose another 'id' or leave it out`,
          { field: 'id' },
        );

  return {
    initialState: documents.initialState,
    decide: (state: PlacedState, command: PlacedCommand): Decision<DomainEvent> => {
      switch (command.type) {
        case 'CreateDocument':
          return isStored(state) && state.status === 'retired'
            ? idUsed(state, command)
            : documents.decide(state, command);
        case 'ReviseDocument':
          return revise(state, command);
        case 'DeleteDocument':
          return remove(state, command.at);
        case 'AbandonCreation':
          return documents.decide(state, command);
        default:
          return progress(state, command);
      }
    },
    /** Of what every such kind has; a kind folds what is its own beside it. */
    evolve: <State extends PlacedState>(state: State, event: DomainEvent): State =>
      evolve(state, event) as State,
    view: (state: PlacedState): ResourceView => {
      if (!isStored(state)) return { exists: false };
      const status = shownStatus(state);
      const metadata = objectAt(state.document, 'metadata');
      const finalizers = [...listAt(metadata, 'finalizers'), FULFILLMENT_FINALIZER];
      const held = state.place !== undefined && state.status !== 'retired';
      const document = held ? { ...state.document, metadata: { ...metadata, finalizers } } : state.document;
      const view = documentView({ ...state, document }, [], (shown) => ({ ...shown, status }));
      return view.exists ? { ...view, state: stringAt(status, 'state') } : view;
    },
  };
};

const eventsOf = (prefix: string): DocumentEventNames => ({
  created: `${prefix}Ordered`,
  revised: `${prefix}Revised`,
  deletionRequested: `${prefix}DeletionRequested`,
  retired: `${prefix}Deleted`,
});

/** Registry entries of such a kind. `hidden`: paths of the document that only the provider may see. */
export const placedTypes = (
  described: Pick<DocumentKind, 'kind' | 'context' | 'methods' | 'hidden'>,
  prefix: string,
): readonly EventType[] => [
  ...documentTypes({ ...described, events: eventsOf(prefix) }),
  ...typesOf(
    { context: described.context, audience: 'tenant', resource: described.kind },
    {
      [`${prefix}Placed`]: {
        hub: text,
        namespace: text,
        objectName: text,
        simulated: z.boolean(),
        controller: z.enum(['operator', 'ledger']),
        tenantNamespace: yes,
        decision: jsonObject.exactOptional(),
      },
      [`${prefix}Waiting`]: { message: text },
      [`${prefix}Failed`]: { reason: text, message: text },
      [`${prefix}StatusReported`]: { status: jsonObject },
      [`${prefix}RetryRequested`]: {},
      [`${prefix}Withdrawn`]: {},
    },
    {
      [`${prefix}Placed`]: {
        providerOnly: ['hub', 'namespace', 'objectName', 'controller', 'tenantNamespace', 'decision'],
      },
      [`${prefix}StatusReported`]: {
        providerOnly: described.hidden.filter((path) => path.startsWith('status.')),
      },
    },
  ),
];
