import { OSAC_GROUP } from '../../../../domain/hubs/hub-object.ts';
import { TENANT } from '../../../../domain/tenancy/hub-objects.ts';
import { phaseBehaviour } from './phases.ts';

/** Its namespaces are there from the beginning, as every namespace of a simulated hub. */
export const tenantBehaviour = phaseBehaviour({
  kind: TENANT,
  finalizer: `${OSAC_GROUP}/tenant`,
  phases: [
    { after: 'accept', status: () => ({ phase: 'Progressing' }) },
    { after: 'finish', status: () => ({ phase: 'Ready' }) },
  ],
  failed: (text) => ({ phase: 'Failed', message: text }),
  deleting: { phase: 'Deleting' },
  immutable: [],
});
