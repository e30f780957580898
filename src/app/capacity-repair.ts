import { holderKey, type Holder } from '../domain/holder.ts';
import { claimedBy } from '../domain/hubs/capacity.ts';
import type { CommandRunner } from './command.ts';
import type { ExpectedRevision } from './event-store.ts';
import type { HubRegistry } from './hub-registry.ts';
import { derivedCommandId } from './identifiers.ts';
import { workflowActor } from './metadata.ts';
import type { Clock, Logger, Timers } from './ports.ts';
import { pause } from './process-runner/pause.ts';
import { createSlices } from './process-runner/slices.ts';
import { hubCapacity } from './scheduler.ts';

/** Milliseconds between two looks at what is held. */
const LOOK_MS = 60_000;

/**
 * Gives back what is held for orders that are over. An order releases what it can see; a reservation whose answer was lost
 * may be stored after that, when the network brings it late or a suspended instance repeats it, and by then nobody else
 * looks. Runs until the signal is aborted; only for the owner of the processes, and two at once do no harm.
 */
export const repairCapacity = async (options: {
  readonly registry: Pick<HubRegistry, 'hubs'>;
  readonly commandRunner: Pick<CommandRunner, 'execute' | 'peek'>;
  /** True: nothing will be done for this order any more. */
  readonly isOver: (order: Holder) => boolean;
  /** On whose behalf it was reserved. */
  readonly ownerOf: (
    order: Holder,
  ) => Promise<{ readonly tenant: string; readonly project: string } | undefined>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> => {
  const { registry, commandRunner, isOver, ownerOf, clock, timers, logger, signal } = options;
  const slice = createSlices(clock);

  const giveBack = async (hub: string, holder: Holder, revision: ExpectedRevision): Promise<void> => {
    const owner = await ownerOf(holder);
    if (owner === undefined) return;
    const commandId = derivedCommandId('capacity-repair', hub, holderKey(holder), revision);
    const command = { type: 'ReleaseCapacity', at: clock.now(), holder } as const;
    const context = {
      tenant: owner.tenant,
      project: owner.project,
      actor: workflowActor('capacity-repair'),
      commandId,
      requestHash: commandId,
      correlationId: commandId,
      causationId: commandId,
      hub,
      signal,
    };
    const done = await commandRunner.execute(hubCapacity, hub, command, context, { step: true });
    if (done.outcome === 'accepted' && done.events.length > 0)
      logger.info(
        { hub, kind: holder.kind, order: holder.id },
        'capacity of an order that is over was given back',
      );
  };

  const look = async (hub: string): Promise<void> => {
    const { state, revision } = await commandRunner.peek(hubCapacity, hub, { signal });
    const over: Holder[] = [];
    for (const holder of claimedBy(state)) {
      await slice(() => {
        if (isOver(holder)) over.push(holder);
      });
    }
    for (const holder of over) await giveBack(hub, holder, revision);
  };

  while (!signal.aborted) {
    for (const { facts } of registry.hubs()) {
      if (signal.aborted) return;
      await look(facts.id).catch((error: unknown) => {
        if (!signal.aborted)
          logger.warn({ err: error, hub: facts.id }, 'capacity that a hub holds is looked at again later');
      });
    }
    await pause(timers, LOOK_MS, signal);
  }
};
