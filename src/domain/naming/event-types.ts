import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { text, typesOf } from '../schemas.ts';

/** Registry entries of name streams. */
export const namingEventTypes: readonly EventType[] = typesOf({ context: 'naming', audience: 'internal' }, [
  [
    'NameReserved',
    { kind: text, holder: text, commandId: text, stream: text, takenFrom: text.exactOptional() },
  ],
  ['NameReleased', { holder: text, why: z.enum(['deleted', 'abandoned']) }],
  // One type for every kind: it says that an id stays unused, whatever it was meant for.
  ['CreationAbandoned', { commandId: text }, { changesDocument: false }],
]);
