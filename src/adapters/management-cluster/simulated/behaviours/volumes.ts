import { OSAC_GROUP } from '../../../../domain/hubs/hub-object.ts';
import { VOLUME } from '../../../../domain/storage/hub-objects.ts';
import { phaseBehaviour } from './phases.ts';

/** Its storage system is made up, and calls it by the uid of the object. */
export const volumeBehaviour = phaseBehaviour({
  kind: VOLUME,
  finalizer: `${OSAC_GROUP}/volume-finalizer`,
  phases: [
    { after: 'accept', status: () => ({ phase: 'Progressing' }) },
    { after: 'finish', status: ({ uid }) => ({ phase: 'Ready', vendorVolumeID: `sim-${uid}` }) },
  ],
  failed: (text) => ({ phase: 'Failed', message: text }),
  deleting: { phase: 'Deleting' },
  immutable: ['storageTier', 'sizeGiB', 'accessMode'],
});
