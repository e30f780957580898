import { isRejection, type DomainEvent } from '../../domain/decider.ts';
import type { UseCommand } from '../../domain/exclusive-use.ts';
import type { Holder, Use } from '../../domain/holder.ts';
import { defined, objectAt, stringAt } from '../../domain/json-tools.ts';
import { aggregateOf, kindOf, type AnyKind } from '../../domain/kinds.ts';
import { ALREADY_ATTACHED, externalIp } from '../../domain/networks/external-ip.resource.ts';
import type { ResourceView } from '../../domain/resource.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandRunner } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import { done, effectPort, refused } from './hub-effects.ts';

type Args = { readonly holder: Holder; readonly uses: readonly Use[] };

const ALLOCATED = 'EXTERNAL_IP_STATE_ALLOCATED';

/**
 * Effect port `uses`: what an object asks of those that serve one user at a time, whose own streams decide. All of it may be
 * repeated.
 *
 * - `attach` {holder, uses} → {address}: all of them are the holder's, and the external IP among them has this address; or
 *   {waiting, on} with the id of what it waits for.
 * - `detach` {holder, uses} → {held: false}.
 * - `look` {holder, uses} → {held}: whether one of them is the holder's.
 */
export const createUseEffects = ({
  commandRunner,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
}): EffectPort => {
  const loaded = async ({ kind: name, id }: Use, call: EffectCall) => {
    const kind = kindOf(name);
    if (kind === undefined) throw new TypeError(`nothing of kind ${name} can be used`);
    const { state } = await commandRunner.load(aggregateOf(kind), id, { signal: call.signal });
    return { kind, state, view: kind.view(state) };
  };
  const execute = (kind: AnyKind, view: ResourceView, use: Use, command: UseCommand, call: EffectCall) => {
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type, use.kind, use.id);
    const owner = view.exists ? { tenant: view.tenant, project: view.project } : {};
    const context = { ...contextOf(call, commandId), ...owner };
    return commandRunner.execute(aggregateOf(kind), use.id, command, context, { step: true, inLine: true });
  };

  const attach = async ({ holder, uses }: Args, call: EffectCall): Promise<EffectOutcome> => {
    for (const use of uses) {
      const { kind, view } = await loaded(use, call);
      const command: UseCommand = defined({ type: 'AttachTo', at: clock.now(), holder, part: use.part });
      const outcome = await execute(kind, view, use, command, call);
      if (outcome.outcome === 'accepted') continue;
      const { code, message } = outcome.rejection;
      return code === ALREADY_ATTACHED ? done({ waiting: message, on: use.id }) : refused(code, message);
    }
    const ip = uses.find(({ kind }) => kind === externalIp.kind);
    if (ip === undefined) return done({});
    const { view } = await loaded(ip, call);
    const status = view.exists ? objectAt(view.document, 'status') : {};
    return stringAt(status, 'state') === ALLOCATED
      ? done({ address: stringAt(status, 'address') })
      : done({ waiting: 'its external IP has no address yet', on: ip.id });
  };

  const detach = async ({ holder, uses }: Args, call: EffectCall): Promise<EffectOutcome> => {
    for (const use of uses) {
      const { kind, view } = await loaded(use, call);
      await execute(kind, view, use, { type: 'DetachFrom', at: clock.now(), holder }, call);
    }
    return done({ held: false });
  };

  /** It is the holder's exactly if it could be given back. */
  const look = async ({ holder, uses }: Args, call: EffectCall): Promise<EffectOutcome> => {
    const held: boolean[] = [];
    for (const use of uses) {
      const { kind, state } = await loaded(use, call);
      const command: UseCommand = { type: 'DetachFrom', at: clock.now(), holder };
      const given = kind.decider.decide(state, command);
      held.push(!isRejection(given) && (given as readonly DomainEvent[]).length > 0);
    }
    return done({ held: held.includes(true) });
  };

  return effectPort({ attach, detach, look }, storeOutcome);
};
