import type { Parts } from '../../domain/buckets.ts';
import type { ResourceView } from '../../domain/resource.ts';
import type { AppendType } from './changes.ts';
import { emptyFold, type DocumentKind, type Folded } from './fold.ts';

/** A document's stream in memory: what is folded, and what of it the tables hold. */
export type Entry = {
  readonly stream: string;
  readonly kind: DocumentKind;
  readonly id: string;
  folded: Folded;
  position: string;
  /** Tenant of the live document; undefined: there is none. */
  tenant: string | undefined;
  /** Position at which the live document came to exist; empty: there is none. */
  created: string;
  /** Row in `changes` of the append of `folded.counted.commandId`. */
  change: { readonly position: string; readonly type: AppendType } | undefined;
  /** The rendered live document since the last flush; undefined: unchanged. */
  rendered: Rendered | undefined;
  /** References that the last event announces, as the tables hold them (`announcedBy`); empty: it announces none. */
  announced: string;
  /** What the tables hold of that. */
  storedAnnounced: string;
  /** What the tables hold. */
  stored: Stored;
  storedParts: Parts;
};
export type Rendered = {
  readonly view: Extract<ResourceView, { exists: true }>;
  readonly privateText: string;
};

/** What the tables hold of a stream, so that only what changed is written. */
export type Stored = {
  readonly tenant: string | undefined;
  /** Of the live document's row; undefined: not known here, or there is none. */
  readonly project: string | undefined;
  readonly name: string | undefined;
  readonly creationTimestamp: string | undefined;
  readonly created: string;
  /** JSON texts of what the live document points at, of its marks and of its terms. */
  readonly refs: string;
  readonly marks: string;
  readonly terms: string;
};

export const NOTHING_STORED: Stored = {
  tenant: undefined,
  project: undefined,
  name: undefined,
  creationTimestamp: undefined,
  created: '',
  refs: '[]',
  marks: '[]',
  terms: '[]',
};

export const newEntry = (stream: string, kind: DocumentKind, id: string): Entry => ({
  stream,
  kind,
  id,
  folded: emptyFold(kind),
  position: '',
  tenant: undefined,
  created: '',
  change: undefined,
  rendered: undefined,
  announced: '',
  storedAnnounced: '',
  stored: NOTHING_STORED,
  storedParts: {},
});
