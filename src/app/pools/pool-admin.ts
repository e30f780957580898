import type { DomainEvent, Rejection } from '../../domain/decider.ts';
import { poolSpaceAggregate } from '../../domain/kinds.ts';
import { claimedRanges, type PoolSize } from '../../domain/pools/pool.ts';
import type { PoolSpaceCommand } from '../../domain/pools/pool-space.ts';
import type { CommandContext, CommandOutcome, CommandRunner, Loaded } from '../commands/command.ts';
import type { ExpectedRevision } from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import type { AnyDefinition, AnyPoolCommand, AnyPoolState, PoolKind } from './pool-kinds.ts';

type Outcome = Promise<CommandOutcome<AnyPoolState>>;

/** What operators do to pools. */
export type PoolAdmin = {
  create(
    kind: PoolKind,
    id: string,
    definition: AnyDefinition,
    reason: string,
    context: CommandContext,
  ): Outcome;
  resize(
    kind: PoolKind,
    id: string,
    size: Partial<PoolSize>,
    reason: string,
    context: CommandContext,
  ): Outcome;
  retire(kind: PoolKind, id: string, reason: string, context: CommandContext): Outcome;
};

const revisionOf = (revision: ExpectedRevision): number => (revision === 'no_stream' ? -1 : revision);

/**
 * Ranges are reserved in the space of the pool's fabric or VRF before the pool's own stream says them, and settled
 * there afterwards. A crash in between leaves a reservation. Who meets it settles it by what the pool's stream says.
 */
export const createPoolAdmin = ({
  commandRunner,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
}): PoolAdmin => {
  const inSpace = (space: string, command: PoolSpaceCommand, context: CommandContext, ...of: number[]) =>
    commandRunner.execute(
      poolSpaceAggregate,
      space,
      command,
      { ...context, commandId: derivedCommandId(context.commandId, command.type, command.pool, ...of) },
      { step: true },
    );

  /** True when the space knew something else; undefined: no pool of this id was created. */
  const settle = async (
    kind: PoolKind,
    space: string,
    pool: string,
    context: CommandContext,
    round = 0,
  ): Promise<boolean | undefined> => {
    const { state, revision } = await commandRunner.peek(kind.aggregate, pool);
    if (revision === 'no_stream') return undefined;
    const at = clock.now();
    const ranges = claimedRanges(kind.rules, state, at);
    const command = { type: 'SettlePoolSpace', at, pool, revision, ranges } as const;
    const settled = await inSpace(space, command, context, revision, round);
    return settled.outcome === 'accepted' && settled.events.length > 0;
  };

  const reserve = async (
    kind: PoolKind,
    pool: string,
    { state, revision }: Loaded<AnyPoolState>,
    event: DomainEvent | undefined,
    context: CommandContext,
  ): Promise<Rejection | undefined> => {
    const data = (event?.data ?? {}) as Partial<AnyDefinition>;
    const { ranges } = data;
    // A retirement takes nothing.
    if (ranges === undefined) return undefined;
    const space = kind.spaceOf(state.pool?.definition ?? (data as AnyDefinition));
    const base = revisionOf(revision);
    const command = { type: 'ReservePoolSpace', at: clock.now(), pool, base, ranges } as const;
    for (let round = 0; ; round += 1) {
      const reserved = await inSpace(space, command, context, base, round);
      if (reserved.outcome === 'accepted') return undefined;
      const { rejection } = reserved;
      const other = rejection.facts?.['pool'];
      if (typeof other !== 'string') return rejection;
      const changed = await settle(kind, space, other, context, round + 1);
      if (changed === undefined) return unfinished(rejection, other);
      if (!changed) return rejection;
    }
  };

  const execute = async (
    kind: PoolKind,
    pool: string,
    command: AnyPoolCommand,
    context: CommandContext,
  ): Outcome => {
    const outcome = await commandRunner.execute(kind.aggregate, pool, command, context, {
      beforeAppend: (loaded, [event]) => reserve(kind, pool, loaded, event, context),
    });
    const { definition } = outcome.loaded.state.pool ?? {};
    if (outcome.outcome === 'accepted' && definition !== undefined)
      await settle(kind, kind.spaceOf(definition), pool, context);
    return outcome;
  };

  return {
    create: (kind, id, definition, reason, context) =>
      execute(kind, id, { type: 'CreatePool', at: clock.now(), reason, definition }, context),
    resize: (kind, id, size, reason, context) =>
      execute(kind, id, { type: 'ResizePool', at: clock.now(), reason, size }, context),
    retire: (kind, id, reason, context) =>
      execute(kind, id, { type: 'RetirePool', at: clock.now(), reason }, context),
  };
};

const unfinished = (rejection: Rejection, pool: string): Rejection => ({
  ...rejection,
  message: `${rejection.message}; the creation of '${pool}' was not finished: create it first, then resize or retire it`,
});
