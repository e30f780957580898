import type { EventType } from '../event-type.ts';
import { placedTypes } from '../placed-document.ts';
import { typesOf } from '../schemas.ts';
import { BARE_METAL_PRIVATE_ONLY, bareMetalInstance } from './bare-metal-instance.resource.ts';
import { BARE_METAL_SHAPES } from './event-shapes.ts';

const context = 'bare_metal';
const internal = { audience: 'internal' } as const;

/** Registry entries of bare-metal instances. */
export const bareMetalEventTypes: readonly EventType[] = [
  ...placedTypes({ ...bareMetalInstance, context, hidden: BARE_METAL_PRIVATE_ONLY }, 'BareMetalInstance'),
  ...typesOf({ context, audience: 'tenant', resource: bareMetalInstance.kind }, BARE_METAL_SHAPES, {
    BareMetalInstanceResolved: { providerOnly: ['instanceType.selector'] },
    BareMetalInstanceObserved: { providerOnly: ['message'] },
    BareMetalInstanceDriftSeen: { audience: 'provider' },
    BareMetalInstanceAddressAttached: internal,
    BareMetalInstanceAddressDetached: internal,
  }),
];
