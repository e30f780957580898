import { join } from 'node:path';
import type { Clock, Timers } from '../../../app/ports.ts';
import type { Sites } from '../../../app/site/ports.ts';
import { encodeId } from '../../../domain/stream-name.ts';
import { createInlineSiteChannel, createSiteChannel } from './channel.ts';
import { createSimulatedSite, type SimulatedSite, type SimulatedSiteOptions } from './simulated-site.ts';

export type SimulatedSitesOptions = {
  /** Folder of the files: `<dir>/<zone>.sqlite`, normally `<data dir>/sites`. */
  readonly dir: string;
  readonly clock: Clock;
  readonly timers: Timers;
  /** True: in this thread, for virtual time. Default false: one worker thread for all sites. */
  readonly inline?: boolean;
} & Pick<SimulatedSiteOptions, 'settings' | 'instance'>;

export type SimulatedSites = Sites & {
  of(zone: string): SimulatedSite;
  close(): Promise<void>;
};

/** File of a site in `dir`; zones with other characters than a plain id has are encoded, so none leaves the folder. */
export const simulatedSiteFile = (dir: string, zone: string): string => join(dir, `${encodeId(zone)}.sqlite`);

/** Sites of the zones of one process, made when first asked for. */
export const createSimulatedSites = (options: SimulatedSitesOptions): SimulatedSites => {
  const channel =
    options.inline === true
      ? createInlineSiteChannel(() => options.clock.monotonicMs())
      : createSiteChannel();
  const sites = new Map<string, SimulatedSite>();
  const { dir, ...shared } = options;
  return {
    of: (zone) => {
      const known = sites.get(zone);
      if (known !== undefined) return known;
      const made = createSimulatedSite({ ...shared, zone, file: simulatedSiteFile(dir, zone), channel });
      sites.set(zone, made);
      return made;
    },
    close: async () => {
      await Promise.all([...sites.values()].map((site) => site.close()));
      await channel.close();
    },
  };
};
