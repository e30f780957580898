import type { EventStore } from '../../../src/app/log/event-store.ts';
import { writeOrdersFor } from './order-history.ts';
import { processorMs, threadProcessorMs } from './report.ts';

/** Somebody who keeps the tree. */
export type TreeKeeper = { readonly caughtUp: () => Promise<void>; readonly close: () => Promise<void> };

const CLIENTS = 32;
/** Thread of read models that no write waits for. */
const TREE_THREAD = 'views';
/** Code that was just loaded is slow: a service has long left that behind. Less where less is measured. */
const MOST_WARM_UP_SECONDS = 1;

/**
 * Events per second that clients append to the log, with and without somebody who keeps the tree, in turns: what else the
 * machine does falls on both. Orders as in `writeOrders`; `keepTree` begins with the log as it is.
 */
export const measureAppends = async (
  store: EventStore,
  keepTree: () => Promise<TreeKeeper>,
  { seconds, repeat }: { readonly seconds: number; readonly repeat: number },
  note: (name: string, value: number) => void,
): Promise<void> => {
  const rates: Record<'without' | 'with', number[]> = { without: [], with: [] };
  for (let n = 0; n < repeat; n += 1)
    for (const how of n % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)) {
      const keeper = how === 'with' ? await keepTree() : undefined;
      await keeper?.caughtUp();
      await writeOrdersFor(store, Math.min(seconds, MOST_WARM_UP_SECONDS), CLIENTS);
      await keeper?.caughtUp();
      const [all, tree] = [processorMs(process.pid), threadProcessorMs(TREE_THREAD)];
      const events = await writeOrdersFor(store, seconds, CLIENTS);
      await keeper?.caughtUp();
      rates[how].push(events / seconds);
      note(`appends ${how} the tree: events/s`, events / seconds);
      note(
        `appends ${how} the tree: processor µs per event`,
        ((processorMs(process.pid) - all) * 1000) / events,
      );
      if (keeper !== undefined)
        note(
          'the tree itself: processor µs per event',
          ((threadProcessorMs(TREE_THREAD) - tree) * 1000) / events,
        );
      await keeper?.close();
    }
  note('appends: % lost by the tree, medians', 100 * (1 - median(rates.with) / median(rates.without)));
};

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const [low = Number.NaN, high = Number.NaN] = [
    sorted[Math.floor((sorted.length - 1) / 2)],
    sorted[Math.ceil((sorted.length - 1) / 2)],
  ];
  return (low + high) / 2;
};
