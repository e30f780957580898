import { hash } from 'node:crypto';
import type { PendingCommand, PendingEffect, Reaction, WorkflowInput } from '../../domain/workflow.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { Actor } from './actor.ts';
import { EFFECT_STARTED, isOver, type Run } from './run.ts';
import type { AppendCause } from './run-log.ts';
import type { RunsOptions } from './runs-options.ts';
import { contextOf } from './work.ts';

/** A conflict means that another runner works on this run; after so many in a row something is wrong. */
const MAX_CONFLICTS = 50;

/** The input that a command is the reaction to. */
type Root = Exclude<WorkflowInput, { kind: 'command-result' }>;

/** What a run decides on one input, the record of it and the commands that follow. All reject when that fails. */
export type Decisions = {
  /** Decide, append, carry out; on a conflict decide again on what is there now. False: nothing followed. */
  decide(actor: Actor, run: Run, why: AppendCause, input: (now: string) => WorkflowInput): Promise<boolean>;
  /** What follows from the state by itself. */
  settle(actor: Actor, run: Run): Promise<void>;
  observe(actor: Actor, run: Run, observation: JsonObject): Promise<boolean>;
  /** Carries a command out, folds what it left in the subject and decides on its result. */
  carryOut(actor: Actor, run: Run, command: PendingCommand, to?: Root): Promise<void>;
  /** False: another runner was first. */
  recordStart(actor: Actor, run: Run, effect: PendingEffect): Promise<boolean>;
};

export const createDecisions = ({
  log,
  work,
  clock,
  steady,
  failpoint,
  epoch,
  instance,
}: RunsOptions): Decisions => {
  /** Undefined: nothing follows. */
  const record = async (
    actor: Actor,
    run: Run,
    why: AppendCause,
    inputAt: (now: string) => WorkflowInput,
  ): Promise<(Pick<Reaction, 'commands'> & { readonly input: WorkflowInput }) | undefined> => {
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
      // Another runner may have closed it since this item was put in the mailbox, or since the conflict.
      if (isOver(run)) return undefined;
      const offset = steady.offset();
      const input = inputAt(clock.now());
      const { events, commands } = run.workflow.decide(run.state, input);
      if (events.length + commands.length === 0) return undefined;
      if (events.length === 0) return { input, commands };
      if ((await log.append(run, events, why)) === 'appended') {
        actor.offset = offset;
        return { input, commands };
      }
    }
    throw new Error(`${MAX_CONFLICTS} conflicts in a row on ${run.key}`);
  };

  const decide: Decisions['decide'] = async (actor, run, why, inputAt) => {
    const reaction = await record(actor, run, why, inputAt);
    if (reaction === undefined) return false;
    const { input } = reaction;
    const to = input.kind === 'command-result' ? input.to : input;
    for (const command of reaction.commands) await carryOut(actor, run, command, to);
    return true;
  };

  const carryOut: Decisions['carryOut'] = async (actor, run, command, to) => {
    const commandKey = keyOf(run, command, to);
    actor.offset = steady.offset();
    const { result, end } = await work.command(contextOf(run), command, commandKey);
    await log.follow(run, end);
    await decide(actor, run, cause(run, 'command-result', commandKey), (now) => ({
      kind: 'command-result',
      commandKey,
      result,
      ...(to !== undefined && { to }),
      now,
    }));
  };

  const settle = async (actor: Actor, run: Run): Promise<void> => {
    const upTo = run.subjectRevision;
    await decide(actor, run, cause(run, 'settle', upTo), (now) => ({ kind: 'settle', now }));
    if (run.subjectRevision === upTo) run.unsettled = false;
  };

  const observe = (actor: Actor, run: Run, observation: JsonObject): Promise<boolean> => {
    const why = {
      ...cause(run, 'observation'),
      // Most lead to no append.
      get identity() {
        return ['observation', digestOf(observation)];
      },
    };
    return decide(actor, run, why, (now) => ({ kind: 'observation', observation, now }));
  };

  const recordStart = async (actor: Actor, run: Run, effect: PendingEffect): Promise<boolean> => {
    const { effectId, attempt, facts } = effect;
    const before = run.started[effectId];
    if (before !== undefined && before.attempt >= attempt) {
      throw new Error(
        `attempt ${attempt} of ${effectId} was started before; its workflow must count attempts`,
      );
    }
    const data = { at: clock.now(), effectId, attempt, epoch, ...(facts !== undefined && { facts }) };
    const offset = steady.offset();
    await failpoint('before-effect-started');
    // The instance is part of the identity: two runners that start the same attempt must not both succeed.
    const why = cause(run, 'start-effect', effectId, attempt, instance);
    if ((await log.append(run, [{ type: EFFECT_STARTED, data }], why)) === 'conflict') return false;
    actor.offset = offset;
    await failpoint('after-effect-started');
    return true;
  };

  return { decide, settle, observe, carryOut, recordStart };
};

/** Why a run appends, and what makes that the same when it is tried again. */
export const cause = (run: Run, name: string, ...identity: readonly (string | number)[]): AppendCause => ({
  name,
  identity: [name, ...identity],
  causationId: run.lastEventId,
});

/** Names one carrying out: the same command upon the same state of the subject has the same id. */
export const keyOf = (run: Run, { key, command }: PendingCommand, to?: Root): string =>
  key ?? `${digestOf(to?.kind === 'observation' ? to.observation : command)}@${run.subjectRevision}`;

const digestOf = (value: JsonObject): string => hash('sha256', JSON.stringify(value), 'hex');
