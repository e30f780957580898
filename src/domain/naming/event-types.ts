import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { mayBe, text, typesOf, type Shapes } from '../schemas.ts';

export const NAME_SHAPES = {
  NameReserved: {
    kind: text,
    holder: text,
    /** The command that creates the holder: its retry finds its own reservation. */
    commandId: text,
    /** Stream whose first event completes the reservation. */
    stream: text,
    /** Only of a slot that passes from one to the next: the stream of the resource that had it until now. */
    takenFrom: mayBe,
  },
  NameReleased: { holder: text, why: z.enum(['deleted', 'abandoned']) },
} as const satisfies Shapes;

/** Registry entries of name streams. */
export const namingEventTypes: readonly EventType[] = typesOf(
  { context: 'naming', audience: 'internal' },
  // One type for every kind: it says that an id stays unused, whatever it was meant for.
  { ...NAME_SHAPES, CreationAbandoned: { commandId: text } },
  { CreationAbandoned: { changesDocument: false } },
);
