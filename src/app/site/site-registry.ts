import type { HubRegistry } from '../hubs/hub-registry.ts';
import type { Site, Sites } from './ports.ts';

/** The sites around the registered hubs: a zone is one site, and far side of all hubs in it. */
export type SiteRegistry = {
  /** Undefined: no registered hub is in that zone, or nothing reaches its site. */
  siteOf(zone: string): Site | undefined;
  siteOfHub(hub: string): Site | undefined;
  /** Resolves when every hub that was registered at the start is known. */
  ready(signal?: AbortSignal): Promise<void>;
  /** Zones whose site is reached. */
  zones(): readonly string[];
};

/** Lanes of the effects on a site: switches, routers, name servers and tasks fail apart from each other. */
export const lanesOfSite = (zone: string): readonly string[] =>
  ['fabric', 'l3', 'dns', 'tasks'].map((part) => `site:${zone}:${part}`);

export const createSiteRegistry = (
  hubs: Pick<HubRegistry, 'get' | 'hubs' | 'ready'>,
  sites: Sites = { of: () => undefined },
): SiteRegistry => {
  /** Where a real hub is, only simulated ones would have a simulated site: its work must not look done. */
  const siteOf = (zone: string): Site | undefined => {
    const around = hubs.hubs().filter(({ facts }) => facts.zone === zone);
    const isSimulated = around.length > 0 && around.every(({ facts }) => facts.simulated);
    return zone !== '' && isSimulated ? sites.of(zone) : undefined;
  };
  return {
    siteOf,
    siteOfHub: (hub) => siteOf(hubs.get(hub)?.facts.zone ?? ''),
    ready: (signal) => hubs.ready(signal),
    zones: () =>
      [...new Set(hubs.hubs().map(({ facts }) => facts.zone))].filter((zone) => siteOf(zone) !== undefined),
  };
};
