import type { CommandResult, EffectOutcome, PendingCommand, PendingEffect } from '../../domain/workflow.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { CommandContext, CommandOutcome } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { pause } from './pause.ts';
import { PATIENCE_MS, Stopped, type CommandEnd, type RunLog } from './run-log.ts';
import { askedOf, type Run } from './run.ts';
import type { CommandTarget, PartOptions } from './types.ts';

/** What a command or effect needs to know of its run, taken when it starts: the run's state moves on meanwhile. */
export type WorkContext = Pick<Run, 'key' | 'runId' | 'tenant' | 'project' | 'correlationId' | 'asked'> & {
  readonly workflow: string;
  readonly causationId: string;
  readonly started: Run['started'];
};

export const contextOf = (run: Run): WorkContext => ({
  key: run.key,
  runId: run.runId,
  workflow: run.workflow.name,
  tenant: run.tenant,
  project: run.project,
  correlationId: run.correlationId,
  asked: run.asked,
  causationId: run.lastEventId,
  started: { ...run.started },
});

export type Work = {
  /** Carries out a command; waits out an unavailable store. Throws Stopped. */
  command(
    context: WorkContext,
    pending: PendingCommand,
    key: string,
  ): Promise<{ readonly result: CommandResult; readonly end: CommandEnd }>;
  /** Performs one attempt; never rejects but with Stopped at a hard stop. */
  effect(context: WorkContext, pending: PendingEffect): Promise<EffectOutcome>;
};

/** Past its deadline an effect may still end by itself: this long is waited before it is given up. */
const DEADLINE_GRACE_MS = 1_000;
const CROWDED_FIRST_MS = 20;
const CROWDED_MAX_MS = 5_000;

export const createWork = (
  options: {
    readonly log: RunLog;
    /** Aborted at a hard stop. */
    readonly signal: AbortSignal;
  } & PartOptions,
): Work => {
  const { commandRunner, aggregates, effectPorts, log, clock, timers, logger, hooks, settings, signal } =
    options;

  const targetOf = (name: string): CommandTarget => {
    const target = options.commandTargets?.[name];
    if (target !== undefined) return target;
    const aggregate = aggregates[name];
    if (aggregate === undefined) throw new TypeError(`no aggregate is called ${name}`);
    return (id, command, context) =>
      commandRunner.execute(aggregate, id, command, context, { patienceMs: PATIENCE_MS });
  };

  const execute = async (
    { aggregate, id, command }: PendingCommand,
    context: CommandContext,
  ): Promise<CommandOutcome<unknown>> => {
    const target = targetOf(aggregate);
    for (let tries = 0; ; tries += 1) {
      const done = await log.insist(() => target(id, command, context));
      // A workflow never names a revision, so this only says that others kept changing the stream.
      const crowded = done.outcome === 'rejected' && done.rejection.kind === 'conflict';
      if (!crowded) return done;
      if (signal.aborted) throw new Stopped();
      await pause(timers, Math.min(CROWDED_MAX_MS, CROWDED_FIRST_MS * 2 ** tries), signal);
    }
  };

  const command: Work['command'] = async (run, pending, key) => {
    const finished = (outcome: 'accepted' | 'rejected' | 'failed'): void =>
      hooks.commandFinished?.({
        workflow: run.workflow,
        aggregate: pending.aggregate,
        command: pending.command.type,
        outcome,
      });
    const commandId = derivedCommandId(run.key, 'command', key);
    const context: CommandContext = {
      tenant: run.tenant,
      project: run.project,
      commandId,
      // One key is one command: its first wording stands.
      requestHash: commandId,
      correlationId: run.correlationId,
      causationId: pending.cause ?? run.causationId,
      // Not the hub: what tenants may read of their orders' history names none, and is provable to them as it is.
      ...askedOf(run.workflow, run.asked),
      signal,
    };
    await options.failpoint('before-command');
    try {
      const done = await execute(pending, context);
      await options.failpoint('after-command-before-record');
      finished(done.outcome);
      const stream = streamName(aggregates[pending.aggregate]?.category ?? pending.aggregate, pending.id);
      const revision = done.loaded.revision === 'no_stream' ? -1 : done.loaded.revision;
      if (done.outcome === 'rejected') {
        const { code, message } = done.rejection;
        return { result: { accepted: false, code, message }, end: { stream, revision, events: [], context } };
      }
      // What was stored under this id before, another attempt may have led to: this one left nothing.
      const events = done.replayed ? [] : done.events;
      return {
        result: { accepted: true, changed: events.length > 0 },
        end: { stream, revision, events, context },
      };
    } catch (error) {
      finished('failed');
      throw error;
    }
  };

  const perform = async (context: WorkContext, pending: PendingEffect): Promise<EffectOutcome> => {
    const port = effectPorts[pending.port];
    if (port === undefined) {
      return { outcome: 'refused', reason: 'NoAdapter', message: `no adapter is called ${pending.port}` };
    }
    const deadlineMs = options.effectDeadlinesMs?.[pending.port] ?? settings.effectDeadlineMs;
    const firstStartedAt = context.started[pending.effectId]?.firstAt;
    const controller = new AbortController();
    const stop = (): void => controller.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    const deadline = Promise.withResolvers<EffectOutcome>();
    const cancel = timers.after(deadlineMs + DEADLINE_GRACE_MS, () => {
      controller.abort(new Error('deadline exceeded'));
      deadline.resolve(unknown('DeadlineExceeded', `no answer within ${deadlineMs} ms`));
    });
    const call = port(pending.operation, pending.args, {
      effectId: `${context.key}/${pending.effectId}`,
      attempt: pending.attempt,
      mode: pending.mode,
      deadlineMs,
      ...(firstStartedAt === undefined ? {} : { firstStartedAt }),
      signal: controller.signal,
      workflow: context.workflow,
      runId: context.runId,
      tenant: context.tenant,
      project: context.project,
      correlationId: context.correlationId,
      causationId: context.started[pending.effectId]?.id ?? context.causationId,
      asked: context.asked,
    }).catch((error: unknown) => {
      // Ports return what they expect as values; anything thrown may have happened after the far side was reached.
      if (!controller.signal.aborted) {
        logger.error(
          {
            err: error,
            run: context.key,
            effect: pending.effectId,
            tenant: context.tenant,
            correlationId: context.correlationId,
          },
          'effect port failed unexpectedly',
        );
      }
      return unknown('UnexpectedError', 'the adapter failed in an unexpected way; see the log');
    });
    try {
      return await Promise.race([call, deadline.promise]);
    } finally {
      cancel();
      signal.removeEventListener('abort', stop);
    }
  };

  return {
    command,
    effect: async (context, pending) => {
      const started = clock.monotonicMs();
      const outcome = await perform(context, pending);
      hooks.effectFinished?.({
        workflow: context.workflow,
        port: pending.port,
        operation: pending.operation,
        lane: pending.lane,
        outcome: outcome.outcome,
        ...(outcome.outcome === 'done' ? {} : { reason: outcome.reason }),
        seconds: (clock.monotonicMs() - started) / 1000,
      });
      await options.failpoint('after-effect-before-record');
      return outcome;
    },
  };
};

const unknown = (reason: string, message: string): EffectOutcome => ({ outcome: 'unknown', reason, message });
