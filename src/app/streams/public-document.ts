import {
  countVersion,
  NO_VERSION,
  privateDocument,
  type DocumentVersion,
} from '../../domain/document-version.ts';
import type { JsonObject } from '../../domain/json.ts';
import { stringAt, withoutPaths } from '../../domain/json-tools.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { liftEvent } from './current-version.ts';

/** A document's stream as of one of its events. */
export type DocumentFold = { readonly state: unknown; readonly version: DocumentVersion };

export const emptyDocument = ({ decider }: Pick<AnyKind, 'decider'>): DocumentFold => ({
  state: decider.initialState(),
  version: NO_VERSION,
});

export const foldDocument = (
  { decider }: Pick<AnyKind, 'decider'>,
  registry: Registry,
  before: DocumentFold,
  event: RecordedEvent,
): DocumentFold => ({
  state: decider.evolve(before.state, liftEvent(registry, event)),
  version: countVersion(before.version, stringAt(event.metadata, 'commandId'), registry.get(event.type)),
});

/**
 * The document as the public surface shows it at this point; undefined: it shows none. Secrets look as reads show them,
 * personal data is the ciphertext that the log holds.
 */
export const publicDocuments = (
  kind: Pick<AnyKind, 'view' | 'privateOnly' | 'publicList' | 'listed'>,
): ((fold: DocumentFold) => JsonObject | undefined) => {
  const publicPart = withoutPaths(kind.privateOnly);
  return ({ state, version }) => {
    const view = kind.view(state);
    if (!view.exists || view.archived || isHidden(kind, view.document)) return undefined;
    return publicPart(privateDocument(view.document, version.version));
  };
};

/** No public list shows it, whatever is asked for: a catalogue item that is not published. */
const isHidden = (
  { publicList, listed }: Pick<AnyKind, 'publicList' | 'listed'>,
  document: JsonObject,
): boolean =>
  publicList?.every(({ when }) => when === 'always') === true && listed !== undefined && !listed(document);
