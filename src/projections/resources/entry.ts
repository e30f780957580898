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
  /** Row in `changes` of the append of `folded.counted.commandId`. */
  change: { readonly position: string; readonly type: AppendType } | undefined;
  /** The rendered live document since the last flush; undefined: unchanged. */
  rendered: Rendered | undefined;
  /** What the tables hold. */
  stored: Stored;
};
export type Rendered = {
  readonly view: Extract<ResourceView, { exists: true }>;
  readonly privateText: string;
};

/** What the tables hold of a stream, so that only what changed is written. */
export type Stored = {
  readonly tenant: string | undefined;
  /** JSON texts of what the live document points at and of its marks. */
  readonly refs: string;
  readonly marks: string;
};

export const newEntry = (stream: string, kind: DocumentKind, id: string): Entry => ({
  stream,
  kind,
  id,
  folded: emptyFold(kind),
  position: '',
  tenant: undefined,
  change: undefined,
  rendered: undefined,
  stored: { tenant: undefined, refs: '[]', marks: '[]' },
});
