import type { DomainEvent } from '../decider.ts';
import { jsonObject, secrets, text, type EventData, type Shapes } from '../schemas.ts';

/** Names of the four events of a document kind, in the kind's own words. */
export type DocumentEventNames = {
  readonly created: string;
  readonly revised: string;
  readonly deletionRequested: string;
  readonly retired: string;
};

/** `secrets`: references of the write-only values, by the path where the document would hold them; absent: there are none. */
const whole = { document: jsonObject, secrets: secrets.exactOptional() };
export const DOCUMENT_SHAPES = {
  created: { id: text, tenant: text, project: text, name: text, creator: text, ...whole },
  revised: whole,
} as const satisfies Shapes;

/**
 * Document kinds share one decider factory that still emits named events. `document` is the resource in OSAC's
 * private JSON form without `id`, server-set metadata and secrets.
 */
export type DocumentCreated<Type extends string> = DomainEvent<
  Type,
  EventData<(typeof DOCUMENT_SHAPES)['created']>
>;
/** The whole document after the change (small, and what changed is the difference to the event before). */
export type DocumentRevised<Type extends string> = DomainEvent<
  Type,
  EventData<(typeof DOCUMENT_SHAPES)['revised']>
>;
export type DocumentDeletionRequested<Type extends string> = DomainEvent<Type, { readonly at: string }>;
export type DocumentRetired<Type extends string> = DomainEvent<Type, { readonly at: string }>;

/** A creation reserved its name and never came back: a late one must reserve again. */
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
