import { aggregateOf } from '../../domain/kinds.ts';
import { holdingsOf } from '../../domain/networks/address-book.ts';
import { bookOf, externalIpPool } from '../../domain/networks/external-ip-pool.resource.ts';
import { repairHeld, type RepairPorts } from './capacity-repair.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';

type Pool = { readonly id: string; readonly tenant: string; readonly project: string };

const aggregate = aggregateOf(externalIpPool);
const PAGE = 100;

/** Gives back the addresses of external IPs that are over: see `repairHeld`. */
export const repairAddresses = ({
  pages,
  ...ports
}: RepairPorts & {
  /** All that are stored of a kind. */
  readonly pages: (kind: string, size: number) => Iterable<readonly Pool[]>;
}): Promise<void> => {
  const { commandRunner, clock, signal } = ports;
  return repairHeld(
    'the address',
    () => [...pages(externalIpPool.kind, PAGE)].flat(),
    async (pool) => {
      const { state } = await commandRunner.peek(aggregate, pool.id, { signal });
      return holdingsOf(bookOf(state)).map(({ holder, generation }) => ({
        holder,
        giveBack: () => {
          const commandId = derivedCommandId('address-repair', pool.id, generation);
          const command = { type: 'ReleaseAddress', at: clock.now(), holder, generation } as const;
          const context = hubContext(commandId, 'address-repair', state.place?.hub ?? '', pool);
          return commandRunner.execute(aggregate, pool.id, command, { ...context, signal }, { step: true });
        },
      }));
    },
    ports,
  );
};
