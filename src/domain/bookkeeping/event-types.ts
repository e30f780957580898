import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, text, typesOf } from '../schemas.ts';
import { auditTreeEventTypes } from './audit-events.ts';

/** Registry entries of the service's own `sys-` streams (events.ts). */
const lease = { holder: text, directory: text, epoch: count, ttlMs: z.number().min(0) };

const parkedStream = z.strictObject({
  stream: text,
  revision: count,
  position: text,
  error: text,
  reason: z.literal('newer-release').exactOptional(),
  at: text,
});

export const bookkeepingEventTypes: readonly EventType[] = typesOf(
  { context: 'system', audience: 'internal' },
  [
    ['LeaseTaken', lease],
    ['LeaseRenewed', lease],
    ['LeaseReleased', lease],
    ['ClockDiverged', { instance: text, deltaMs: z.number() }],
    [
      'CheckpointReached',
      {
        position: text.exactOptional(),
        nothingSent: z.boolean().exactOptional(),
        places: z.array(text).exactOptional(),
        topicId: text.exactOptional(),
      },
    ],
    ['KafkaParkingChanged', { streams: z.array(parkedStream) }],
    [
      'DeploymentBound',
      { form: count, fingerprint: text, deploymentId: text, name: text, formerIds: z.array(text) },
    ],
    ['DrivingEpochBegun', { epoch: count, nonce: text, holder: text }],
    ['StoreIdentified', { storeId: text }],
    ...auditTreeEventTypes,
  ],
);
