import type { AnyKind } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import { eventIdOf, extensionsOf, recordOf, structured, timeOf } from './cloud-event.ts';
import { publicDocuments, type DocumentFold } from './public-document.ts';
import type { KafkaRecord, RecordMapper } from './stream.ts';
import type { Folded, StreamFolds } from './stream-folds.ts';

export type StateRecordOptions = {
  readonly kind: AnyKind;
  readonly registry: Registry;
  readonly folds: StreamFolds<DocumentFold>;
  readonly source: string;
  readonly topic: string;
};

export const stateTypeName = (kind: string): string => `osac.state.${kind}.v1`;

/**
 * Records of `osac.state.<kind>.v1` (compacted): the public document as of each event that changed it, and a tombstone
 * with the event after which no read shows it any more. Personal data stays ciphertext here: what was once sent in clear
 * could not be erased by destroying its key.
 */
export const createStateMapper = ({
  kind,
  registry,
  folds,
  source,
  topic,
}: StateRecordOptions): RecordMapper => {
  const documentOf = publicDocuments(kind);
  const recordsOf = (before: Folded<DocumentFold>, event: RecordedEvent): readonly KafkaRecord[] => {
    const after = folds.apply(before, event);
    if (registry.get(event.type)?.changesDocument === false) return [];
    const document = documentOf(after);
    if (document === undefined)
      return documentOf(before.state) === undefined ? [] : [recordOf(topic, event, null)];
    const value = structured({
      id: eventIdOf(event),
      source,
      type: stateTypeName(kind.kind),
      time: timeOf(event),
      extensions: extensionsOf(event),
      data: document,
    });
    return [recordOf(topic, event, value)];
  };
  return (event) => folds.use(event, (before) => recordsOf(before, event));
};
