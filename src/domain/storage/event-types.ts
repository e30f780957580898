import type { EventType } from '../event-type.ts';
import { placedTypes } from '../placed-document.ts';
import { mayBe, typesOf } from '../schemas.ts';
import { volume } from './volume.resource.ts';

const context = 'storage';

/** Registry entries of volumes. */
export const storageEventTypes: readonly EventType[] = [
  ...placedTypes({ ...volume, context, hidden: [] }, 'Volume'),
  ...typesOf(
    { context, audience: 'provider', resource: volume.kind },
    { VolumeBecameAvailable: { vendorVolumeId: mayBe } },
  ),
];
