import { isRejection, type Rejection } from '../../domain/decider.ts';
import type { Holder } from '../../domain/holder.ts';
import { aggregateOf, lenderOf, type AnyKind } from '../../domain/kinds.ts';
import type { ResourceView } from '../../domain/resource.ts';
import type { Names } from '../names/names.ts';
import type { Clock } from '../ports.ts';
import type { CommandContext, CommandRunner } from './command.ts';

/**
 * What an object holds of others from before its first event on (`ResourceKind.takes`), without transactions over
 * several streams:
 * 1. Every attempt to create it first reads its stream, then claims anew in the stream of the one that lends, then
 *    appends its first event at exactly the revision that it read. So it relies on no claim but its own.
 * 2. Whoever takes a claim back from an object that may still be written first moves that object's stream on
 *    (`CreationAbandoned`), so that the append of step 1 fails, and releases exactly the generation that it had read
 *    (`hubs/taking-repair.ts`).
 */
type AnyLender = NonNullable<ReturnType<typeof lenderOf>>;
export type Taking = { readonly lender: AnyLender; readonly id: string; readonly generation: number };

export const createTakings = ({
  runner,
  names,
  clock,
}: {
  readonly runner: CommandRunner;
  readonly names: Names;
  readonly clock: Clock;
}) => {
  const tell = async (
    lender: AnyLender,
    id: string,
    command: { readonly type: string },
    context: CommandContext,
  ) => runner.execute(aggregateOf(lender), id, command, names.step(context), { step: true });

  return {
    /** All that the object takes, or why it cannot have it; then it has nothing. */
    take: async (
      kind: AnyKind,
      after: Extract<ResourceView, { exists: true }>,
      context: CommandContext,
      note: (taking: Taking) => void,
    ): Promise<Rejection | undefined> => {
      const holder: Holder = { kind: kind.kind, id: after.id };
      for (const { kind: of, id, wanted } of kind.takes?.(after.document) ?? []) {
        const lender = lenderOf(of);
        if (lender?.lends === undefined) throw new TypeError(`objects of kind ${of} lend nothing`);
        const claim = lender.lends.claim(clock.now(), holder, wanted, context.commandId);
        const outcome = await tell(lender, id, claim, context);
        if (outcome.outcome === 'rejected') return outcome.rejection;
        const generation = lender.lends.heldBy(outcome.loaded.state, holder);
        if (generation !== undefined) note({ lender, id, generation });
      }
      return undefined;
    },
    giveBack: async (holder: Holder, takings: readonly Taking[], context: CommandContext): Promise<void> => {
      for (const { lender, id, generation } of takings) {
        const release = lender.lends?.release(clock.now(), holder, generation);
        if (release !== undefined) await tell(lender, id, release, context);
      }
    },
    /** What an object holds now. */
    heldBy: async (
      kind: AnyKind,
      view: Extract<ResourceView, { exists: true }>,
    ): Promise<readonly Taking[]> => {
      const holder: Holder = { kind: kind.kind, id: view.id };
      const found: Taking[] = [];
      for (const { kind: of, id } of kind.takes?.(view.document) ?? []) {
        const lender = lenderOf(of);
        if (lender?.lends === undefined) continue;
        const { state } = await runner.load(aggregateOf(lender), id);
        const generation = lender.lends.heldBy(state, holder);
        if (generation !== undefined) found.push({ lender, id, generation });
      }
      return found;
    },
  };
};

/** Why an object could not take what it takes; nothing is claimed. For a dry run. */
export const takingRejection = async (
  runner: Pick<CommandRunner, 'load'>,
  kind: Pick<AnyKind, 'kind' | 'takes'>,
  after: Extract<ResourceView, { exists: true }>,
  at: string,
): Promise<Rejection | undefined> => {
  for (const { kind: of, id, wanted } of kind.takes?.(after.document) ?? []) {
    const lender = lenderOf(of);
    if (lender?.lends === undefined) continue;
    const { state } = await runner.load(aggregateOf(lender), id);
    const claim = lender.lends.claim(at, { kind: kind.kind, id: after.id }, wanted, 'dry run');
    const decision = lender.decider.decide(state, claim);
    if (isRejection(decision)) return decision;
  }
  return undefined;
};
