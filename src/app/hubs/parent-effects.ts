import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { Holder } from '../../domain/holder.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defined } from '../../domain/json-tools.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { isAborted, type PlacedState } from '../../domain/placed-document.ts';
import type { CommandRunner } from '../commands/command.ts';
import type { Clock } from '../ports.ts';
import { storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import { done, effectPort, refused } from './hub-effects.ts';
import { createLenders } from './lenders.ts';

type Args = {
  readonly parent: Holder;
  readonly holder: Holder;
  readonly wanted?: JsonObject;
  readonly generation?: number;
};

/**
 * Effect port `parents`: what an object asks of the one that it lies in. All of it may be repeated.
 *
 * - `place` {parent} → {place, state}: where the parent is and what it shows; null: nowhere yet, or it was aborted and
 *   leaves its hub.
 * - `claim` {parent, holder, wanted} → {generation}: what the holder has of it; most often from its creation on.
 * - `release` {parent, holder, generation?} → {}: gives back what the holder was given as this generation.
 * - `look` {parent, holder} → {generation?}
 */
export const createParentEffects = ({
  commandRunner,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
}): EffectPort => {
  const { lenderOf, tell } = createLenders(commandRunner);
  const parentOf = async ({ parent }: Args, { signal }: EffectCall) => {
    const kind = actingKindOf(parent.kind);
    if (kind === undefined) throw new TypeError(`nothing lies in objects of kind ${parent.kind}`);
    return { kind, ...(await commandRunner.load(aggregateOf(kind), parent.id, { signal })) };
  };

  const change = async (args: Args, call: EffectCall, isClaim: boolean) => {
    const lender = await lenderOf(args.parent, call);
    const { holder, wanted = {}, generation = 0 } = args;
    const at = clock.now();
    const { lends } = lender;
    const command = isClaim ? lends.claim(at, holder, wanted) : lends.release(at, holder, generation);
    const outcome = await tell(lender, command, call);
    if (outcome.outcome === 'rejected') return refused(outcome.rejection.code, outcome.rejection.message);
    return done(isClaim ? defined({ generation: lends.heldBy(outcome.loaded.state, holder) }) : {});
  };

  return effectPort(
    {
      place: async (args: Args, call: EffectCall) => {
        const { kind, state } = await parentOf(args, call);
        const view = kind.view(state);
        const placed = state as PlacedState;
        return done({
          place: (isAborted(placed) ? undefined : placed.place) ?? null,
          state: (view.exists && !view.archived && view.state) || '',
        });
      },
      claim: (args: Args, call: EffectCall) => change(args, call, true),
      release: async (args: Args, call: EffectCall) =>
        args.generation === undefined ? done({}) : change(args, call, false),
      look: async (args: Args, call: EffectCall) => {
        const { lends, state } = await lenderOf(args.parent, call);
        return done(defined({ generation: lends.heldBy(state, args.holder) }));
      },
    },
    storeOutcome,
  );
};
