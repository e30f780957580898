import { placedTypes } from '../placed-document.ts';
import { typesOf } from '../schemas.ts';
import type { EventType } from '../event-type.ts';
import { computeInstance, INSTANCE_PRIVATE_ONLY } from './compute-instance.resource.ts';
import { INSTANCE_SHAPES } from './event-shapes.ts';

const context = 'compute';
const internal = { audience: 'internal' } as const;

/** Registry entries of compute instances. */
export const computeEventTypes: readonly EventType[] = [
  ...placedTypes({ ...computeInstance, context, hidden: INSTANCE_PRIVATE_ONLY }, 'ComputeInstance'),
  ...typesOf({ context, audience: 'tenant', resource: computeInstance.kind }, INSTANCE_SHAPES, {
    ComputeInstanceObserved: { providerOnly: ['message'] },
    ComputeInstanceDriftSeen: { audience: 'provider' },
    ComputeInstanceAddressAttached: internal,
    ComputeInstanceAddressDetached: internal,
    ComputeInstanceConsoleOpened: { changesDocument: false },
    ComputeInstanceConsoleClosed: { changesDocument: false },
  }),
];
