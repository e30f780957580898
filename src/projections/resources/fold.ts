import type { RecordedEvent } from '../../app/log/event-store.ts';
import { REFERENCES_ANNOUNCED } from '../../domain/announcements.ts';
import type { Parts } from '../../domain/buckets.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import {
  countVersion,
  NO_VERSION,
  privateDocument,
  type DocumentVersion,
  type VersionedType,
} from '../../domain/document-version.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { ResourceView } from '../../domain/resource.ts';
import { own } from '../../domain/json-tools.ts';

/** What the read model needs of a kind's declaration; every `ResourceKind` has it. */
export type DocumentKind = {
  readonly kind: string;
  readonly privateOnly: readonly string[];
  /** Paths of values that are erased with the person's key. */
  readonly personal?: readonly string[];
  readonly pointsAt: (document: JsonObject) => readonly { readonly kind: string; readonly id: string }[];
  readonly marks?: (document: JsonObject) => readonly string[];
  readonly references?: readonly { readonly path: string }[];
  readonly listed?: (document: JsonObject) => boolean;
  readonly lends?: {
    readonly held: (state: never) => readonly unknown[];
    readonly holdsAny?: (state: never) => boolean;
  };
  readonly apart?: {
    readonly split: (state: never) => { readonly rest: unknown; readonly parts: Parts };
    readonly join: (rest: unknown, parts: Parts) => unknown;
  };
  readonly decider: {
    readonly initialState: () => unknown;
    readonly evolve: (state: never, event: never) => unknown;
  };
  readonly stateVersion: number;
  readonly view: (state: never) => ResourceView;
};

/** What the read models need of the registry of event types; the event codec is one. */
export type Decode = {
  readonly decode: (
    event: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>,
  ) => DomainEvent<string, JsonObject>;
  readonly typeOf: (type: string) => VersionedType | undefined;
};

/** A document's stream, folded up to `revision`. */
export type Folded = {
  readonly revision: number;
  readonly counted: DocumentVersion;
  readonly state: unknown;
};

export const emptyFold = (kind: DocumentKind): Folded => ({
  revision: -1,
  counted: NO_VERSION,
  state: kind.decider.initialState(),
});

export const changesDocument = (codec: Decode, type: string): boolean =>
  codec.typeOf(type)?.changesDocument ?? true;

/** Folds one event; pure. Throws whatever the kind's `evolve` or an upcaster throws: the event is then poison. */
export const foldEvent = (
  before: Folded,
  kind: DocumentKind,
  codec: Decode,
  event: RecordedEvent,
): Folded => ({
  revision: event.revision,
  counted: countVersion(before.counted, commandIdOf(event), codec.typeOf(event.type)),
  state: kind.decider.evolve(before.state as never, codec.decode(event) as never),
});

/**
 * References that are announced and may be made by the next event of the stream, as JSON of where and which; empty: this
 * event announces none (`app/referrals.ts`).
 */
export const announcedBy = ({ type, revision, position, data }: RecordedEvent): string =>
  type === REFERENCES_ANNOUNCED ? JSON.stringify({ revision, position, targets: data['targets'] ?? [] }) : '';

export const commandIdOf = (event: RecordedEvent): string => textIn(event.metadata, 'commandId');
export const textIn = (object: JsonObject, key: string): string => {
  const value = object[key];
  return typeof value === 'string' ? value : '';
};

/** Mark of an object that others hold a part of (`ResourceKind.lends`). */
export const LENT_MARK = 'lent';

/** Marks, as JSON, with that mark as its state says: what it lends may change without its document. */
export const withLent = (marks: string, kind: DocumentKind, { state }: Pick<Folded, 'state'>): string => {
  if (kind.lends === undefined) return marks;
  const others = (JSON.parse(marks) as string[]).filter((mark) => mark !== LENT_MARK);
  const { held, holdsAny = (of: never) => held(of).length > 0 } = kind.lends;
  return JSON.stringify(holdsAny(state as never) ? [...others, LENT_MARK] : others);
};

export type LiveView = Extract<ResourceView, { exists: true }>;

/** The document that reads show, if they show one: it exists and is not archived. */
export const viewOf = (kind: DocumentKind, state: unknown): ResourceView => kind.view(state as never);
export const isLive = (view: ResourceView): view is LiveView => view.exists && !view.archived;

export { privateDocument };

/** Compiled once per kind: the paths as a tree, so that only what a path leads through is copied. */
export type PrivatePaths = { readonly [key: string]: PrivatePaths | true };

export const privatePaths = (paths: readonly string[]): PrivatePaths => {
  const root: { [key: string]: PrivatePaths | true } = {};
  for (const path of paths) {
    const keys = path.split('.');
    let node = root;
    for (const [depth, key] of keys.entries()) {
      if (depth === keys.length - 1) node[key] = true;
      else if (node[key] !== true) node = (node[key] ??= {}) as typeof root;
      else break; // a shorter path removes all of it
    }
  }
  return root;
};

/**
 * What `publicDocument` of the domain gives, sharing what no path leads through instead of cloning the document: a
 * rebuild renders as many documents as there are changes.
 */
export const withoutPrivate = (value: JsonValue, paths: PrivatePaths): JsonValue => {
  if (typeof value !== 'object' || value === null) return value;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as JsonObject;
  const every = paths['*'];
  for (const key of Object.keys(every === undefined ? paths : copy)) {
    const below = own(paths, key) ?? every;
    const child = own(copy, key);
    if (below === undefined || child === undefined) continue;
    if (below === true || every === true) delete copy[key];
    else copy[key] = withoutPrivate(every === undefined ? child : withoutPrivate(child, every), below);
  }
  return copy as JsonValue;
};

export const publicText = (document: JsonObject, paths: PrivatePaths): string =>
  JSON.stringify(withoutPrivate(document, paths));
