import { HUB_NEWS } from '../hubs/health-events.ts';
import { defined, objectAt, stringAt } from '../json-tools.ts';
import { HUB_ANNOTATION } from '../networks/external-ip-pool.resource.ts';
import { placeByScheduler } from '../placed-by-scheduler.ts';
import { placedMeter } from '../placed-meter.ts';
import { documentOf } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import { storageEventTypes } from './event-types.ts';
import { VOLUME, type AccessMode } from './hub-objects.ts';
import { sizeOf, volume, type VolumeCommand, type VolumeEvent, type VolumeState } from './volume.resource.ts';

const ACCESS_MODES: { readonly [mode: string]: AccessMode } = {
  VOLUME_ACCESS_MODE_READ_WRITE_ONCE: 'ReadWriteOnce',
  VOLUME_ACCESS_MODE_READ_ONLY_MANY: 'ReadOnlyMany',
  VOLUME_ACCESS_MODE_READ_WRITE_MANY: 'ReadWriteMany',
  VOLUME_ACCESS_MODE_READ_WRITE_ONCE_POD: 'ReadWriteOncePod',
};
const PROTOCOLS: { readonly [protocol: string]: string } = {
  STORAGE_PROTOCOL_NFS: 'NFS',
  STORAGE_PROTOCOL_BLOCK: 'Block',
};

/** From the ordered volume to its object on a hub, and back. */
export const actingVolume = placedKind<VolumeState, VolumeCommand, VolumeEvent>(volume, {
  eventTypes: storageEventTypes,
  object: VOLUME,
  wakes: { types: HUB_NEWS },
  first: [placeByScheduler(volume.kind, VOLUME, [VOLUME.kind], { hubAnnotation: HUB_ANNOTATION })],
  wanted: (run) => {
    const document = documentOf(run);
    const spec = objectAt(document, 'spec');
    const status = objectAt(document, 'status');
    return {
      spec: {
        storageTier: stringAt(spec, 'storage_tier'),
        sizeGiB: sizeOf(document),
        accessMode: ACCESS_MODES[stringAt(spec, 'access_mode')] ?? 'ReadWriteOnce',
      },
      status: {
        backend: stringAt(status, 'backend'),
        ...defined({ protocol: PROTOCOLS[stringAt(status, 'protocol')] }),
      },
    };
  },
  ready: (_run, object, at) => ({
    type: 'RecordAvailable',
    at,
    ...defined({ vendorVolumeId: stringAt(object, 'vendorVolumeID') || undefined }),
  }),
  states: ['accepted', 'creating', 'available', 'failed', 'deleting'],
  deeds: { place: 'find a hub for it' },
  sentences: {
    VolumeBecameAvailable: (data) => {
      const id = stringAt(data, 'vendorVolumeId');
      return id === ''
        ? 'The volume is available.'
        : `The volume is available; its storage system calls it ${id}.`;
    },
  },
  /** Billed by its size while it is available. */
  meter: placedMeter(volume, {
    version: 1,
    resourceType: 'volume',
    templateKind: 'storageTier',
    part: 'volume',
    billedState: 'VOLUME_STATE_AVAILABLE',
    billed: (document) => {
      const tier = stringAt(objectAt(document, 'spec'), 'storage_tier');
      return {
        template: { id: tier, name: tier },
        dimensions: { storage_tier: tier, size_gib: sizeOf(document) },
      };
    },
  }),
});
