import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandContext } from '../commands/command.ts';
import { OutcomeUnknown, StoreUnavailable } from '../log/event-store.ts';
import { askedOf } from './run.ts';
import type { EffectCall } from './types.ts';

/** How an effect that only writes events of ours, such as a claim, gives a command. */
export const contextOf = (call: EffectCall, commandId: string): CommandContext => ({
  tenant: call.tenant,
  project: call.project,
  ...askedOf(call.workflow, call.asked ?? {}),
  commandId,
  requestHash: commandId,
  correlationId: call.correlationId,
  causationId: call.causationId,
  signal: call.signal,
});

/** Claiming twice is harmless (it is found again), so a lost answer needs nothing but another attempt. */
export const storeOutcome = (error: unknown): EffectOutcome => {
  if (error instanceof StoreUnavailable) {
    return {
      outcome: 'failed',
      reason: 'StoreUnavailable',
      message: error.message,
      retryAfterMs: error.retryAfterMs,
    };
  }
  if (error instanceof OutcomeUnknown) {
    return { outcome: 'unknown', reason: 'StoreOutcomeUnknown', message: error.message };
  }
  throw error;
};
