import { eventIdOf, extensionsOf, recordOf, structured, timeOf } from './cloud-event.ts';
import type { RecordMapper } from './stream.ts';

export const CHECKPOINT_TYPE = 'osac.audit.checkpoint.v1';
const TREE_HEAD_SIGNED = 'TreeHeadSigned';

/** Records of `osac.audit.checkpoints`: every signed tree head, whole. Who keeps them notices a history that was rewritten. */
export const createCheckpointMapper =
  ({ source, topic }: { readonly source: string; readonly topic: string }): RecordMapper =>
  (event) =>
    event.type === TREE_HEAD_SIGNED
      ? [
          recordOf(
            topic,
            event,
            structured({
              id: eventIdOf(event),
              source,
              type: CHECKPOINT_TYPE,
              time: timeOf(event),
              extensions: extensionsOf(event),
              data: event.data,
            }),
          ),
        ]
      : [];
