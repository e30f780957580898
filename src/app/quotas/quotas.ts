import type { Rejection } from '../../domain/decider.ts';
import type { Holder } from '../../domain/holder.ts';
import { actingKindOf } from '../../domain/acting-kinds.ts';
import { isRejection } from '../../domain/decider.ts';
import { sameJson } from '../../domain/json-tools.ts';
import { quotaAggregate, type AnyKind } from '../../domain/kinds.ts';
import type { ResourceView } from '../../domain/resource.ts';
import { grows, type Amounts } from '../../domain/quotas/amounts.ts';
import { quotaDecider, type QuotaCommand } from '../../domain/quotas/quota.ts';
import type { CommandContext, CommandRunner, Loaded } from '../commands/command.ts';
import type { ExpectedRevision, Position } from '../log/event-store.ts';
import type { Names } from '../names/names.ts';
import type { Clock } from '../ports.ts';

/**
 * What objects take of the quota of their tenant, without transactions over several streams:
 * 1. Every attempt at an event that asks for more first reads the object's stream, then reserves in `quota-<tenant>`
 *    with the revision that it read, then appends to the object's stream at exactly that revision.
 * 2. A reservation is changed by somebody else only once the object's stream has moved on from that revision, so that
 *    the append of step 1 is stored or fails. What the object's state says from then on is what it has.
 * Nothing is written for a tenant without limits: what it has is counted when it gets its first one.
 */
export type Quotas = ReturnType<typeof createQuotas>;

/** What an object has, and on whose account. */
export type Used = { readonly tenant: string; readonly amounts: Amounts; readonly settled: boolean };

/** Undefined: it is not there, or counts for nothing. */
export const usedBy = (kind: Pick<AnyKind, 'kind'>, state: unknown, view: ResourceView): Used | undefined => {
  const { quota, isWithdrawn } = actingKindOf(kind.kind) ?? {};
  if (quota === undefined || !view.exists || view.archived || isWithdrawn?.(state) === true) return undefined;
  return { tenant: view.tenant, amounts: quota.amounts(state), settled: quota.isSettled(state) };
};

/** The events ask for more than the object had. */
const asksForMore = (before: Used | undefined, after: Used | undefined): after is Used =>
  after !== undefined && (before === undefined || grows(before.amounts, after.amounts));

const seenAt = (revision: ExpectedRevision): number => (revision === 'no_stream' ? -1 : revision);

const reservation = (
  at: string,
  holder: Holder,
  { amounts }: Used,
  revision: ExpectedRevision,
  by: string,
): QuotaCommand => ({ type: 'ReserveQuota', at, holder, amounts, seen: seenAt(revision), by });

export const createQuotas = ({
  runner,
  names,
  clock,
}: {
  readonly runner: CommandRunner;
  readonly names: Pick<Names, 'step'>;
  readonly clock: Clock;
}) => {
  const tell = (tenant: string, command: QuotaCommand, step: CommandContext) =>
    runner.execute(
      quotaAggregate,
      tenant,
      command,
      { ...step, tenant, project: '' },
      { step: true, inLine: true },
    );

  return {
    /** The id of the attempt; undefined: nothing had to be reserved. */
    reserve: async (
      holder: Holder,
      before: Used | undefined,
      after: Used | undefined,
      revision: ExpectedRevision,
      context: CommandContext,
    ): Promise<Rejection | { readonly attempt: string } | undefined> => {
      if (!asksForMore(before, after)) return undefined;
      const step = names.step(context);
      const attempt = step.commandId;
      const command = reservation(clock.now(), holder, after, revision, attempt);
      const outcome = await tell(after.tenant, command, step);
      return outcome.outcome === 'rejected'
        ? outcome.rejection
        : outcome.events.length > 0
          ? { attempt }
          : undefined;
    },
    /**
     * Has the quota hold what the object has now. `own`: this attempt is over, and has appended nothing.
     * Returns the position of what it wrote.
     */
    settle: async (
      kind: Pick<AnyKind, 'kind' | 'view'>,
      id: string,
      tenant: string,
      { state, revision }: Pick<Loaded<unknown>, 'state' | 'revision'>,
      context: CommandContext,
      { own, why }: Partial<Pick<Extract<QuotaCommand, { type: 'SettleQuota' }>, 'own' | 'why'>> = {},
    ): Promise<Position | undefined> => {
      const used = usedBy(kind, state, kind.view(state));
      const outcome = await tell(
        tenant,
        {
          type: 'SettleQuota',
          at: clock.now(),
          holder: { kind: kind.kind, id },
          seen: seenAt(revision),
          why: why ?? 'ended',
          ...(used === undefined ? {} : { use: { amounts: used.amounts, settled: used.settled } }),
          ...(own === undefined ? {} : { own }),
        },
        names.step(context),
      );
      return outcome.outcome === 'accepted' && outcome.events.length > 0
        ? outcome.loaded.position
        : undefined;
    },
  };
};

/** Whether what became of an object concerns its quota. */
export const changesUse = (before: Used | undefined, after: Used | undefined): boolean =>
  !sameJson(before ?? null, after ?? null);

/** Why an object could not have what it asks for; nothing is reserved. For a dry run. */
export const quotaRejection = async (
  runner: Pick<CommandRunner, 'load'>,
  holder: Holder,
  before: Used | undefined,
  after: Used | undefined,
  revision: ExpectedRevision,
  at: string,
): Promise<Rejection | undefined> => {
  if (!asksForMore(before, after)) return undefined;
  const { state } = await runner.load(quotaAggregate, after.tenant);
  const decision = quotaDecider.decide(state, reservation(at, holder, after, revision, 'dry run'));
  return isRejection(decision) ? decision : undefined;
};
