import type { Holder } from '../../domain/holder.ts';
import { aggregateOf, lenderOf as knownLender } from '../../domain/kinds.ts';
import type { CommandRunner } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { contextOf } from '../process-runner/effect-commands.ts';
import type { EffectCall } from '../process-runner/types.ts';

/** Objects that lend themselves or a part of them (`ResourceKind.lends`), as effects ask them. */
export const createLenders = (commandRunner: CommandRunner) => {
  /** Throws TypeError for a kind that lends nothing. */
  const lenderOf = async ({ kind: name, id }: Holder, { signal }: EffectCall) => {
    const kind = knownLender(name);
    if (kind?.lends === undefined) throw new TypeError(`objects of kind ${name} lend nothing`);
    const { state } = await commandRunner.load(aggregateOf(kind), id, { signal });
    return { kind, id, lends: kind.lends, state, view: kind.view(state) };
  };

  /** In the name of the tenant and the project that the lender belongs to: the stream is its own, whoever's the holder is. */
  const tell = async (
    { kind, id, view }: Awaited<ReturnType<typeof lenderOf>>,
    command: { readonly type: string },
    call: EffectCall,
    /** Tells apart what is told twice by one call. */
    what = '',
  ) => {
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type + what, kind.kind, id);
    const owner = view.exists ? { tenant: view.tenant, project: view.project } : {};
    const context = { ...contextOf(call, commandId), ...owner };
    return commandRunner.execute(aggregateOf(kind), id, command, context, { step: true, inLine: true });
  };

  return { lenderOf, tell };
};
