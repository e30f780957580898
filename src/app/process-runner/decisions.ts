import { hash } from 'node:crypto';
import type { JsonObject } from '../../domain/json.ts';
import type { PendingEffect, WorkflowInput } from '../../domain/workflow.ts';
import type { RecordedEvent } from '../event-store.ts';
import type { EventMetadata } from '../metadata.ts';
import type { Actor } from './actor.ts';
import { askedIn, EFFECT_STARTED, isTaken, type Run } from './run.ts';
import type { InputRef } from './run-index.ts';
import type { AppendCause } from './run-log.ts';
import type { RunsOptions } from './runs-options.ts';

/** A conflict means that another runner works on this run; after so many in a row something is wrong. */
const MAX_CONFLICTS = 50;

/** What a run decides on one input, and the record of it. All reject when it cannot be recorded. */
export type Decisions = {
  /** Decide, append; on a conflict decide again on what is there now. */
  decide(actor: Actor, run: Run, why: AppendCause, input: (now: string) => WorkflowInput): Promise<void>;
  decideEvent(actor: Actor, run: Run, ref: InputRef, recorded: RecordedEvent): Promise<void>;
  decideObservation(actor: Actor, run: Run, observation: JsonObject): Promise<void>;
  /** False: another runner was first. */
  recordStart(actor: Actor, run: Run, effect: PendingEffect): Promise<boolean>;
};

export const createDecisions = ({
  log,
  codec,
  clock,
  steady,
  failpoint,
  epoch,
  instance,
}: Pick<
  RunsOptions,
  'log' | 'codec' | 'clock' | 'steady' | 'failpoint' | 'epoch' | 'instance'
>): Decisions => {
  const decide = async (
    actor: Actor,
    run: Run,
    why: AppendCause,
    input: (now: string) => WorkflowInput,
  ): Promise<void> => {
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
      if (why.ref !== undefined && isTaken(run, why.ref)) return;
      // Another runner may have closed it since this item was put in the mailbox, or since the conflict.
      if (run.revision >= 0 && run.workflow.isClosed(run.state)) return;
      const offset = steady.offset();
      const events = run.workflow.decide(run.state, input(clock.now()));
      if (events.length === 0) return;
      if ((await log.append(run, events, why)) === 'appended') {
        actor.offset = offset;
        return;
      }
    }
    throw new Error(`${MAX_CONFLICTS} conflicts in a row on ${run.key}`);
  };

  const decideEvent = async (
    actor: Actor,
    run: Run,
    ref: InputRef,
    recorded: RecordedEvent,
  ): Promise<void> => {
    const metadata = recorded.metadata as unknown as EventMetadata;
    if (run.revision < 0) {
      run.tenant = metadata.tenant;
      run.project = metadata.project;
      run.correlationId = metadata.correlationId;
    }
    const { type, data } = codec.decode(recorded);
    const { stream, revision, position } = recorded;
    const { tenant } = metadata;
    const event = { type, data: data as JsonObject, stream, revision, position, tenant };
    const why: AppendCause = {
      name: type,
      identity: ['event', recorded.id],
      causationId: recorded.id,
      ref,
      // What the service did by itself belongs to what it was asked for before.
      ...(metadata.actor.authMethod !== 'internal' && { asked: askedIn(metadata) }),
    };
    await decide(actor, run, why, (now) => ({ kind: 'event', event, now }));
  };

  const decideObservation = (actor: Actor, run: Run, observation: JsonObject): Promise<void> => {
    const digest = hash('sha256', JSON.stringify(observation), 'hex');
    return decide(actor, run, cause(run, 'observation', digest), (now) => ({
      kind: 'observation',
      observation,
      now,
    }));
  };

  const recordStart = async (actor: Actor, run: Run, effect: PendingEffect): Promise<boolean> => {
    const { effectId, attempt } = effect;
    const before = run.started[effectId];
    if (before !== undefined && before.attempt >= attempt) {
      throw new Error(
        `attempt ${attempt} of ${effectId} was started before; its workflow must count attempts`,
      );
    }
    const started = { type: EFFECT_STARTED, data: { at: clock.now(), effectId, attempt, epoch } };
    const offset = steady.offset();
    await failpoint('before-effect-started');
    // The instance is part of the identity: two runners that start the same attempt must not both succeed.
    const outcome = await log.append(run, [started], cause(run, 'start-effect', effectId, attempt, instance));
    if (outcome === 'conflict') return false;
    actor.offset = offset;
    await failpoint('after-effect-started');
    return true;
  };

  return { decide, decideEvent, decideObservation, recordStart };
};

/** Why a run appends, and what makes that the same when it is tried again. */
export const cause = (run: Run, name: string, ...identity: readonly (string | number)[]): AppendCause => ({
  name,
  identity: [name, ...identity],
  causationId: run.lastEventId,
});
