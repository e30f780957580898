import { join } from 'node:path';
import type { ManagementClusters } from '../../../app/hubs/management-cluster.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import { isSimulatedHub } from '../../../domain/hubs/hub-facts.ts';
import { encodeId } from '../../../domain/stream-name.ts';
import { createInlineChannel, createWorkerChannel } from './channel.ts';
import { createSimulatedHub, type SimulatedHub, type SimulatedHubOptions } from './simulated-hub.ts';

export type SimulatedHubsOptions = {
  /** Folder of the hub files: `<dir>/<hub id>.sqlite`, normally `<data dir>/hubs`. */
  readonly dir: string;
  readonly clock: Clock;
  readonly timers: Timers;
  /** True: in this thread, for virtual time. Default false: one worker thread for all hubs. */
  readonly inline?: boolean;
} & Pick<SimulatedHubOptions, 'settings' | 'seed' | 'instance' | 'watchPollMs'>;

export type SimulatedHubs = ManagementClusters & {
  of(hub: { id: string; namespace: string }): SimulatedHub | undefined;
  close(): Promise<void>;
};

/** File of a hub in `dir`; ids with other characters than a plain id has are encoded, so no id leaves the folder. */
export const simulatedHubFile = (dir: string, hubId: string): string =>
  join(dir, `${encodeId(hubId)}.sqlite`);

/** Adapters of the simulated hubs of one process, made when first asked for. `of` gives undefined for other hubs. */
export const createSimulatedHubs = (options: SimulatedHubsOptions): SimulatedHubs => {
  const channel =
    options.inline === true ? createInlineChannel(() => options.clock.monotonicMs()) : createWorkerChannel();
  const hubs = new Map<string, SimulatedHub>();
  const { dir, ...shared } = options;
  return {
    of: ({ id }) => {
      if (!isSimulatedHub(id)) return undefined;
      const known = hubs.get(id);
      if (known !== undefined) return known;
      const made = createSimulatedHub({ ...shared, hubId: id, file: simulatedHubFile(dir, id), channel });
      hubs.set(id, made);
      return made;
    },
    close: async () => {
      await Promise.all([...hubs.values()].map((hub) => hub.close()));
      await channel.close();
    },
  };
};
