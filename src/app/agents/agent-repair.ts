import { holderKey, holderOf } from '../../domain/holder.ts';
import { holdersIn } from '../../domain/agents/pool-state.ts';
import { agentPoolAggregate } from '../../domain/kinds.ts';
import { repairHeld, type RepairPorts } from '../hubs/capacity-repair.ts';
import type { HubRegistry } from '../hubs/hub-registry.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';

/** Gives back agents that were reserved for an order after it was over; the keeper has them wiped. */
export const repairAgents = ({
  registry,
  ...ports
}: RepairPorts & { readonly registry: Pick<HubRegistry, 'hubs'> }): Promise<void> => {
  const { commandRunner, holders, clock, signal } = ports;
  return repairHeld(
    'agents',
    () => registry.hubs(),
    async (of) => {
      const hub = of.facts.id;
      const { state, revision } = await commandRunner.peek(agentPoolAggregate, hub, { signal });
      return holdersIn(state).map((key) => ({
        holder: holderOf(key),
        giveBack: async () => {
          const holder = holderOf(key);
          const owner = (await holders.ownerOf(holder, signal)) ?? of;
          const commandId = derivedCommandId('agent-repair', hub, holderKey(holder), revision);
          const command = { type: 'ReleaseAgents', at: clock.now(), holder } as const;
          const context = { ...hubContext(commandId, 'agent-repair', hub, owner), signal };
          return commandRunner.execute(agentPoolAggregate, hub, command, context, { step: true });
        },
      }));
    },
    ports,
  );
};
