import type { DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';

/**
 * Events of a workflow run's own stream, common to every workflow (design §6). They are internal and feed the
 * timeline. Recorded are the first attempt, the first failure per reason, stalling, resuming and the end, with
 * counts; a repeated failure leaves only the `EffectStarted` of the next attempt.
 */
export type RunEvent =
  | DomainEvent<
      'RunStarted',
      {
        readonly at: string;
        readonly workflow: string;
        readonly runId: string;
        readonly tenant: string;
        /** Revision of the event that started it, in the stream that the run follows. */
        readonly revision: number;
        /** What the workflow needs to know of its subject, in its own words. */
        readonly facts: JsonObject;
      }
    >
  /** The subject changed: only the changed facts. */
  | DomainEvent<
      'RunInputTaken',
      {
        readonly at: string;
        readonly type: string;
        readonly revision: number;
        readonly facts: JsonObject;
      }
    >
  /** Appended by the process runner before it performs an effect; the loser of the race does nothing. */
  | DomainEvent<
      'EffectStarted',
      { readonly at: string; readonly effectId: string; readonly attempt: number; readonly epoch: number }
    >
  | DomainEvent<
      'EffectSucceeded',
      {
        readonly at: string;
        readonly effectId: string;
        readonly attempt: number;
        readonly result: JsonObject;
      }
    >
  /** First failure of this reason: it certainly did not happen and is tried again, not before `notBefore`. */
  | DomainEvent<
      'EffectFailed',
      {
        readonly at: string;
        readonly effectId: string;
        readonly attempt: number;
        readonly reason: string;
        readonly message: string;
        readonly notBefore: string;
      }
    >
  /** Will never succeed as it is; nothing happens until an operator retries or the order is deleted. */
  | DomainEvent<
      'EffectRefused',
      {
        readonly at: string;
        readonly effectId: string;
        readonly attempt: number;
        readonly reason: string;
        readonly message: string;
      }
    >
  /** May have happened: the next thing is to look, not to repeat. */
  | DomainEvent<
      'EffectOutcomeUnknown',
      {
        readonly at: string;
        readonly effectId: string;
        readonly attempt: number;
        readonly reason: string;
        readonly message: string;
      }
    >
  /** More attempts than the step's row allows: reported to people, tried on at the longest interval. */
  | DomainEvent<
      'EffectStalled',
      {
        readonly at: string;
        readonly effectId: string;
        readonly attempts: number;
        readonly reason: string;
        readonly message: string;
      }
    >
  | DomainEvent<'TimerScheduled', { readonly at: string; readonly timerId: string; readonly dueAt: string }>
  | DomainEvent<'TimerCancelled', { readonly at: string; readonly timerId: string }>
  | DomainEvent<'TimerFired', { readonly at: string; readonly timerId: string }>
  | DomainEvent<'CommandAccepted', { readonly at: string; readonly key: string }>
  | DomainEvent<
      'CommandRefused',
      { readonly at: string; readonly key: string; readonly code: string; readonly message: string }
    >
  /** Which rule applied to each step that can be the hub's or ours: `ledger`, `hub` or `none` (design §6). */
  | DomainEvent<
      'StepsAssigned',
      {
        readonly at: string;
        readonly hub: string;
        readonly rules: { readonly [step: string]: 'ledger' | 'hub' | 'none' };
      }
    >
  /** What the far side showed, reduced to what matters; recorded only when it differs from the last one. */
  | DomainEvent<
      'ObservationTaken',
      {
        readonly at: string;
        readonly number: number;
        readonly assessment: JsonObject;
        /** Which state of which object, and of the one beside it; absent when there is none, or it does not say. */
        readonly version?: {
          readonly uid: string;
          readonly resourceVersion: string;
          readonly hosted?: { readonly uid: string; readonly resourceVersion: string };
        };
      }
    >
  /** aap: what the automation platform showed of a job that we launched; recorded when its state changed. */
  | DomainEvent<
      'AutomationJobSeen',
      {
        readonly at: string;
        readonly purpose: 'provision' | 'deprovision';
        readonly job: string;
        readonly state: string;
        /** The platform no longer has a record of it. */
        readonly vanished?: true;
        readonly outputTail?: string;
      }
    >
  | DomainEvent<'RunClosed', { readonly at: string; readonly outcome: 'cancelled' | 'deleted' }>;
