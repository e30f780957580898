import type { DomainEvent } from '../decider.ts';
import type { EventData } from '../schemas.ts';
import type { DOCUMENT_SHAPES } from './document-types.ts';

type Shapes = typeof DOCUMENT_SHAPES;

/** Names of the four events of a document kind, in the kind's own words. */
export type DocumentEventNames = {
  readonly created: string;
  readonly revised: string;
  readonly deletionRequested: string;
  readonly retired: string;
};

/**
 * Document kinds share one decider factory that still emits named events. `document` is the resource in OSAC's private JSON form without `id`, server-set metadata and secrets.
 */
export type DocumentCreated<Type extends string> = DomainEvent<Type, EventData<Shapes['created']>>;
/** The whole document after the change (small, and what changed is the difference to the event before). */
export type DocumentRevised<Type extends string> = DomainEvent<Type, EventData<Shapes['revised']>>;
export type DocumentDeletionRequested<Type extends string> = DomainEvent<Type, { readonly at: string }>;
export type DocumentRetired<Type extends string> = DomainEvent<Type, { readonly at: string }>;

/** A creation reserved its name and never came back: a late one must reserve again (design §4). */
export type CreationAbandoned = DomainEvent<
  'CreationAbandoned',
  { readonly at: string; readonly commandId: string }
>;

export type DocumentEventOf<Names extends DocumentEventNames = DocumentEventNames> =
  | DocumentCreated<Names['created']>
  | DocumentRevised<Names['revised']>
  | DocumentDeletionRequested<Names['deletionRequested']>
  | DocumentRetired<Names['retired']>
  | CreationAbandoned;
