import type { Decider, DomainEvent } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { stringAt, valueAt, withoutPaths } from '../json-tools.ts';
import { placesOf, valueAtPlace } from '../document-places.ts';
import { regularNames, type Method, type ResourceKind, type ResourceView } from '../resource.ts';
import {
  documentDecider,
  documentView,
  type DocumentCommand,
  type DocumentFacts,
  type DocumentRules,
  type DocumentState,
} from './document.ts';
import type { DocumentEventNames, DocumentEventOf } from './events.ts';

type AnyCommand = { readonly type: string };

/** A kind whose objects are documents: made, changed and deleted as they are sent, with no work to carry out. */
export type DocumentKind<
  State = DocumentState,
  Command extends AnyCommand = DocumentCommand,
  Event extends DomainEvent = never,
> = ResourceKind<State, Command, Event> & {
  readonly events: DocumentEventNames;
  /** Bounded context of its events, also part of the Kafka topic: `catalog`, `tenancy`. */
  readonly context: string;
  /** Paths that events hold and no tenant sees in them. */
  readonly hidden: readonly string[];
  /** The folder of `LEDGER_CATALOG` may hold a file of it. */
  readonly inCatalogue?: true;
  /** Kind of an object that it names by a plain id, beside its references. */
  readonly namesById?: string;
};

/** What `documentKind` makes, from other things that are said. */
type Made =
  | 'kind'
  | 'events'
  | 'event'
  | 'publicList'
  | 'listed'
  | 'pointsAt'
  | 'decider'
  | 'view'
  | 'yieldSlot';

type Declaration<
  Names extends DocumentEventNames,
  State,
  Command extends AnyCommand,
  Event extends DomainEvent,
> = Partial<Omit<ResourceKind<State, Command, Event>, Made>> &
  Pick<DocumentRules, 'storedName' | 'normalize' | 'check'> &
  Pick<DocumentKind, 'context' | 'inCatalogue' | 'namesById'> & {
    /** In camel case; `regularNames` and the payload field of watches follow from it. */
    readonly kind: string;
    readonly events: Names;
    /** Public watchers are not told of its changes. */
    readonly untold?: true;
    /** Paths that are stored and shown to nobody. */
    readonly unshown?: readonly string[];
    /** Where the document says its state. */
    readonly state?: string;
    /** What public lists show: documents with one of these values, unless a filter asks about the path. */
    readonly publicList?: readonly {
      readonly path: string;
      readonly is: readonly (string | true)[];
      /** Whatever a filter asks. */
      readonly always?: true;
    }[];
    /** Makes it show no longer that it has a slot; which commands there are is for `behaviour` to say. */
    readonly yieldSlot?: (at: string) => NoInfer<Command>;
    /** What it points at beside its `references`. */
    readonly alsoPointsAt?: ResourceKind['pointsAt'];
    /** Behaviour beside that of a document. */
    readonly behaviour?: (
      documents: Decider<DocumentState, DocumentCommand, DocumentEventOf<Names>>,
    ) => Decider<State, Command, Event>;
    /** Adds derived values to what is shown. */
    readonly render?: (document: JsonObject, facts: DocumentFacts) => JsonObject;
    /** Changes the view as a whole. */
    readonly view?: (shown: Extract<ResourceView, { exists: true }>, state: State) => ResourceView;
  };

const ALL: readonly Method[] = ['List', 'Get', 'Create', 'Update', 'Delete'];

/** Everything that the service needs to know of a document kind, from what is special about it. */
export const documentKind = <
  const Names extends DocumentEventNames,
  State extends DocumentState = DocumentState,
  Command extends AnyCommand = DocumentCommand,
  Event extends DomainEvent = DocumentEventOf<Names>,
>(
  declaration: Declaration<Names, State, Command, Event>,
): DocumentKind<State, Command, Event> => {
  const { kind, untold, unshown = [], state: statePath, publicList, alsoPointsAt, ...given } = declaration;
  const { storedName: _rule, normalize: _fill, check: _check, behaviour, render, view, ...own } = given;
  const names = regularNames(kind);
  const { methods = { public: ALL, private: ALL }, ids = 'client-may-choose' } = given;
  const { immutable = [], secrets = [], references = [] } = given;
  const privateOnly =
    methods.public.length === 0 ? [] : ['metadata.finalizers', ...(given.privateOnly ?? [])];
  const documents = documentDecider({ ...names, ...given, ids, immutable });
  const withoutUnshown = withoutPaths(unshown);
  const shown = (document: JsonObject, facts: DocumentFacts): JsonObject =>
    withoutUnshown(render === undefined ? document : render(document, facts));
  return {
    ...names,
    nameScope: 'project',
    defaultTenant: 'shared',
    protectedWhileReferenced: true,
    stateVersion: 1,
    ...own,
    kind,
    methods,
    event: { field: names.words.replaceAll(' ', '_'), public: untold !== true },
    ...(publicList === undefined ? {} : listing(publicList)),
    ids,
    privateOnly,
    hidden: [...privateOnly, ...unshown],
    secrets,
    immutable,
    references,
    pointsAt: (document) =>
      [
        ...references.flatMap(({ path, kind: target }) =>
          placesOf(document, path).map((place) => ({
            kind: target,
            id: stringAt(valueAtPlace(document, place), 'id'),
          })),
        ),
        ...(alsoPointsAt?.(document) ?? []),
      ].filter(({ id }) => id !== ''),
    // Without behaviour of its own a kind has the state, commands and events of its document.
    decider: behaviour?.(documents) ?? (documents as unknown as Decider<State, Command, Event>),
    view: (state) => {
      const plain = documentView(state, secrets, shown);
      if (!plain.exists) return plain;
      const is = statePath === undefined ? '' : textAt(plain.document, statePath);
      const stated = is === '' ? plain : { ...plain, state: is };
      return view?.(stated, state) ?? stated;
    },
  };
};

const textAt = (document: JsonObject, path: string): string => {
  const value = valueAt(document, path);
  return typeof value === 'string' ? value : '';
};

/** The same choice as text of a filter and as a predicate, so that default lists read an index. */
const listing = (
  choices: NonNullable<Declaration<DocumentEventNames, never, never, never>['publicList']>,
): Required<Pick<ResourceKind, 'publicList' | 'listed'>> => ({
  publicList: choices.map(({ path, is, always }) => ({
    filter: is.map((value) => `this.${path} == ${value}`).join(' || '),
    when: always === true ? 'always' : { unlessMentioned: path },
  })),
  listed: (document) =>
    choices.every(({ path, is }) =>
      (is as readonly (JsonValue | undefined)[]).includes(valueAt(document, path)),
    ),
});
