import { LRUCache } from 'lru-cache';
import {
  countVersion,
  NO_VERSION,
  privateDocument,
  type DocumentVersion,
} from '../../domain/document-version.ts';
import type { JsonObject } from '../../domain/json.ts';
import { stringAt } from '../../domain/json-tools.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import { publicDocument } from '../../domain/resource.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { liftEvent } from './lift.ts';

/** The state of a stream as of one of its revisions. */
export type FoldedAt = {
  readonly revision: number;
  readonly state: unknown;
  readonly version: DocumentVersion;
};

export type StreamFolds = {
  /** The stream before and after an event, folded from the stream itself. Throws StoreUnavailable. */
  readonly around: (event: RecordedEvent) => Promise<{ readonly before: FoldedAt; readonly after: FoldedAt }>;
};

export type StreamFoldsOptions = {
  readonly kind: Pick<AnyKind, 'decider'>;
  readonly registry: Registry;
  readonly readStream: EventStore['readStream'];
  /** Streams that stay folded in memory; the least recently used leaves first and is read again when it is needed. */
  readonly kept: number;
};

export const createStreamFolds = ({ kind, registry, readStream, kept }: StreamFoldsOptions): StreamFolds => {
  const folds = new LRUCache<string, FoldedAt>({ max: kept });

  const fold = (before: FoldedAt, event: RecordedEvent): FoldedAt => ({
    revision: event.revision,
    state: kind.decider.evolve(before.state, liftEvent(registry, event)),
    version: countVersion(before.version, stringAt(event.metadata, 'commandId'), registry.get(event.type)),
  });

  /** What is kept may be newer than the event, when events come again: then the stream is folded anew. */
  const upTo = async (stream: string, revision: number): Promise<FoldedAt> => {
    const known = folds.get(stream);
    let folded =
      known !== undefined && known.revision <= revision
        ? known
        : { revision: -1, state: kind.decider.initialState(), version: NO_VERSION };
    if (folded.revision === revision) return folded;
    const limit = revision - folded.revision;
    for await (const event of readStream(stream, { from: folded.revision + 1, limit }))
      folded = fold(folded, event);
    return folded;
  };

  return {
    around: async (event) => {
      const before = await upTo(event.stream, event.revision - 1);
      const after = fold(before, event);
      folds.set(event.stream, after);
      return { before, after };
    },
  };
};

/** The document as the public surface shows it at this point; undefined: it shows none. Secrets show as reads show them. */
export const publicDocumentOf = (
  kind: Pick<AnyKind, 'view' | 'privateOnly'>,
  { state, version }: FoldedAt,
): JsonObject | undefined => {
  const view = kind.view(state);
  if (!view.exists || view.archived) return undefined;
  return publicDocument(privateDocument(view.document, version.version), kind.privateOnly);
};
