import { actingKindOf } from '../domain/acting-kinds.ts';
import type { Holder } from '../domain/holder.ts';
import { aggregateOf } from '../domain/kinds.ts';
import type { CommandRunner } from './command.ts';
import type { Processes } from './process-port.ts';

export type Holders = ReturnType<typeof createHolders>;
type Owner = { readonly tenant: string; readonly project: string; readonly archived: boolean };

/** What is asked of holders by whoever gives back what they left behind, whatever it is that they hold. */
export const createHolders = (
  processes: Pick<Processes, 'isClosed' | 'isUnknown'>,
  commandRunner: Pick<CommandRunner, 'load'>,
) => {
  const ownerOf = async ({ kind, id }: Holder, signal: AbortSignal): Promise<Owner | undefined> => {
    const declared = actingKindOf(kind);
    if (declared === undefined) return undefined;
    const view = declared.view((await commandRunner.load(aggregateOf(declared), id, { signal })).state);
    return view.exists ? view : undefined;
  };
  return {
    /** Nothing will be done for it any more: its run has ended, or it never came to be. */
    isOver: (holder: Holder, signal: AbortSignal): boolean | Promise<boolean> => {
      const workflow = actingKindOf(holder.kind)?.workflow.name;
      if (workflow === undefined) return false;
      if (processes.isClosed(workflow, holder.id)) return true;
      if (!processes.isUnknown(workflow, holder.id)) return false;
      // The runner may not have heard of it yet; its own stream has.
      return ownerOf(holder, signal).then((owner) => owner === undefined || owner.archived);
    },
    /** On whose behalf it holds; undefined: nobody knows it. */
    ownerOf,
  };
};
