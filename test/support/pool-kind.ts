import { z } from 'zod';
import { BEHAVIOURS } from '../../src/adapters/management-cluster/simulated/behaviours/behaviours.ts';
import { phaseBehaviour } from '../../src/adapters/management-cluster/simulated/behaviours/phases.ts';
import { HUB_OBJECTS } from '../../src/domain/hub-objects.ts';
import {
  OSAC_GROUP,
  OWNED_VERBS,
  type OwnedObject,
  type OwnedShown,
} from '../../src/domain/hubs/hub-object.ts';
import { shownConditions, shownList, shownMeta, shownPart, shownText } from '../../src/domain/hubs/shown.ts';

/** A small kind with a CRD of ops/crds, declared as any other: what the contract holds of ClusterOrders holds of it. */
type PoolSpec = {
  readonly cidrs: readonly string[];
  readonly ipFamily: 'IPv4' | 'IPv6';
  readonly implementationStrategy?: string;
};
type ShownPool = OwnedShown<PoolSpec> & { readonly phase: string; readonly total: number };

const spec = z.object({
  cidrs: z.array(z.string()),
  ipFamily: z.enum(['IPv4', 'IPv6']),
  implementationStrategy: z.exactOptional(z.string()),
});
const shown = shownPart({
  spec: shownPart({
    cidrs: shownList(z.string()),
    ipFamily: z.enum(['IPv4', 'IPv6']).catch('IPv4'),
  }),
  status: shownPart({ phase: shownText, total: z.number().catch(0), conditions: shownConditions }),
});
const ID_LABEL = `${OSAC_GROUP}/externalippool-uuid`;
const FINALIZER = `${OSAC_GROUP}/externalippool-finalizer`;

export const POOL: OwnedObject<PoolSpec, ShownPool> = {
  kind: 'ExternalIPPool',
  group: OSAC_GROUP,
  version: 'v1alpha1',
  plural: 'externalippools',
  idLabel: ID_LABEL,
  ownLane: true,
  owner: 'pool',
  called: 'pools',
  nameOf: (id) => `pool-${id}`,
  spec,
  secretFields: [],
  sample: { spec: { cidrs: ['192.0.2.0/24'], ipFamily: 'IPv4' }, status: { phase: 'Ready' } },
  rights: [{ verbs: OWNED_VERBS, within: 'orders', setup: 'hub-access' }],
  shown: (object) => {
    const { spec: stored, status } = shown.parse(object);
    return { ...shownMeta(object, ID_LABEL), spec: stored, phase: status.phase, total: status.total };
  },
};

const POOL_BEHAVIOUR = phaseBehaviour({
  kind: POOL,
  finalizer: FINALIZER,
  phases: [
    { after: 'accept', status: () => ({ phase: 'Progressing', total: 0 }) },
    { after: 'finish', status: () => ({ phase: 'Ready', total: 256 }) },
  ],
  failed: () => ({ phase: 'Failed', total: 0 }),
  deleting: { phase: 'Deleting' },
  immutable: ['cidrs', 'ipFamily'],
});

/** What is declared in production, and the pool besides. */
export const OBJECTS_WITH_POOLS = [...HUB_OBJECTS, POOL];
export const BEHAVIOURS_WITH_POOLS = [...BEHAVIOURS, POOL_BEHAVIOUR];
