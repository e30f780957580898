import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, jsonObject, text, time, typesOf, type Shapes } from '../schemas.ts';

const attempts = z.int().min(1);
const effect = { effectId: text, attempt: attempts };
const failure = { reason: text, message: text };
const decision = { by: text, reason: text };

/**
 * Events of a run's own stream, the same for every workflow: what was tried, and what people decided. A
 * failure is recorded once per reason; a repeated one leaves only the `EffectStarted` of the next attempt.
 */
export const RUN_EVENT_SHAPES = {
  /** Appended by the process runner before it performs an effect; the loser of the race does nothing. */
  EffectStarted: { ...effect, epoch: count, facts: jsonObject.exactOptional() },
  /** Only where the subject's stream does not hold the success. */
  EffectSucceeded: { ...effect, result: jsonObject },
  /** First failure of this reason: it certainly did not happen and is tried again, not before `notBefore`. */
  EffectFailed: { ...effect, ...failure, notBefore: time },
  /** Will never succeed as it is; nothing happens until an operator retries or the subject is deleted. */
  EffectRefused: { ...effect, ...failure },
  /** May have happened: the next thing is to look, not to repeat. */
  EffectOutcomeUnknown: { ...effect, ...failure },
  /** A look showed whether an attempt without an answer has happened, or that it happened after all. */
  EffectSettled: { ...effect, found: z.boolean() },
  /** More attempts than the step's row allows: reported to people, tried on at the longest interval. */
  EffectStalled: { effectId: text, attempts, ...failure },
  TimerFired: { timerId: text },
  /** Once per step and code. */
  CommandRefused: { key: text, code: text, message: text },
  RunRetried: decision,
  StepSkipped: { ...decision, step: text },
  StepResumed: { ...decision, step: text },
  RunAborted: decision,
} as const satisfies Shapes;

export const processEventTypes: readonly EventType[] = typesOf(
  { context: 'process', audience: 'provider' },
  RUN_EVENT_SHAPES,
);
