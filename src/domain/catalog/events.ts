import type { DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import type { SecretRef } from '../secret-ref.ts';

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
export type DocumentCreated<Type extends string> = DomainEvent<
  Type,
  {
    readonly id: string;
    readonly at: string;
    readonly tenant: string;
    readonly project: string;
    readonly name: string;
    readonly creator: string;
    readonly document: JsonObject;
    /** References of the write-only values, by the path where the document would hold them. */
    readonly secrets?: { readonly [path: string]: SecretRef };
  }
>;
/** The whole document after the change (small, and what changed is the difference to the event before). */
export type DocumentRevised<Type extends string> = DomainEvent<
  Type,
  {
    readonly at: string;
    readonly document: JsonObject;
    /** As after the change; absent when there are none. */
    readonly secrets?: { readonly [path: string]: SecretRef };
  }
>;
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
