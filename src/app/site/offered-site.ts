import { rulesFor, type DelegatedStep, type HubFacts } from '../../domain/hubs/hub-facts.ts';
import type { PoolRegistry } from '../pools/pool-registry.ts';
import type { SiteRegistry } from './site-registry.ts';

/** Steps for which there are pools and a far side to call; names of clusters there end with the domain. */
export type OfferedSite = { readonly steps: readonly DelegatedStep[]; readonly baseDomain: string };

/** Simulated hubs name their clusters so. */
const BASE_DOMAIN = 'sim.example';
const WITH_VLANS: readonly DelegatedStep[] = ['agents', 'l2', 'post-install', 'validation'];
const WITH_PREFIXES: readonly DelegatedStep[] = ['l3', 'floating-ip', 'dns'];

/** Undefined: the zone has no site that is reached. A site without pools offers nothing. */
export const offeredAt = (
  zone: string,
  sites: Pick<SiteRegistry, 'siteOf'>,
  pools: Pick<PoolRegistry, 'poolsOf'>,
): OfferedSite | undefined => {
  if (sites.siteOf(zone) === undefined) return undefined;
  const { vlan, prefix } = pools.poolsOf(zone);
  const hands = (of: typeof vlan): boolean => of.some(({ pool }) => !pool.retired);
  if (!hands(vlan)) return { steps: [], baseDomain: BASE_DOMAIN };
  return { steps: [...WITH_VLANS, ...(hands(prefix) ? WITH_PREFIXES : [])], baseDomain: BASE_DOMAIN };
};

/** The nodes of orders that are placed on this hub now come from its agent pool. */
export const ownsAgents = (
  facts: HubFacts,
  sites: Pick<SiteRegistry, 'siteOf'>,
  pools: Pick<PoolRegistry, 'poolsOf'>,
): boolean => rulesFor(facts, offeredAt(facts.zone, sites, pools)?.steps).agents === 'ledger';
