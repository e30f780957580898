import { z } from 'zod';
import { base32, fnv1a64 } from '../hash.ts';
import { shownMeta, shownPart, shownText } from '../hubs/hub-codecs.ts';
import type { OwnedObject } from '../hubs/hub-object.ts';
import { explained, networkObject, shownStatus, type Shown } from '../networks/hub-objects.ts';

const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'] as const;
export type AccessMode = (typeof ACCESS_MODES)[number];

const volumeSpec = z.object({
  storageTier: z.string().min(1),
  sizeGiB: z.int().min(1),
  accessMode: z.enum(ACCESS_MODES),
});
type VolumeSpec = z.infer<typeof volumeSpec>;

const shownVolume = shownPart({
  spec: shownPart({
    storageTier: shownText,
    sizeGiB: z.int().catch(0),
    accessMode: z.enum(ACCESS_MODES).catch('ReadWriteOnce'),
  }),
  status: shownPart({ ...shownStatus, backend: shownText, protocol: shownText, vendorVolumeID: shownText }),
});

const common = networkObject('Volume', 'volume', 'volumes');

/** A volume on a hub. Backend and protocol stand in its status, where its operator expects them from its maker. */
export const VOLUME: OwnedObject<
  VolumeSpec,
  Shown<VolumeSpec> & { readonly backend: string; readonly protocol: string; readonly vendorVolumeID: string }
> = {
  ...common,
  nameOf: (id) => `vol-${base32(fnv1a64(id))}`,
  rights: [
    ...common.rights,
    { verbs: ['patch'], within: 'orders', setup: 'hub-access', part: 'status', optional: true },
    { verbs: ['patch'], within: 'anywhere', setup: 'tenant-namespaces', part: 'status', optional: true },
  ],
  spec: volumeSpec,
  status: z.object({ backend: z.string(), protocol: z.exactOptional(z.enum(['Block', 'NFS'])) }),
  sample: {
    spec: { storageTier: 'check', sizeGiB: 1, accessMode: 'ReadWriteOnce' },
    status: { phase: 'Ready', backend: 'check', protocol: 'NFS', vendorVolumeID: 'check' },
  },
  shown: (object) => {
    const { spec, status } = shownVolume.parse(object);
    const { conditions, ...told } = status;
    return { ...shownMeta(object, VOLUME.idLabel), spec, ...told, message: explained(conditions) };
  },
};
