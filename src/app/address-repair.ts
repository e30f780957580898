import type { Holder } from '../domain/holder.ts';
import { aggregateOf } from '../domain/kinds.ts';
import { holdingsOf, type Holding } from '../domain/networks/address-book.ts';
import { bookOf, externalIpPool } from '../domain/networks/external-ip-pool.resource.ts';
import type { CommandRunner } from './command.ts';
import { derivedCommandId } from './identifiers.ts';
import { hubContext } from './metadata.ts';
import type { Clock, Logger, Timers } from './ports.ts';
import { pause } from './process-runner/pause.ts';
import { createSlices } from './process-runner/slices.ts';

type Pool = { readonly id: string; readonly tenant: string; readonly project: string };

const LOOK_MS = 60_000;
const pools = aggregateOf(externalIpPool);

/**
 * Gives back the addresses of holders that are over. An external IP gives back what it knows to hold; a claim of a suspended
 * instance may be stored after that, and nobody else looks by then. Runs until the signal is aborted; only for the owner of
 * the processes, and two at once do no harm.
 */
export const repairAddresses = async (options: {
  readonly pools: () => Iterable<readonly Pool[]>;
  readonly commandRunner: Pick<CommandRunner, 'execute' | 'peek'>;
  /** Nothing will be done for this holder any more. */
  readonly isOver: (holder: Holder, signal: AbortSignal) => boolean | Promise<boolean>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> => {
  const { commandRunner, isOver, clock, timers, logger, signal } = options;
  const slice = createSlices(clock);

  const giveBack = async (pool: Pool, hub: string, { holder, generation }: Holding): Promise<void> => {
    const commandId = derivedCommandId('address-repair', pool.id, generation);
    const command = { type: 'ReleaseAddress', at: clock.now(), holder, generation } as const;
    const context = { ...hubContext(commandId, 'address-repair', hub, pool), signal };
    await commandRunner.execute(pools, pool.id, command, context, { step: true });
    logger.info({ pool: pool.id, ...holder }, 'address given back: its holder is over');
  };

  const look = async (pool: Pool): Promise<void> => {
    const { state } = await commandRunner.peek(pools, pool.id, { signal });
    for (const holding of holdingsOf(bookOf(state))) {
      let over: boolean | Promise<boolean> = false;
      await slice(() => {
        over = isOver(holding.holder, signal);
      });
      if (await over) await giveBack(pool, state.place?.hub ?? '', holding);
    }
  };

  while (!signal.aborted) {
    for (const page of options.pools())
      for (const pool of page) {
        if (signal.aborted) return;
        await look(pool).catch((error: unknown) => {
          if (!signal.aborted)
            logger.warn({ err: error, pool: pool.id }, 'address repair failed; retrying in 1 min');
        });
      }
    await pause(timers, LOOK_MS, signal);
  }
};
