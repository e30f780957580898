import {
  erasureOf,
  RETENTION_ID,
  type RetentionCommand,
  type RetentionState,
} from '../../domain/audit/retention.ts';
import { retentionAggregate } from '../../domain/kinds.ts';
import type { CommandOutcome, CommandRunner } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext, type CommandContext } from '../log/metadata.ts';
import type { KeyStore, Runtime } from '../ports.ts';

/**
 * Erasure of a person's data by destroying the key: what was to happen is an event first, so that a crash
 * between the event and the key is made up for; that it has happened is an event afterwards, which has the read models
 * show what they held in clear as erased.
 */
export type Erasures = {
  /**
   * Begins, destroys, records. Refused while a legal hold keeps the data (LEGAL_HOLD). Where an earlier erasure has
   * left
   * nothing to destroy it does nothing, and `already` is that erasure's id.
   */
  erase(
    wanted: {
      readonly subjectId: string;
      readonly tenant: string;
      /** All tenants in whose history the subject appears: a hold over any of them keeps the data. */
      readonly tenants?: readonly string[];
      readonly reason: string;
      readonly requestId?: string;
    },
    context: CommandContext,
  ): Promise<CommandOutcome<RetentionState> & { readonly already?: string }>;
  /** Places or releases a hold. */
  hold(
    command: Extract<RetentionCommand, { type: 'PlaceLegalHold' | 'ReleaseLegalHold' }>,
    context: CommandContext,
  ): Promise<CommandOutcome<RetentionState>>;
  /** Holds that stand and erasures that are not complete. */
  state(): Promise<RetentionState>;
  /** Completes what a crash left; returns how many. Repeating it does no harm. */
  finish(): Promise<number>;
};

export const createErasures = ({
  runner,
  keys,
  clock,
  logger,
}: {
  readonly runner: CommandRunner;
  /** `destroy` also forgets what was made with the key (`PersonalMetadata.erase`). */
  readonly keys: Pick<KeyStore, 'destroy' | 'has'>;
} & Pick<Runtime, 'clock' | 'logger'>): Erasures => {
  const execute = (command: RetentionCommand, context: CommandContext) =>
    runner.execute(retentionAggregate, RETENTION_ID, command, context);
  const state = async (): Promise<RetentionState> =>
    (await runner.load(retentionAggregate, RETENTION_ID)).state;

  const complete = async (
    { erasureId, subjectId }: { readonly erasureId: string; readonly subjectId: string },
    context: CommandContext,
  ): Promise<CommandOutcome<RetentionState>> => {
    await keys.destroy(subjectId);
    return execute(
      { type: 'CompleteErasure', at: clock.now(), erasureId },
      { ...context, commandId: derivedCommandId(erasureId, 'complete'), requestHash: erasureId },
    );
  };

  return {
    state,
    hold: execute,
    erase: async (wanted, context) => {
      const erasureId = context.commandId;
      const hasKey = await keys.has(wanted.subjectId);
      const begun = await execute(
        { type: 'BeginErasure', at: clock.now(), erasureId, hasKey, ...wanted },
        context,
      );
      if (begun.outcome === 'rejected') return begun;
      const pending = (await state()).pending.some((each) => each.erasureId === erasureId);
      const already = erasureOf(begun.loaded.state, wanted.subjectId);
      if (!begun.replayed && !pending && already !== undefined) return { ...begun, already };
      // A repetition after the end: by now the person may have a new key.
      if (begun.replayed && !pending) return begun;
      return complete({ erasureId, subjectId: wanted.subjectId }, context);
    },
    finish: async () => {
      const { pending } = await state();
      for (const erasure of pending) {
        const { tenant } = erasure;
        const context = systemContext(erasure.erasureId, 'repair', {
          tenant,
          causationId: erasure.erasureId,
        });
        await complete(erasure, context);
        logger.info({ erasure: erasure.erasureId }, 'interrupted erasure complete');
      }
      return pending.length;
    },
  };
};
