import type { z } from 'zod';
import type { EventOf } from '../schemas.ts';
import type { BOOKKEEPING_SHAPES, parkedStream } from './event-types.ts';

/** Events of the `sys-` streams; the shapes are in event-types.ts. */
export type BookkeepingEvent = EventOf<typeof BOOKKEEPING_SHAPES>;
type DataOf<Type extends BookkeepingEvent['type']> = Extract<BookkeepingEvent, { type: Type }>['data'];

export type ParkedStream = z.infer<typeof parkedStream>;
export type DeploymentData = DataOf<'DeploymentBound'>;
export type LeaseData = DataOf<'LeaseTaken'>;
export type TreeHeadData = DataOf<'TreeHeadSigned'>;
