import { actingKindOf } from '../../domain/acting-kinds.ts';
import type { Holder } from '../../domain/holder.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import type { CommandRunner } from '../commands/command.ts';
import type { Processes } from '../process-runner/process-port.ts';

export type Holders = ReturnType<typeof createHolders>;
type Owner = {
  readonly tenant: string;
  readonly project: string;
  readonly archived: boolean;
  readonly isWithdrawn?: boolean;
};

/** What is asked of holders by whoever gives back what they left behind, whatever it is that they hold. */
export const createHolders = (
  processes: Pick<Processes, 'isClosed' | 'isUnknown'>,
  commandRunner: Pick<CommandRunner, 'load'>,
) => {
  const ownerOf = async ({ kind, id }: Holder, signal: AbortSignal): Promise<Owner | undefined> => {
    const declared = actingKindOf(kind);
    if (declared === undefined) return undefined;
    const { state } = await commandRunner.load(aggregateOf(declared), id, { signal });
    const view = declared.view(state);
    return view.exists ? { ...view, isWithdrawn: declared.isWithdrawn?.(state) === true } : undefined;
  };
  return {
    /**
     * It is to hold nothing any more: its run has ended, or it never came to be. `isThorough`: also when it was aborted and
     * nothing of it is left, which only its state says.
     */
    isOver: (holder: Holder, signal: AbortSignal, isThorough: boolean): boolean | Promise<boolean> => {
      const { workflow, isWithdrawn } = actingKindOf(holder.kind) ?? {};
      if (workflow === undefined) return false;
      if (processes.isClosed(workflow.name, holder.id)) return true;
      if (!processes.isUnknown(workflow.name, holder.id) && !(isThorough && isWithdrawn !== undefined))
        return false;
      // The runner may not have heard of it yet; its own stream has.
      return ownerOf(holder, signal).then(
        (owner) => owner === undefined || owner.archived || owner.isWithdrawn === true,
      );
    },
    /** On whose behalf it holds; undefined: nobody knows it. */
    ownerOf,
    /** The hub that it is on, as its own state says; empty: it has none yet. */
    hubOf: async ({ kind, id }: Holder, signal: AbortSignal): Promise<string> => {
      const declared = actingKindOf(kind);
      if (declared === undefined) return '';
      const { state } = await commandRunner.load(aggregateOf(declared), id, { signal });
      return stringAt(declared.order.details(state).place, 'hub');
    },
  };
};
