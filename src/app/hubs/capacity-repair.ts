import { holderKey, type Holder } from '../../domain/holder.ts';
import { claimedBy } from '../../domain/hubs/capacity.ts';
import type { CommandOutcome, CommandRunner } from '../commands/command.ts';
import type { Holders } from './holders.ts';
import type { HubRegistry } from './hub-registry.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';
import type { Clock, Logger, Timers } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import { createSlices } from '../fairness/slicer.ts';
import { hubCapacity } from './scheduler.ts';

/** Milliseconds between two looks at what is held. */
const LOOK_MS = 60_000;
/** Looks until the states of holders that are not over are read too, for those that were withdrawn: once an hour. */
const LOOKS_TO_THOROUGH = 60;

export type RepairPorts = {
  readonly commandRunner: Pick<CommandRunner, 'execute' | 'peek'>;
  readonly holders: Pick<Holders, 'isOver' | 'ownerOf'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};
type Held = {
  readonly holder: Holder;
  /** Undefined: it keeps it after all. */
  readonly giveBack: () => Promise<CommandOutcome<unknown> | undefined>;
  /** Whether it is held for one that lives on and has its like elsewhere. Absent: it is not. */
  readonly isStray?: () => Promise<boolean>;
};

/**
 * Gives back what is held for objects that are over, of whatever kind. An order releases what it can see; a claim whose
 * answer was lost may be stored after that, when the network brings it late or a suspended instance repeats it, and by then
 * nobody else looks. Runs until the signal is aborted; only for the owner of the processes, and two at once do no harm.
 */
export const repairHeld = async <Place>(
  what: string,
  places: () => Iterable<Place>,
  heldAt: (place: Place) => Promise<readonly Held[]>,
  { holders, clock, timers, logger, signal }: RepairPorts,
): Promise<void> => {
  const slice = createSlices(clock);

  const look = async (place: Place, isThorough: boolean): Promise<void> => {
    for (const { holder, giveBack, isStray } of await heldAt(place)) {
      const asked = { isOver: false as ReturnType<Holders['isOver']> };
      await slice(() => {
        asked.isOver = holders.isOver(holder, signal, isThorough);
      });
      const isOver = await asked.isOver;
      if (!isOver && (await isStray?.()) !== true) continue;
      const done = await giveBack();
      if (done?.outcome === 'accepted' && done.events.length > 0)
        logger.info(
          { kind: holder.kind, order: holder.id },
          isOver ? `${what} of a closed or withdrawn order given back` : `${what} held twice given back`,
        );
    }
  };

  const later = (error: unknown): void => {
    if (!signal.aborted) logger.warn({ err: error }, `${what} check failed; retrying later`);
  };

  for (let looks = 1; !signal.aborted; looks += 1) {
    // What lists the places may break down as well: that must not end what runs beside it.
    try {
      for (const place of places()) {
        if (signal.aborted) return;
        await look(place, looks % LOOKS_TO_THOROUGH === 0).catch(later);
      }
    } catch (error) {
      later(error);
    }
    await pause(timers, LOOK_MS, signal);
  }
};

/**
 * Two instances that both place an order, one of them about to be relieved, may choose different hubs; the order is on
 * the one that was recorded. What it holds on another is given back once two looks in a row have found both.
 */
export const repairCapacity = ({
  registry,
  ...ports
}: RepairPorts & {
  readonly holders: Holders;
  readonly registry: Pick<HubRegistry, 'hubs' | 'tenantOf'>;
}): Promise<void> => {
  const { commandRunner, holders, clock, signal } = ports;
  const found = { once: new Set<string>(), twice: new Set<string>(), twiceBefore: new Set<string>() };
  return repairHeld(
    'capacity',
    () => {
      found.twiceBefore = found.twice;
      [found.once, found.twice] = [new Set(), new Set()];
      return registry.hubs();
    },
    async (of) => {
      const hub = of.facts.id;
      const { state, revision } = await commandRunner.peek(hubCapacity, hub, { signal });
      const isTwice = (holder: Holder): boolean => {
        const key = holderKey(holder);
        (found.once.has(key) ? found.twice : found.once).add(key);
        return found.twiceBefore.has(key);
      };
      return claimedBy(state).map((holder) => ({
        holder,
        ...(isTwice(holder)
          ? {
              isStray: async () => {
                const home = await holders.hubOf(holder, signal);
                return home !== '' && home !== hub;
              },
            }
          : {}),
        giveBack: async () => {
          // Those that hold a place are counted by the tenant that it was reserved for.
          const { tenant, project } = (await holders.ownerOf(holder, signal)) ?? of;
          const owner = { tenant: registry.tenantOf(hub, holder) ?? tenant, project };
          const commandId = derivedCommandId('capacity-repair', hub, holderKey(holder), revision);
          const command = { type: 'ReleaseCapacity', at: clock.now(), holder } as const;
          const context = { ...hubContext(commandId, 'capacity-repair', hub, owner), signal };
          return commandRunner.execute(hubCapacity, hub, command, context, { step: true });
        },
      }));
    },
    ports,
  );
};
