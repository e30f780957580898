import { aggregateOf, kindOf, lenderOf, lenders } from '../../domain/kinds.ts';
import { fenceOf } from '../tenancy/project-entries.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext, systemContext } from '../log/metadata.ts';
import { repairHeld, type RepairPorts } from './capacity-repair.ts';

type Lender = {
  readonly kind: string;
  readonly id: string;
  readonly tenant: string;
  readonly project: string;
};

const PAGE = 100;

/**
 * Gives back what objects hold of others (`commands/takings.ts`) that are over or never came to be: see `repairHeld`.
 * A creation that is under way is stopped first, and begins again with a claim of its own.
 */
export const repairTakings = ({
  lent,
  ...ports
}: RepairPorts & {
  /** Those of a kind that others hold a part of. */
  readonly lent: (kind: string, size: number) => Iterable<readonly Omit<Lender, 'kind'>[]>;
}): Promise<void> => {
  const { commandRunner, clock, holders, signal } = ports;
  return repairHeld(
    'what was claimed',
    function* places() {
      for (const { kind, onlyId } of lenders) {
        if (onlyId !== undefined) yield { kind, id: onlyId, tenant: '', project: '' };
        else for (const page of lent(kind, PAGE)) yield* page.map((place): Lender => ({ kind, ...place }));
      }
    },
    async (place) => {
      const lender = lenderOf(place.kind);
      const { lends } = lender ?? {};
      if (lender === undefined || lends === undefined) return [];
      const { state } = await commandRunner.peek(aggregateOf(lender), place.id, { signal });
      return lends.held(state).map(({ holder, generation }) => ({
        holder,
        giveBack: async () => {
          const commandId = derivedCommandId('taking-repair', place.kind, place.id, generation);
          const held = kindOf(holder.kind);
          const owner = await holders.ownerOf(holder, signal);
          // Not claimed again by its workflow, should it be retried.
          if (lender.onlyId !== undefined && owner?.archived === false) return undefined;
          if (held !== undefined && owner === undefined) {
            const fence = { type: 'FenceEntry', at: clock.now(), commandId } as const;
            const fenced = await commandRunner.execute(
              fenceOf(held),
              holder.id,
              fence,
              { ...systemContext(derivedCommandId(commandId, 'fence'), 'taking-repair'), signal },
              { step: true },
            );
            const view = held.view(fenced.loaded.state);
            // It was faster: what it claimed is in use.
            if (view.exists && !view.archived) return fenced;
          }
          const command = lends.release(clock.now(), holder, generation);
          const context = { ...hubContext(commandId, 'taking-repair', '', place), signal };
          return commandRunner.execute(aggregateOf(lender), place.id, command, context, { step: true });
        },
      }));
    },
    ports,
  );
};
