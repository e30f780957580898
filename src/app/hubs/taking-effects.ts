import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { Holder } from '../../domain/holder.ts';
import type { JsonObject } from '../../domain/json.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { ALREADY_ATTACHED, externalIp } from '../../domain/networks/external-ip.resource.ts';
import type { PlacedState } from '../../domain/placed-document.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandRunner } from '../commands/command.ts';
import type { Clock } from '../ports.ts';
import { storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import { done, effectPort, refused } from './hub-effects.ts';
import { createLenders } from './lenders.ts';

type Taken = { readonly kind: string; readonly id: string; readonly wanted: JsonObject };
type Args = { readonly holder: Holder; readonly takes: readonly Taken[] };

type Ends = { readonly lender: Holder; readonly target: Holder };

const ALLOCATED = 'EXTERNAL_IP_STATE_ALLOCATED';

/**
 * Effect port `takings`: what an object asks of those that lend themselves to it (`ResourceKind.takes`), whose own streams
 * decide. All of it may be repeated.
 *
 * - `attach` {holder, takes} → {address, hub}: all of it is the holder's, and the external IP among it has this address there,
 *   which what else it takes is told; or
 *   {waiting, on} with the id of what it waits for.
 * - `detach` {holder, takes} → {held: false}.
 * - `look` {holder, takes} → {held}: whether any of it is the holder's.
 * - `place` {lender, target} → {place}: where the lender is, which must be the target's hub too; or {waiting, on}.
 */
export const createTakingEffects = ({
  commandRunner,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
}): EffectPort => {
  const { lenderOf, tell } = createLenders(commandRunner);

  const attach = async ({ holder, takes }: Args, call: EffectCall): Promise<EffectOutcome> => {
    for (const taken of takes) {
      const lender = await lenderOf(taken, call);
      const claim = lender.lends.claim(clock.now(), holder, taken.wanted);
      const outcome = await tell(lender, claim, call);
      if (outcome.outcome === 'accepted') continue;
      const { code, message } = outcome.rejection;
      return code === ALREADY_ATTACHED ? done({ waiting: message, on: taken.id }) : refused(code, message);
    }
    const ip = takes.find(({ kind }) => kind === externalIp.kind);
    if (ip === undefined) return done({});
    const { view } = await lenderOf(ip, call);
    const status = view.exists ? objectAt(view.document, 'status') : {};
    if (stringAt(status, 'state') !== ALLOCATED)
      return done({ waiting: 'its external IP has no address yet', on: ip.id });
    const address = stringAt(status, 'address');
    for (const taken of takes.filter((one) => one !== ip)) {
      const target = await lenderOf(taken, call);
      await tell(
        target,
        target.lends.claim(clock.now(), holder, { ...taken.wanted, address }),
        call,
        'address',
      );
    }
    return done({ address, hub: stringAt(status, 'hub') });
  };

  const detach = async ({ holder, takes }: Args, call: EffectCall): Promise<EffectOutcome> => {
    for (const taken of takes) {
      const lender = await lenderOf(taken, call);
      const generation = lender.lends.heldBy(lender.state, holder);
      if (generation !== undefined)
        await tell(lender, lender.lends.release(clock.now(), holder, generation), call);
    }
    return done({ held: false });
  };

  const look = async ({ holder, takes }: Args, call: EffectCall): Promise<EffectOutcome> => {
    const lenders = await Promise.all(takes.map((taken) => lenderOf(taken, call)));
    const held = lenders.some(({ lends, state }) => lends.heldBy(state, holder) !== undefined);
    return done({ held });
  };

  const endOf = async ({ kind: name, id }: Holder, { signal }: EffectCall) => {
    const kind = actingKindOf(name);
    if (kind === undefined) throw new TypeError(`objects of kind ${name} are on no hub`);
    const { state } = await commandRunner.load(aggregateOf(kind), id, { signal });
    return { id, words: kind.words, state, hub: stringAt(kind.order.details(state).place, 'hub') };
  };

  const place = async ({ lender, target }: Ends, call: EffectCall): Promise<EffectOutcome> => {
    const [from, to] = await Promise.all([endOf(lender, call), endOf(target, call)]);
    for (const end of [from, to])
      if (end.hub === '') return done({ waiting: `its ${end.words} is on no hub yet`, on: end.id });
    if (from.hub !== to.hub)
      return refused('OTHER_HUB', `its ${from.words} and its ${to.words} are on different hubs`);
    return done({ place: (from.state as PlacedState).place ?? null });
  };

  return effectPort({ attach, detach, look, place }, storeOutcome);
};
