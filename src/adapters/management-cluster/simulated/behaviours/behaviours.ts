import { bareMetalBehaviours } from './bare-metal-instances.ts';
import type { Behaviour } from './behaviour.ts';
import { clusterOrderBehaviour } from './cluster-order/behaviour.ts';
import { computeBehaviours } from './compute-instances.ts';
import { externalIpBehaviour, externalIpPoolBehaviour } from './external-ips.ts';
import { volumeBehaviour } from './volumes.ts';
import { networkBehaviours } from './networks.ts';
import { tenantBehaviour } from './tenants.ts';

/** What simulated hubs know; another kind is one more row, which `phases.ts` makes of a table. */
export const BEHAVIOURS: readonly Behaviour[] = [
  clusterOrderBehaviour,
  ...bareMetalBehaviours,
  ...computeBehaviours,
  externalIpBehaviour,
  externalIpPoolBehaviour,
  volumeBehaviour,
  ...networkBehaviours,
  tenantBehaviour,
];
