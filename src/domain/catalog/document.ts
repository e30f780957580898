import { reject, type Decider, type Decision, type DomainEvent, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { listAt, mergePaths, objectAt, sameJson, valueAt, withoutEmpty, withValueAt } from '../json-tools.ts';
import { immutableRejection, metadataRejection, nameRejection } from '../metadata-rules.ts';
import type { ResourceKind, ResourceView } from '../resource.ts';
import type { SecretRef } from '../secret-ref.ts';
import type { DocumentCreated, DocumentEventNames, DocumentEventOf, DocumentRevised } from './events.ts';

/**
 * The decider behind every catalogue-like kind: one set of rules for creating, changing and deleting a
 * document, events named in the words of the kind. A kind adds its own rules as data and pure functions.
 *
 * Deleting: without finalizers the document is retired at once; with finalizers its deletion is requested, and the
 * change that empties the list retires it in the same append (OSAC). What is retired may be created
 * again under its id: the new one has nothing of the former but the stream.
 */
export type DocumentCommand =
  /** `document`: private JSON form without `id`, server-set metadata and secret values. */
  | ({
      readonly type: 'CreateDocument';
      /** How often the creation had been abandoned when its name was reserved; see `AbandonCreation`. */
      readonly abandonedBefore?: number;
    } & DocumentCreated<string>['data'])
  | {
      readonly type: 'ReviseDocument';
      readonly at: string;
      /** The whole document after the change, or, with `paths`, only the values at those paths. */
      readonly document: JsonObject;
      /** Dotted paths to take from `document`; a path it does not hold is cleared. Absent: all of it. */
      readonly paths?: readonly string[];
      /** Changed secrets by path; null removes one. Those not named stay. */
      readonly secrets?: { readonly [path: string]: SecretRef | null };
    }
  | { readonly type: 'DeleteDocument'; readonly at: string }
  /**
   * Fences off a creation that reserved its name and did not come back: only a creation that knows of the
   * abandonment (and so reserved its name after it) is accepted afterwards.
   */
  | { readonly type: 'AbandonCreation'; readonly at: string; readonly commandId: string };

export type Secrets = { readonly [path: string]: SecretRef };

export type DocumentFacts = Omit<DocumentCreated<string>['data'], 'at' | 'secrets'> & {
  readonly createdAt: string;
  readonly secrets: Secrets;
};

export type DocumentState =
  | { readonly status: 'absent' }
  | { readonly status: 'abandoned'; readonly times: number }
  | ({ readonly status: 'present' } & DocumentFacts)
  | ({ readonly status: 'deleting' | 'retired'; readonly deletedAt: string } & DocumentFacts);

/** A kind's own rules, as its declaration gives them (`document-kind.ts`). */
export type DocumentRules = Pick<ResourceKind, 'words' | 'immutable' | 'nameRule'> & {
  readonly ids?: ResourceKind['ids'];
  readonly events: DocumentEventNames;
  /** What is wrong with a name that is stored, where the service itself stores others than clients may choose. */
  readonly storedName?: (name: string) => Rejection | undefined;
  /** Fills defaults and server-set values. `previous` is absent on creation. */
  readonly normalize?: (document: JsonObject, context: NormalizeContext) => JsonObject;
  /** What is wrong with a normalised document, if anything. */
  readonly check?: (document: JsonObject, context: CheckContext) => Rejection | undefined;
};

export type NormalizeContext = { readonly at: string; readonly previous?: JsonObject };
export type CheckContext = {
  readonly id: string;
  readonly name: string;
  readonly tenant: string;
  readonly project: string;
  readonly secrets: Secrets;
  readonly previous?: JsonObject;
};

export const documentDecider = <Names extends DocumentEventNames>(
  rules: DocumentRules & { readonly events: Names },
): Decider<DocumentState, DocumentCommand, DocumentEventOf<Names>> => ({
  initialState: () => ({ status: 'absent' }),
  evolve: (state, event) => evolveDocument(rules, state, event),
  // The factory's events carry the kind's own names; which name is which is known to it, not to the compiler.
  decide: (state, command) => decideDocument(rules, state, command) as Decision<DocumentEventOf<Names>>,
});

const decideDocument = (
  rules: DocumentRules,
  state: DocumentState,
  command: DocumentCommand,
): Decision<DomainEvent> => {
  switch (command.type) {
    case 'CreateDocument':
      return create(rules, state, command);
    case 'ReviseDocument':
      return revise(rules, state, command);
    case 'DeleteDocument':
      return remove(rules, state, command);
    case 'AbandonCreation':
      if (isLive(state)) return alreadyCreated(rules.words);
      return [{ type: 'CreationAbandoned', data: { at: command.at, commandId: command.commandId } }];
  }
};

const create = (
  rules: DocumentRules,
  state: DocumentState,
  command: Extract<DocumentCommand, { type: 'CreateDocument' }>,
): Decision<DomainEvent> => {
  if (isLive(state)) return alreadyExists(rules.words, command.id, rules.ids);
  const abandoned = isStored(state) ? undefined : abandonedRejection(state, command.abandonedBefore);
  if (abandoned !== undefined) return abandoned;
  const { at, id, tenant, project, name, creator, secrets = {} } = command;
  const document = rules.normalize?.(command.document, { at }) ?? command.document;
  const wrong =
    (rules.storedName ?? rules.nameRule ?? nameRejection)(command.name) ??
    metadataRejection(objectAt(document, 'metadata')) ??
    rules.check?.(document, { id, name, tenant, project, secrets });
  if (wrong !== undefined) return wrong;
  return [
    {
      type: rules.events.created,
      data: { id, at, tenant, project, name, creator, document, ...someSecrets(secrets) },
    },
  ];
};

const revise = (
  rules: DocumentRules,
  state: DocumentState,
  command: Extract<DocumentCommand, { type: 'ReviseDocument' }>,
): Decision<DomainEvent> => {
  if (!isLive(state)) return notFound(state);
  const merged =
    command.paths === undefined
      ? command.document
      : mergePaths(state.document, command.document, command.paths);
  const previous = state.document;
  const document = rules.normalize?.(merged, { at: command.at, previous }) ?? merged;
  const secrets = changedSecrets(state.secrets, command.secrets ?? {});
  const changed = rules.immutable.filter(
    (path) => !sameJson(valueAt(previous, path), valueAt(document, path)),
  );
  if (changed.length > 0) return immutableRejection(changed);
  const { id, name, tenant, project } = state;
  const wrong =
    metadataRejection(objectAt(document, 'metadata')) ??
    rules.check?.(document, { id, name, tenant, project, secrets, previous });
  if (wrong !== undefined) return wrong;
  const revised =
    sameJson(document, previous) && sameJson(secrets, state.secrets)
      ? []
      : [{ type: rules.events.revised, data: { at: command.at, document, ...someSecrets(secrets) } }];
  const gone = state.status === 'deleting' && finalizers(document).length === 0;
  return gone ? [...revised, { type: rules.events.retired, data: { at: command.at } }] : revised;
};

const remove = (
  rules: DocumentRules,
  state: DocumentState,
  command: Extract<DocumentCommand, { type: 'DeleteDocument' }>,
): Decision<DomainEvent> => {
  if (!isLive(state)) return notFound(state);
  if (state.status === 'deleting') return [];
  const type =
    finalizers(state.document).length === 0 ? rules.events.retired : rules.events.deletionRequested;
  return [{ type, data: { at: command.at } }];
};

const evolveDocument = (
  rules: DocumentRules,
  state: DocumentState,
  event: DomainEvent & DocumentEventOf,
): DocumentState => {
  if (event.type === 'CreationAbandoned') {
    if (isStored(state)) return state;
    return { status: 'abandoned', times: state.status === 'abandoned' ? state.times + 1 : 1 };
  }
  if (event.type === rules.events.created) {
    const { at, secrets, ...data } = (event as DocumentCreated<string>).data;
    return { status: 'present', ...data, createdAt: at, secrets: secrets ?? {} };
  }
  if (!isStored(state)) return state;
  const { at } = event.data;
  switch (event.type) {
    case rules.events.revised: {
      const { document, secrets } = (event as DocumentRevised<string>).data;
      return { ...state, document, secrets: secrets ?? {} };
    }
    case rules.events.deletionRequested:
      return { ...state, status: 'deleting', deletedAt: at };
    case rules.events.retired:
      return { ...state, status: 'retired', deletedAt: state.status === 'deleting' ? state.deletedAt : at };
    default:
      return state;
  }
};

/** How a folded document shows; `render` may add derived values, for example a status. */
export const documentView = (
  state: DocumentState,
  shownSecrets: readonly { readonly path: string; readonly reads: '***' | 'absent' }[] = [],
  render: (document: JsonObject, facts: DocumentFacts) => JsonObject = (document) => document,
): ResourceView => {
  if (!isStored(state)) return { exists: false };
  const deletionTimestamp = state.status === 'present' ? undefined : state.deletedAt;
  const stars = shownSecrets.filter(
    ({ path, reads }) => reads === '***' && state.secrets[path] !== undefined,
  );
  const document = stars.reduce((shown, { path }) => withValueAt(shown, path, '***'), state.document);
  return {
    exists: true,
    archived: state.status === 'retired',
    id: state.id,
    tenant: state.tenant,
    project: state.project,
    name: state.name,
    creationTimestamp: state.createdAt,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...someSecrets(state.secrets),
    document: {
      ...render(document, state),
      id: state.id,
      metadata: shownMetadata(state, deletionTimestamp),
    },
  };
};

const shownMetadata = (state: DocumentFacts, deletionTimestamp: string | undefined): JsonObject =>
  withoutEmpty({
    ...objectAt(state.document, 'metadata'),
    creation_timestamp: state.createdAt,
    deletion_timestamp: deletionTimestamp,
    finalizers: [...finalizers(state.document)],
    creator: state.creator,
    tenant: state.tenant,
    project: state.project,
    name: state.name,
  });

/** Deduplicated and sorted, as they are shown and counted (OSAC). */
const finalizers = (document: JsonObject): readonly string[] =>
  sortedTexts(listAt(objectAt(document, 'metadata'), 'finalizers'));

export const sortedTexts = (values: readonly unknown[]): string[] =>
  [...new Set(values.filter((value): value is string => typeof value === 'string'))].sort();

type Stored = Extract<DocumentState, DocumentFacts>;
export const isStored = (state: DocumentState): state is Stored =>
  state.status !== 'absent' && state.status !== 'abandoned';

const isLive = (state: DocumentState): state is Stored => isStored(state) && state.status !== 'retired';

const someSecrets = (secrets: Secrets): { secrets?: Secrets } =>
  Object.keys(secrets).length === 0 ? {} : { secrets };

const changedSecrets = (
  current: Secrets,
  changes: { readonly [path: string]: SecretRef | null },
): Secrets => {
  const merged = { ...current, ...changes };
  return Object.fromEntries(
    Object.entries(merged).filter((entry): entry is [string, SecretRef] => entry[1] !== null),
  );
};

const notFound = (state: DocumentState): Rejection =>
  reject(
    'not-found',
    'NOT_FOUND',
    isStored(state) ? `object with identifier '${state.id}' not found` : 'object not found',
  );

/** A taken id gives the same answer, whoever holds it; an id that is the name is told as the name. */
export const alreadyExists = (
  words: string,
  id: string,
  ids: ResourceKind['ids'] = 'client-may-choose',
): Rejection =>
  reject(
    'already-exists',
    'ALREADY_EXISTS',
    ids === 'equals-name'
      ? `${words} '${id}' already exists`
      : `${words} with identifier '${id}' already exists`,
  );

export const alreadyCreated = (words: string): Rejection =>
  reject('failed-precondition', 'ALREADY_CREATED', `the ${words} exists: its creation cannot be abandoned`);

/** How often the creation of what is not stored was abandoned; of a state of any kind. */
export const timesAbandoned = (state: unknown): number =>
  typeof state === 'object' && state !== null && 'times' in state && typeof state.times === 'number'
    ? state.times
    : 0;

/** A creation that reserved its name before it was abandoned no longer owns that name. */
export const abandonedRejection = (
  state: { readonly status: string; readonly times?: number },
  abandonedBefore = 0,
): Rejection | undefined => {
  const times = timesAbandoned(state);
  return times === abandonedBefore
    ? undefined
    : reject(
        'conflict',
        'CREATION_ABANDONED',
        'this creation was given up after it had reserved its name: reserve the name again and repeat it',
        { facts: { times } },
      );
};
