import type { CommandOutcome } from './command.ts';
import { IdempotencyMismatch } from './command.ts';
import { OutcomeUnknown, StoreUnavailable } from '../log/event-store.ts';

/** How a command ended, for metrics. */
export type CommandResultName =
  | 'accepted'
  | 'replayed'
  | 'unchanged'
  | 'rejected'
  | 'mismatch'
  | 'unknown'
  | 'unavailable'
  | 'failed';

export const resultName = (outcome: CommandOutcome<unknown>): CommandResultName => {
  if (outcome.outcome === 'rejected') return 'rejected';
  if (outcome.replayed) return 'replayed';
  return outcome.events.length === 0 ? 'unchanged' : 'accepted';
};

export const errorName = (error: unknown): CommandResultName => {
  if (error instanceof OutcomeUnknown) return 'unknown';
  if (error instanceof StoreUnavailable) return 'unavailable';
  return error instanceof IdempotencyMismatch ? 'mismatch' : 'failed';
};
