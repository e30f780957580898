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
import type { JsonObject, JsonValue } from './json.ts';
import {
  defined,
  listAt,
  objectAt,
  sameJson,
  stringAt,
  valueAt,
  withoutEmpty,
  withoutPaths,
  isObject,
} from './json-tools.ts';
import type { ResourceKind, ResourceView } from './resource.ts';
import { jsonObject, mayBe, text, typesOf, type EventData, type Shapes } from './schemas.ts';
import { z } from 'zod';

/**
 * A document that is carried out on a hub as one object there: the rules of a document (`documentDecider`),
 * and what has become of it. Once it has a place, it is gone only when its absence there was observed: until
 * then our finalizer stands. A status that a private caller writes, also with the order, is shown until something is
 * seen of it on its hub: a place or a wait is nothing seen there.
 */
const PLACE = {
  hub: text,
  namespace: text,
  /** Name of the object on the hub. */
  objectName: text,
  simulated: z.boolean(),
  /** Who reconciles the object there. */
  controller: z.enum(['operator', 'ledger']),
};
const placeSchema = z.object(PLACE);
export type Place = Readonly<z.infer<typeof placeSchema>>;
/** Of what says where an object is to be: the scheduler's answer, or another document's place. */
export const placeIn = (found: JsonObject, objectName: string): Place =>
  placeSchema.parse({ ...found, objectName });

/** What such a document records beside what every document does, by what follows the kind's words. */
const SHAPES = {
  Placed: { ...PLACE, decision: jsonObject.exactOptional() },
  /** `detail`: what its hub or an adapter said in full, which is the provider's to know. */
  Waiting: { message: text, detail: mayBe },
  Failed: { reason: text, message: text, detail: mayBe },
  /** What the service was to make for it cannot be made; empty: by now it is there. */
  Lacking: { message: text },
  RetryRequested: {},
  StatusReported: { status: jsonObject },
  /** Nothing of it is left on its hub: other finalizers hold it, or it was aborted. */
  Withdrawn: {},
} as const satisfies Shapes;
type Word = keyof typeof SHAPES;
type Recorded<Name extends Word> = EventData<(typeof SHAPES)[Name]>;

export type PlacedState = DocumentState & Progress;
type Progress = {
  readonly place?: Place;
  /** Where it was last, and nothing of it is left: what comes to light there after that is removed, too. */
  readonly left?: Place;
  /** Why it does not go on, as far as that is no failure. */
  readonly waiting?: Recorded<'Waiting'>;
  readonly failure?: Recorded<'Failed'>;
  /** It goes on without. */
  readonly lacking?: Recorded<'Lacking'>;
  /** The hub showed that it is as wanted. */
  readonly done?: true;
  /** It was aborted, and nothing of it is left. */
  readonly withdrawn?: true;
  readonly reported?: JsonObject;
};
/** A document that was created; `deleting` and `retired` ones too. */
export type Placed = Extract<DocumentState, DocumentFacts> & Progress;

export type PlacedCommand =
  | DocumentCommand
  | ({ readonly type: 'PlaceOnHub' } & Recorded<'Placed'>)
  /** The hub shows it as wanted; a kind that has more to say then has a command of its own. */
  | ({ readonly type: 'RecordReady' } & At)
  | ({ readonly type: 'ReportWaiting' } & Recorded<'Waiting'>)
  | ({ readonly type: 'RecordFailure' } & Recorded<'Failed'>)
  | ({ readonly type: 'ReportLacking' } & Recorded<'Lacking'>)
  /** Whatever was begun of it is to be undone, until somebody retries or deletes it. */
  | ({ readonly type: 'AbortOrder'; readonly reason: string } & At)
  /** Somebody wants another try of what failed or was aborted. */
  | ({ readonly type: 'RetryOrder' } & At)
  /** Nothing of it is left on its hub. */
  | ({ readonly type: 'ConfirmAbsence' } & At);

type At = { readonly at: string };
type Creation = Extract<DocumentCommand, { type: 'CreateDocument' }>;
type Revision = Extract<DocumentCommand, { type: 'ReviseDocument' }>;
/** Events of a kind whose words begin with `P`; `D` is what it says when it is as wanted. */
export type PlacedEvent<P extends string, Done extends DomainEvent> =
  | DocumentCreated<`${P}Ordered`>
  | DocumentRevised<`${P}Revised`>
  | DomainEvent<`${P}DeletionRequested` | `${P}Deleted`, At>
  | { [Name in Word]: DomainEvent<`${P}${Name}`, Recorded<Name>> }[Word]
  | Done
  | CreationAbandoned;

export type PlacedRules = Pick<DocumentRules, 'words' | 'immutable' | 'normalize' | 'check'> & {
  /** Fields of `status` that are resolved when it is made, and stay. */
  readonly resolved?: readonly string[];
  /** What its events begin with: `ExternalIP`. */
  readonly prefix: string;
  /** The event that says that it is as wanted. */
  readonly done: string;
  /** Write-only fields, and how reads show them. */
  readonly secrets?: readonly Pick<ResourceKind['secrets'][number], 'path' | 'reads'>[];
  /** Fields of `status` that private callers may write. */
  readonly reportable: readonly string[];
  /** Paths whose change its hub is to carry out: until it shows that, the document is not as wanted. */
  readonly carriedOut?: readonly string[];
  readonly status: (state: Placed) => JsonObject;
  /** Annotations that the service itself shows: nobody takes them away, and they are stored nowhere. */
  readonly annotations?: (document: JsonObject) => JsonObject;
  /** Why a written status is refused. */
  readonly checkReport?: (shown: JsonObject, status: JsonObject) => Rejection | undefined;
  /** Why it can be neither deleted nor aborted: something uses it. */
  readonly inUse?: (state: Placed) => Rejection | undefined;
  /** Why it cannot be deleted as it is. One that was aborted always can. */
  readonly checkRemoval?: (state: Placed) => Rejection | undefined;
  /** Something goes before it does, even where it has no place yet. */
  readonly isBound?: (state: Placed) => boolean;
};

const ABORTED = 'Aborted';
export const isAborted = ({ failure }: Progress): boolean => failure?.reason === ABORTED;

/** It is worked on, so that it may become as wanted. */
export const isUnderWay = (state: PlacedState): state is Placed =>
  isStored(state) && state.status === 'present' && !isAborted(state);

/** Finalizers of others that hold its deletion, once nothing else does. */
export const holdersOf = (state: PlacedState): readonly string[] =>
  isStored(state) && state.status === 'deleting' && state.place === undefined && state.waiting === undefined
    ? listAt(objectAt(state.document, 'metadata'), 'finalizers').filter((one) => typeof one === 'string')
    : [];
export const HELD = 'it is held by finalizers of others';

/** What it says of itself: of a failure and a wait that followed it, the wait is what holds. */
export const messageOf = (state: PlacedState): string =>
  holdersOf(state).length > 0 ? HELD : ((state.waiting ?? state.failure)?.message ?? '');

/** What changes only in the words of its hub is told so often at most. */
const NEWS_MS = 10 * 60_000;
const isNews = (known: At | undefined, told: At): boolean => {
  const isEarly = known !== undefined && Date.parse(told.at) - Date.parse(known.at) < NEWS_MS;
  const compared = withoutPaths(isEarly ? ['at', 'detail'] : ['at']);
  return !sameJson(known && compared({ ...known }), compared({ ...told }));
};

/** Of a deletion or an abort that takes too long, as the message begins. */
export const OVERDUE = 'the hub takes unusually long to clean up';

/** What all resources of this sort have in common. */
export const PLACED = {
  ids: 'client-may-choose',
  // Its workflow run has ended for good, and so has its object on a hub, which bore a name made of its id.
  idOnce: true,
  nameScope: 'project',
  defaultTenant: 'shared',
  secrets: [],
  protectedWhileReferenced: true,
  marks: (document: JsonObject): readonly string[] =>
    stringAt(objectAt(document, 'status'), 'message').startsWith(OVERDUE) ? ['deletion-overdue'] : [],
  stateVersion: 1,
} as const;

/** The hub showed before that it is as wanted, and nothing else was told since. */
export const isSettled = ({ done, failure, waiting, reported }: Progress): boolean =>
  done === true && failure === undefined && waiting === undefined && reported === undefined;

type AnyEvent = DomainEvent<string, JsonObject & At>;

export const placedDocument = (rules: PlacedRules) => {
  const { prefix, words, resolved = [] } = rules;
  /** A deletion has something to undo. */
  const isHeld = (state: Placed): boolean => state.place !== undefined || rules.isBound?.(state) === true;
  const withoutOwn = (document: JsonObject): JsonObject => {
    if (rules.annotations === undefined) return document;
    const { metadata: _sent, ...others } = document;
    const metadata = objectAt(document, 'metadata');
    const own = Object.keys(rules.annotations(document));
    const left = Object.entries(objectAt(metadata, 'annotations')).filter(([key]) => !own.includes(key));
    const kept = withoutEmpty({ ...metadata, annotations: Object.fromEntries(left) });
    return { ...withoutEmpty({ metadata: kept }), ...others };
  };
  const documents = documentDecider({
    ...rules,
    events: eventsOf(prefix),
    normalize: (sent, context) => {
      const { status: _derived, metadata: _sent, ...document } = sent;
      const from = objectAt(context.previous ?? sent, 'status');
      const status = withoutEmpty(Object.fromEntries(resolved.map((field) => [field, from[field]])));
      const metadata = objectAt(sent, 'metadata');
      const finalizers = listAt(metadata, 'finalizers').filter((one) => one !== FULFILLMENT_FINALIZER);
      const kept = {
        ...withoutEmpty({ metadata: withoutEmpty({ ...metadata, finalizers }), status }),
        ...document,
      };
      return withoutOwn(rules.normalize?.(kept, context) ?? kept);
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

  const report = (state: Placed, { at, document, paths }: Revision): Decision<AnyEvent> => {
    if (paths !== undefined || document['status'] === undefined) return [];
    const status = reportable(objectAt(document, 'status'));
    const shown = reportable(shownStatus(state));
    if (sameJson(withPlainTimes(status), withPlainTimes(shown))) return [];
    return rules.checkReport?.(shown, status) ?? [made('StatusReported', at, { status })];
  };

  /** Laid over what a new one shows; what it says nothing of stays so. */
  const create = (state: PlacedState, command: Creation): Decision<DomainEvent> => {
    const created = documents.decide(state, command);
    const { at, document } = command;
    if (isRejection(created) || document['status'] === undefined) return created;
    const ordered = created.reduce<PlacedState>(evolve, state);
    if (!isStored(ordered)) return created;
    const status = { ...shownStatus(ordered), ...objectAt(document, 'status') };
    const reported = report(ordered, { type: 'ReviseDocument', at, document: { ...document, status } });
    return isRejection(reported) ? reported : [...created, ...reported];
  };

  const revise = (state: PlacedState, command: Revision): Decision<DomainEvent> => {
    const revised = documents.decide(state, command);
    if (isRejection(revised) || !isStored(state)) return revised;
    const reported = report(state, command);
    if (isRejection(reported)) return reported;
    // Its last finalizer but ours was removed.
    const kept = isHeld(state) ? revised.filter((event) => event.type !== `${prefix}Deleted`) : revised;
    return [...reported, ...kept];
  };

  const remove = (state: PlacedState, at: string): Decision<DomainEvent> => {
    const removed = documents.decide(state, { type: 'DeleteDocument', at });
    if (isRejection(removed) || removed.length === 0 || !isStored(state)) return removed;
    const why = rules.inUse?.(state) ?? (isAborted(state) ? undefined : rules.checkRemoval?.(state));
    return why ?? (isHeld(state) ? [made('DeletionRequested', at)] : removed);
  };

  const refuse = (code: string, message: string): Rejection => reject('failed-precondition', code, message);

  const abort = (state: Placed, at: string, reason: string): Decision<AnyEvent> => {
    if (state.status === 'deleting') return refuse('DELETION_REQUESTED', `the ${words} is being deleted`);
    if (isAborted(state)) return [];
    if (isSettled(state))
      return refuse('NOTHING_TO_ABORT', `the ${words} is as it should be: delete it instead`);
    return rules.inUse?.(state) ?? [made('Failed', at, { reason: ABORTED, message: `aborted: ${reason}` })];
  };

  const retry = (state: Placed, at: string): Decision<AnyEvent> => {
    // It is tried on by itself.
    if (state.status === 'deleting') return refuse('DELETION_REQUESTED', `the ${words} is being deleted`);
    if (state.failure === undefined) return refuse('NOT_FAILED', `the ${words} did not fail`);
    return isAborted(state) && state.withdrawn !== true
      ? refuse('ABORTING', `the ${words} is still being undone`)
      : [made('RetryRequested', at)];
  };

  const confirm = (state: Placed, at: string): Decision<AnyEvent> => {
    if (state.status !== 'deleting' && isAborted(state))
      return state.withdrawn === true ? [] : [made('Withdrawn', at)];
    if (!isHeld(state)) return [];
    if (state.status !== 'deleting')
      return refuse('NOT_DELETING', `no deletion was requested of this ${words}`);
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
      case 'PlaceOnHub':
        if (state.place !== undefined)
          return sameJson(state.place, placeIn(data, command.objectName))
            ? []
            : refuse('ALREADY_PLACED', `the ${words} has a place already`);
        return isUnderWay(state)
          ? [made('Placed', at, data)]
          : refuse('DELETION_REQUESTED', `the ${words} is being deleted`);
      case 'RecordReady':
        return !isUnderWay(state) || isSettled(state) ? [] : [made(rules.done, at)];
      case 'ReportWaiting':
        return isNews(state.waiting, { at, ...data }) ? [made('Waiting', at, data)] : [];
      case 'RecordFailure': {
        const { reason: _reason, ...why } = data as Recorded<'Failed'>;
        if (isAborted(state)) return progress(state, { type: 'ReportWaiting', ...why, at });
        return isNews(state.failure, { at, ...data }) || state.reported !== undefined
          ? [made('Failed', at, data)]
          : [];
      }
      case 'ReportLacking':
        return (state.lacking?.message ?? '') === command.message ? [] : [made('Lacking', at, data)];
      case 'AbortOrder':
        return abort(state, at, command.reason);
      case 'RetryOrder':
        return retry(state, at);
      case 'ConfirmAbsence':
        return confirm(state, at);
    }
  };

  const revised = (before: Placed, after: PlacedState): PlacedState => {
    const isCarriedOut = (path: string): boolean =>
      isStored(after) && !sameJson(valueAt(before.document, path), valueAt(after.document, path));
    if (rules.carriedOut?.some(isCarriedOut) !== true) return after;
    const { done: _done, ...begun } = after;
    return begun as PlacedState;
  };

  const evolve = (state: PlacedState, event: DomainEvent): PlacedState => {
    if (!isStored(state)) return documents.evolve(state, event as never);
    const { type, data } = event as AnyEvent;
    const { waiting: _waiting, reported, ...told } = state;
    const { failure: _failure, ...well } = told;
    switch (type.startsWith(prefix) ? type.slice(prefix.length) : '') {
      case 'Placed': {
        const { at: _at, decision: _why, ...place } = data as Recorded<'Placed'>;
        const shown = reported === undefined ? {} : { reported: { ...reported, hub: place.hub } };
        return { ...well, ...shown, place };
      }
      case 'Waiting': {
        const kept = { ...(isAborted(state) ? told : well), ...defined({ reported }) };
        return { ...kept, waiting: data as Recorded<'Waiting'> };
      }
      case 'Failed':
        return { ...told, failure: data as Recorded<'Failed'> };
      case 'Lacking': {
        const { lacking: _before, ...has } = state;
        const lacking = data as Recorded<'Lacking'>;
        return lacking.message === '' ? has : { ...has, lacking };
      }
      case 'RetryRequested': {
        const { done: _done, withdrawn: _withdrawn, ...begun } = well;
        return begun;
      }
      case 'StatusReported':
        return { ...state, reported: objectAt(data, 'status') };
      case 'Revised':
        return revised(state, documents.evolve(state, event as never));
      case 'DeletionRequested':
        return documents.evolve(well, event as never);
      case 'Withdrawn': {
        const { place, done: _done, ...kept } = isAborted(told) ? told : well;
        return { ...kept, ...defined({ left: place }), ...(isAborted(kept) ? { withdrawn: true } : {}) };
      }
      case rules.done:
        return { ...well, done: true };
      default:
        return documents.evolve(state, event as never);
    }
  };

  /** Its objects on a hub bore names made of this id. Other tenants are not told. */
  const idUsed = ({ tenant }: Placed, { id, tenant: asking }: Creation): Rejection => {
    if (tenant !== asking) return alreadyExists(words, id);
    const message = `identifier '${id}' was used by a former ${words}: choose another 'id' or leave it out`;
    return reject('already-exists', 'ALREADY_EXISTS', message, { field: 'id' });
  };

  return {
    initialState: documents.initialState,
    decide: (state: PlacedState, command: PlacedCommand): Decision<DomainEvent> => {
      switch (command.type) {
        case 'CreateDocument':
          return isStored(state) && state.status === 'retired'
            ? idUsed(state, command)
            : create(state, command);
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
      const stored = objectAt(state.document, 'metadata');
      const own = rules.annotations?.(state.document);
      const metadata =
        own === undefined
          ? stored
          : { ...stored, annotations: { ...objectAt(stored, 'annotations'), ...own } };
      const finalizers = [...listAt(metadata, 'finalizers'), FULFILLMENT_FINALIZER];
      const held = isHeld(state) && state.status !== 'retired';
      const document = { ...state.document, metadata: held ? { ...metadata, finalizers } : metadata };
      const view = documentView({ ...state, document }, rules.secrets, (shown) => ({ ...shown, status }));
      return view.exists ? { ...view, state: stringAt(status, 'state') } : view;
    },
  };
};

/** Callers send back the times that they read, which JSON of messages writes without zeros at the end. */
const ZEROS = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.0+|(\.\d*[1-9])0+)Z$/;
const withPlainTimes = (value: JsonValue): JsonValue => {
  if (typeof value === 'string')
    return value.replace(ZEROS, (_, time: string, rest = '') => `${time}${rest}Z`);
  if (Array.isArray(value)) return value.map(withPlainTimes);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, withPlainTimes(inner)]))
    : value;
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
    {
      context: described.context,
      audience: described.methods.public.length === 0 ? 'provider' : 'tenant',
      resource: described.kind,
    },
    Object.fromEntries(Object.entries(SHAPES).map(([word, shape]) => [prefix + word, shape])),
    {
      [`${prefix}Placed`]: {
        providerOnly: ['hub', 'namespace', 'objectName', 'controller', 'decision'],
      },
      [`${prefix}Waiting`]: { providerOnly: ['detail'] },
      [`${prefix}Failed`]: { providerOnly: ['detail'] },
      [`${prefix}StatusReported`]: {
        providerOnly: described.hidden.filter((path) => path.startsWith('status.')),
      },
    },
  ),
];
