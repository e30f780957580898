import type { z } from 'zod';
import type { EventOf } from '../schemas.ts';
import type { capacityClaim, capacityLimits, HUB_CAPACITY, placementDecision } from './event-types.ts';

export type CapacityLimits = z.infer<typeof capacityLimits>;
export type PlacementDecision = z.infer<typeof placementDecision>;
export type CapacityClaim = z.infer<typeof capacityClaim>;
export type HubCapacityEvent = EventOf<typeof HUB_CAPACITY>;
