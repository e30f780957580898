import { OSAC_GROUP } from '../../../../domain/hubs/hub-object.ts';
import { EXTERNAL_IP, EXTERNAL_IP_POOL } from '../../../../domain/networks/hub-objects.ts';
import { ADDRESS_ANNOTATION } from '../../../../domain/networks/external-ip.resource.ts';
import { phaseBehaviour } from './phases.ts';

/** The address is the one that was given with the object: a simulated hub chooses none. */
export const externalIpBehaviour = phaseBehaviour({
  kind: EXTERNAL_IP,
  finalizer: `${OSAC_GROUP}/externalip-finalizer`,
  phases: [
    { after: 'accept', status: () => ({ phase: '' }) },
    {
      after: 'finish',
      status: ({ annotations }) => ({ phase: 'Ready', address: annotations[ADDRESS_ANNOTATION] ?? '' }),
    },
  ],
  failed: (text) => ({ phase: 'Failed', message: text }),
  deleting: { phase: 'Deleting' },
  immutable: ['pool'],
});

export const externalIpPoolBehaviour = phaseBehaviour({
  kind: EXTERNAL_IP_POOL,
  finalizer: `${OSAC_GROUP}/externalippool-finalizer`,
  phases: [
    { after: 'accept', status: () => ({ phase: 'Progressing' }) },
    { after: 'finish', status: () => ({ phase: 'Ready' }) },
  ],
  failed: (text) => ({ phase: 'Failed', message: text }),
  deleting: { phase: 'Deleting' },
  immutable: ['cidrs', 'ipFamily', 'implementationStrategy'],
});
