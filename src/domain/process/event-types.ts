import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, jsonObject, text, time, typesOf } from '../schemas.ts';

/** Registry entries of the run streams of every workflow (events.ts). */
const attempt = { effectId: text, attempt: z.int().min(1) };
const failure = { reason: text, message: text };
const objectVersion = z.object({ uid: text, resourceVersion: text });

export const processEventTypes: readonly EventType[] = typesOf({ context: 'process', audience: 'provider' }, [
  [
    'RunStarted',
    { workflow: text, runId: text, tenant: text, revision: count, facts: jsonObject },
    // What it knows of its subject stands in the subject's own events, with their own rules of who may see it.
    { audience: 'internal' },
  ],
  ['RunInputTaken', { type: text, revision: count, facts: jsonObject }, { audience: 'internal' }],
  ['EffectStarted', { ...attempt, epoch: count }],
  ['EffectSucceeded', { ...attempt, result: jsonObject }],
  ['EffectFailed', { ...attempt, ...failure, notBefore: time }],
  ['EffectRefused', { ...attempt, ...failure }],
  ['EffectOutcomeUnknown', { ...attempt, ...failure }],
  ['EffectStalled', { effectId: text, attempts: z.int().min(1), ...failure }],
  ['TimerScheduled', { timerId: text, dueAt: time }],
  ['TimerCancelled', { timerId: text }],
  ['TimerFired', { timerId: text }],
  ['CommandAccepted', { key: text }, { audience: 'internal' }],
  ['CommandRefused', { key: text, code: text, message: text }],
  ['StepsAssigned', { hub: text, rules: z.record(z.string(), z.enum(['ledger', 'hub', 'none'])) }],
  [
    'ObservationTaken',
    {
      number: count,
      assessment: jsonObject,
      version: objectVersion.extend({ hosted: objectVersion.exactOptional() }).optional(),
    },
  ],
  [
    'AutomationJobSeen',
    {
      purpose: z.enum(['provision', 'deprovision']),
      job: text,
      state: text,
      vanished: z.literal(true).exactOptional(),
      outputTail: text.exactOptional(),
    },
    // The cluster's own AutomationJobChanged says it to people.
    { audience: 'internal' },
  ],
  ['RunClosed', { outcome: z.enum(['cancelled', 'deleted']) }],
]);
