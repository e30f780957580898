import type { Decider, DomainEvent, Rejection } from './decider.ts';
import type { Parts } from './buckets.ts';
import type { JsonObject } from './json.ts';
import { withoutPaths } from './json-tools.ts';
import type { Holder } from './holder.ts';
import type { SecretRef } from './secret-ref.ts';

/**
 * Declaration of an OSAC kind, as plain data. Routes, validation, both views, name rules, references
 * and the read model come from it. Kinds of documents are written with `documentKind` (catalog/document-kind.ts).
 */
export type ResourceKind<
  State = unknown,
  Command extends { readonly type: string } = never,
  Event extends DomainEvent = never,
> = {
  /** `cluster`, `clusterTemplate`, `clusterVersion`, `hostType`, `hub`, `tenant`: also the stream category. */
  readonly kind: string;
  /** REST collection, for example `cluster_templates`. */
  readonly collection: string;
  /** As error texts name it: `cluster template`. */
  readonly words: string;
  /** Message and reference type name: `ClusterTemplate`. */
  readonly message: string;
  /** Service name in method names of errors: `ClusterTemplates`. */
  readonly service: string;
  /** First and last event of an object: they complete a name reservation, or end what holds it. */
  readonly events: { readonly created: string; readonly retired: string };
  /** Methods served per surface (OSAC). Who may call them: `tenancy/rights.ts`. */
  readonly methods: { readonly public: readonly Method[]; readonly private: readonly Method[] };
  /**
   * Who may use it on the public surface: `offered` things all users of a tenant read, `owned` ones those change who
   * order. Default: admins, and whom `tenancy/rights.ts` names.
   */
  readonly rights?: 'offered' | 'owned';
  /** Create and Update answer `{"object": …}` (OSAC). Default: the bare object. */
  readonly wrapsReplies?: true;
  /** Payload field of the kind in `Event`, and whether public watchers see it (OSAC). */
  readonly event?: { readonly field: string; readonly public: boolean };
  /**
   * What public lists show (OSAC), as filter text: `always`, or unless the caller's filter mentions `field`.
   */
  readonly publicList?: readonly {
    readonly filter: string;
    readonly when: 'always' | { readonly unlessMentioned: string };
  }[];
  /**
   * Whether public lists show a document when nothing is asked for: what all of `publicList` say together, so that such
   * lists read an index. Given exactly when `publicList` is; a test compares the two.
   */
  readonly listed?: (document: JsonObject) => boolean;
  /**
   * False while tenants must not know of a document: on the public surface they cannot refer to it, nor do anything
   * with one
   * that is not their own. Default: always true.
   */
  readonly published?: (document: JsonObject) => boolean;
  /**
   * Objects that lie in no project are the whole tenant's, also for callers who are limited to projects: the
   * catalogue, which
   * orders in a project are made from, and users, whom memberships name.
   */
  readonly outsideProjectsForAll?: true;
  /** Who chooses the id: the client may; always generated; always equal to the name. */
  readonly ids: 'client-may-choose' | 'generated' | 'equals-name';
  /** What is wrong with an id that somebody chooses, whatever is stored under it; default: nothing. */
  readonly idRule?: (id: string) => Rejection | undefined;
  /** Makes an id where a UUID cannot be one, from a UUID; only with `client-may-choose`. */
  readonly idFrom?: (uuid: string) => string;
  /** How wide a name is unique (OSAC). */
  readonly nameScope: 'project' | 'tenant' | 'global';
  /** What is wrong with a name; default: it must be one DNS label of at most 63 characters. */
  readonly nameRule?: (name: string) => Rejection | undefined;
  /** `metadata.project` where the name says it already: a project's parent. Any other value sent is refused. */
  readonly projectOf?: (name: string) => string;
  /** Derives the name when the caller sent none; undefined: the name is mandatory. */
  readonly deriveName?: (document: JsonObject) => string | undefined;
  /** Further values unique in the whole service, for example a version number or tenant domains. */
  readonly uniqueValues?: (document: JsonObject) => readonly {
    readonly scope: string;
    readonly value: string;
    readonly field: string;
    /** There is one for all, and whoever wants it takes it from the one who has it; see `yieldSlot`. */
    readonly slot?: true;
    /** What the caller is told when another one has it; default: `<words> with <field> '<value>' already exists`. */
    readonly taken?: string;
  }[];
  /** Makes a resource show no longer that it has the slot, once another one has taken it. */
  readonly yieldSlot?: (at: string) => Command;
  /** Tenant of a new object when an admin names none; empty: it has to be named. */
  readonly defaultTenant: 'shared' | 'own-name' | '';
  /** Paths that exist only in the private message; the public view leaves them out. A test compares with proto/. */
  readonly privateOnly: readonly string[];
  /**
   * Write-only paths: how reads show a stored value (`***`, or not at all). Values live in the secret store. A path
   * that ends in `.*` means every entry of a map.
   */
  readonly secrets: readonly {
    readonly path: string;
    readonly kind: SecretRef['kind'];
    readonly reads: '***' | 'absent';
    readonly encoding: 'text' | 'base64';
    /** Of a value; default: what a body may hold. */
    readonly maxBytes?: number;
  }[];
  /** Paths that never change after creation, besides metadata.name, tenant, project and id. */
  readonly immutable: readonly string[];
  /** The document as it is stored, where one value has several spellings: what is sent is compared as such. */
  readonly plain?: (document: JsonObject) => JsonObject;
  /**
   * References to resolve on create and update, by path of the reference message; `*` stands for every index of a list
   * and every key of a map. `local` ones lie in the same tenant, the own project first; never in `shared`.
   */
  readonly references: readonly {
    readonly path: string;
    readonly kind: string;
    readonly scope: 'full' | 'local';
  }[];
  /**
   * Paths of the document (`metadata.name` too) that hold personal data: encrypted for the object's own id before they
   * reach an event, shown in clear by read models while the key exists.
   */
  readonly personal?: readonly string[];
  /**
   * An id is used once: nothing comes back under the id of what is gone. Otherwise the id is free again once its object
   * is archived (OSAC), and the next one begins there with nothing of the former.
   */
  readonly idOnce?: true;
  /**
   * Parts of it that objects of other kinds hold, each part by one at a time: what its own stream owns, such as the
   * ranges of a network. `by`: the command that is to make the holder. It claims anew with each attempt, so that a
   * release of the former generation frees nothing; what another command has claimed for the holder is refused to it.
   */
  readonly lends?: {
    readonly claim: (at: string, holder: Holder, wanted: JsonObject, by?: string) => Command;
    readonly release: (at: string, holder: Holder, generation: number) => Command;
    readonly held: (state: State) => readonly { readonly holder: Holder; readonly generation: number }[];
    readonly heldBy: (state: State, holder: Holder) => number | undefined;
    /** Whether anybody holds any; said where `held` is a long list. */
    readonly holdsAny?: (state: State) => boolean;
  };
  /**
   * Of a state that grows with what it lends: its large maps, of which whoever stores the state writes the changed buckets
   * alone, and the events that change nothing else.
   */
  readonly apart?: {
    readonly events: readonly string[];
    readonly split: (state: State) => { readonly rest: unknown; readonly parts: Parts };
    readonly join: (rest: unknown, parts: Parts) => unknown;
  };
  /**
   * What an object holds of others that lend: claimed before its first event, given back by its workflow once its
   * absence was observed.
   */
  readonly takes?: (
    document: JsonObject,
  ) => readonly { readonly kind: string; readonly id: string; readonly wanted: JsonObject }[];
  /** What a stored document points at; a referenced object of a `protects` kind cannot be deleted. */
  readonly pointsAt: (document: JsonObject) => readonly { readonly kind: string; readonly id: string }[];
  /** True: an object that something points at cannot be deleted. */
  readonly protectedWhileReferenced: boolean;
  /** What points at it is counted by kind where that keeps it (OSAC). Default: it is named. */
  readonly countsUsers?: true;
  /** What the body of a creation must hold beside a name: for the OpenAPI document, and for the tests of all kinds. */
  readonly example?: JsonObject;
  /** Looked-up marks, for example `default` of the default ClusterVersion. */
  readonly marks?: (document: JsonObject) => readonly string[];
  /** The aggregate behind it. */
  readonly decider: Decider<State, Command, Event>;
  readonly stateVersion: number;
  /** Pure: folded state → what the surfaces show. */
  readonly view: (state: State) => ResourceView;
};

/** What lends something of itself: an object of a kind, or the only stream of its sort (`onlyId`). */
export type Lender<
  State = unknown,
  Command extends { readonly type: string } = never,
  Event extends DomainEvent = never,
> = Pick<ResourceKind<State, Command, Event>, 'kind' | 'decider' | 'stateVersion' | 'view' | 'lends'> & {
  readonly onlyId?: string;
};

/** Names that follow from the kind's own; an odd plural or capitals (`ExternalIPs`) are said beside them. */
export const regularNames = (
  kind: string,
): Pick<ResourceKind, 'words' | 'collection' | 'message' | 'service'> => {
  const words = kind.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const message = `${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}`;
  return { words, message, collection: `${words.replaceAll(' ', '_')}s`, service: `${message}s` };
};

export type Method = 'List' | 'Get' | 'Create' | 'Update' | 'Delete';

/** What every surface, projection and check needs to know of a folded document. */
export type ResourceView =
  | { readonly exists: false }
  | {
      readonly exists: true;
      /** Gone: no API reads it any more, its name is free. */
      readonly archived: boolean;
      readonly id: string;
      readonly tenant: string;
      readonly project: string;
      readonly name: string;
      /** What is reserved in place of the name, where the name is personal data: a keyed hash of it. */
      readonly claimedName?: string;
      readonly creationTimestamp: string;
      readonly deletionTimestamp?: string;
      /**
       * The document in OSAC's private JSON form (snake_case, defaults omitted), with `metadata` but without
       * `metadata.version`, which the fold counts. Secrets appear as their reads show them.
       */
      readonly document: JsonObject;
      /** Where the values of its write-only paths are; a path of a map ends in the entry's key. Never shown. */
      readonly secrets?: { readonly [path: string]: SecretRef };
      /** Summary for lists and filters: `CLUSTER_STATE_READY`, if the kind has a state. */
      readonly state?: string;
    };

/** What is left when everything that only the private surface shows is taken out. `*` matches any key or index. */
export const publicDocument = (document: JsonObject, privateOnly: readonly string[]): JsonObject => {
  const take = publicPart.get(privateOnly) ?? withoutPaths(privateOnly);
  publicPart.set(privateOnly, take);
  return take(document);
};
/** Made once for each kind. */
const publicPart = new WeakMap<readonly string[], ReturnType<typeof withoutPaths>>();
