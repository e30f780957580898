import type { z } from 'zod';
import type { DataOf } from '../decider.ts';
import type { EventOf } from '../schemas.ts';
import type { BOOKKEEPING_SHAPES, parkedStream, renewedLease } from './event-types.ts';

/** Events of the `sys-` streams; the shapes are in event-types.ts. */
export type BookkeepingEvent = EventOf<typeof BOOKKEEPING_SHAPES>;

export type ParkedStream = z.infer<typeof parkedStream>;
export type RenewedLease = z.infer<typeof renewedLease>;
export type DeploymentData = DataOf<BookkeepingEvent, 'DeploymentBound'>;
export type LeaseData = DataOf<BookkeepingEvent, 'LeaseTaken'>;
export type TreeHeadData = DataOf<BookkeepingEvent, 'TreeHeadSigned'>;
