import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { Holder } from '../../domain/holder.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defined } from '../../domain/json-tools.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { isAborted, type PlacedState } from '../../domain/placed-document.ts';
import type { CommandRunner } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import { done, effectPort, refused } from './hub-effects.ts';

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
  const parentOf = async ({ parent }: Args, { signal }: EffectCall) => {
    const kind = actingKindOf(parent.kind);
    if (kind === undefined) throw new TypeError(`nothing lies in objects of kind ${parent.kind}`);
    return { kind, ...(await commandRunner.load(aggregateOf(kind), parent.id, { signal })) };
  };

  /** In the name of the parent's tenant: the stream is the parent's, whoever's the holder is. */
  const change = async (args: Args, call: EffectCall, isClaim: boolean) => {
    const { kind, state } = await parentOf(args, call);
    const { lends } = kind;
    if (lends === undefined) throw new TypeError(`objects of kind ${kind.kind} lend nothing`);
    const { holder, wanted = {}, generation = 0 } = args;
    const at = clock.now();
    const command = isClaim ? lends.claim(at, holder, wanted) : lends.release(at, holder, generation);
    const view = kind.view(state);
    const owner = view.exists ? { tenant: view.tenant, project: view.project } : {};
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type);
    const context = { ...contextOf(call, commandId), ...owner };
    const outcome = await commandRunner.execute(aggregateOf(kind), args.parent.id, command, context, {
      step: true,
      inLine: true,
    });
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
        const { kind, state } = await parentOf(args, call);
        return done(defined({ generation: kind.lends?.heldBy(state, args.holder) }));
      },
    },
    storeOutcome,
  );
};
