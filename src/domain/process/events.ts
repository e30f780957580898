import type { EventOf } from '../schemas.ts';
import type { RUN_EVENT_SHAPES } from './event-types.ts';

/** Events of a run's own stream; the shapes are in event-types.ts. */
export type RunEvent = EventOf<typeof RUN_EVENT_SHAPES>;

export type RunEventOf<Type extends RunEvent['type']> = Extract<RunEvent, { readonly type: Type }>;
