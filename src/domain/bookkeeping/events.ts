import type { z } from 'zod';
import type { DataOf } from '../decider.ts';
import type { EventOf } from '../schemas.ts';
import type { BOOKKEEPING_SHAPES, parkedStream } from './event-types.ts';

/** Events of the `sys-` streams; the shapes are in event-types.ts. */
export type BookkeepingEvent = EventOf<typeof BOOKKEEPING_SHAPES>;

export type ParkedStream = z.infer<typeof parkedStream>;
export type DeploymentData = DataOf<BookkeepingEvent, 'DeploymentBound'>;
export type LeaseData = DataOf<BookkeepingEvent, 'LeaseTaken'>;
export type TreeHeadData = DataOf<BookkeepingEvent, 'TreeHeadSigned'>;
