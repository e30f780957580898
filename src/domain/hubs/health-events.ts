import type { z } from 'zod';
import type { EventOf } from '../schemas.ts';
import type { HUB_HEALTH, hostCount, hubProblem, lackedKind } from './event-types.ts';

export type HubProblemFact = z.infer<typeof hubProblem>;
export type LackedKind = z.infer<typeof lackedKind>;
export type HostCount = z.infer<typeof hostCount>;
export type HubHealthEvent = EventOf<typeof HUB_HEALTH>;

/** What may let a hub take something that it did not take before. */
export const HUB_NEWS: readonly string[] = [
  'HubRegistered',
  'HubRevised',
  'HubBecameReachable',
  'HubCredentialsAccepted',
  'HubIdentified',
  'HubDrivingResumed',
  'HubFoundComplete',
  'HubKindsSeen',
];
