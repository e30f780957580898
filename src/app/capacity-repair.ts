import { holderKey, type Holder } from '../domain/holder.ts';
import { claimedBy } from '../domain/hubs/capacity.ts';
import type { CommandRunner } from './command.ts';
import type { ExpectedRevision } from './event-store.ts';
import type { Holders } from './holders.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import { derivedCommandId } from './identifiers.ts';
import { hubContext } from './metadata.ts';
import type { Clock, Logger, Timers } from './ports.ts';
import { pause } from './process-runner/pause.ts';
import { createSlices } from './process-runner/slices.ts';
import { hubCapacity } from './scheduler.ts';

/** Milliseconds between two looks at what is held. */
const LOOK_MS = 60_000;

/**
 * Gives back what is held for objects that are over, of whatever kind. An order releases what it can see; a reservation whose answer was lost
 * may be stored after that, when the network brings it late or a suspended instance repeats it, and by then nobody else
 * looks. Runs until the signal is aborted; only for the owner of the processes, and two at once do no harm.
 */
export const repairCapacity = async (options: {
  readonly registry: Pick<HubRegistry, 'hubs'>;
  readonly commandRunner: Pick<CommandRunner, 'execute' | 'peek'>;
  readonly holders: Holders;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> => {
  const { registry, commandRunner, holders, clock, timers, logger, signal } = options;
  const slice = createSlices(clock);

  const giveBack = async (of: RegisteredHub, holder: Holder, revision: ExpectedRevision): Promise<void> => {
    const hub = of.facts.id;
    const owner = (await holders.ownerOf(holder, signal)) ?? of;
    const commandId = derivedCommandId('capacity-repair', hub, holderKey(holder), revision);
    const command = { type: 'ReleaseCapacity', at: clock.now(), holder } as const;
    const context = { ...hubContext(commandId, 'capacity-repair', hub, owner), signal };
    const done = await commandRunner.execute(hubCapacity, hub, command, context, { step: true });
    if (done.outcome === 'accepted' && done.events.length > 0)
      logger.info(
        { hub, kind: holder.kind, order: holder.id },
        'capacity of an order that is over was given back',
      );
  };

  const look = async (hub: RegisteredHub): Promise<void> => {
    const { state, revision } = await commandRunner.peek(hubCapacity, hub.facts.id, { signal });
    for (const holder of claimedBy(state)) {
      const asked = { isOver: false as ReturnType<Holders['isOver']> };
      await slice(() => {
        asked.isOver = holders.isOver(holder, signal);
      });
      if (await asked.isOver) await giveBack(hub, holder, revision);
    }
  };

  while (!signal.aborted) {
    for (const hub of registry.hubs()) {
      if (signal.aborted) return;
      await look(hub).catch((error: unknown) => {
        if (!signal.aborted)
          logger.warn(
            { err: error, hub: hub.facts.id },
            'capacity that a hub holds is looked at again later',
          );
      });
    }
    await pause(timers, LOOK_MS, signal);
  }
};
