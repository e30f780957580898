import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, counts, text, typesOf } from '../schemas.ts';

/** Registry entries of a hub's capacity stream. */
const claim = z.strictObject({ controlPlanes: count, nodes: counts });
const limits = z.strictObject({ controlPlanes: count.exactOptional(), nodes: counts.exactOptional() });

export const hubCapacityEventTypes: readonly EventType[] = typesOf(
  { context: 'hubs', audience: 'provider' },
  [
    ['HubCapacityDeclared', { hub: text, limits }],
    ['HubCapacityReserved', { clusterId: text, claim }],
    ['HubCapacityResized', { clusterId: text, claim }],
    ['HubCapacityReleased', { clusterId: text }],
    ['HubCapacityClosed', { hub: text, hubRevision: count }],
  ],
);
