import { createBookkeeping } from '../log/bookkeeping.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type EventStore,
} from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Runtime } from '../ports.ts';

/** Outside watch, audit tree and topics: the newest divergences of all instances. */
export const CLOCK_STREAM = 'sys-clock';
const MAX_COUNT = 1_000;
const ATTEMPTS = 5;

/** Records that clock jump detected. Never throws: the divergence is in the log file as well. */
export const recordDivergence = async (
  options: {
    readonly store: EventStore;
    readonly deltaMs: number;
  } & Pick<Runtime, 'clock' | 'instance' | 'logger'>,
): Promise<void> => {
  const { store, clock, instance, logger, deltaMs } = options;
  const at = clock.now();
  const diverged = { type: 'ClockDiverged', data: { at, instance, deltaMs } } as const;
  const commandId = derivedCommandId(instance, 'clock', at, deltaMs);
  const event = createBookkeeping(instance)(CLOCK_STREAM, diverged, 'RecordDivergence', commandId);
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const expected = await store.currentRevision(CLOCK_STREAM);
      if (expected === 'no_stream') await store.setMaxCount(CLOCK_STREAM, MAX_COUNT);
      try {
        await store.append(CLOCK_STREAM, expected, [event]);
        return;
      } catch (error) {
        if (!(error instanceof WrongExpectedRevision)) throw error;
      }
    }
  } catch (error) {
    if (!(error instanceof StoreUnavailable) && !(error instanceof OutcomeUnknown)) throw error;
    logger.warn({ err: error }, 'clock jump not recorded');
  }
};
