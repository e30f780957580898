import fc from 'fast-check';
import type { HubCapacityCommand } from '../../../src/domain/hubs/capacity.ts';
import { INHERITED_NAMES } from './hostile-names.ts';

const at = '2026-11-21T12:00:00.000Z';
const count = fc.integer({ min: 0, max: 6 });
const holder = fc
  .constantFrom('c1', 'c2', ...INHERITED_NAMES)
  .chain((id) => fc.constantFrom({ kind: 'cluster', id }, { kind: 'externalIpPool', id }));
const claim = fc.record({
  controlPlanes: count,
  nodes: fc.dictionary(fc.constantFrom('fc430', 'g5', ...INHERITED_NAMES), count, { maxKeys: 4 }),
});
const limits = fc.record(
  { controlPlanes: count, nodes: fc.record({ fc430: count }, { requiredKeys: [] }) },
  { requiredKeys: [] },
);

/** Commands to one hub's capacity stream, few clusters so that they meet. */
export const capacityCommands = (): fc.Arbitrary<HubCapacityCommand> =>
  fc.oneof(
    fc.tuple(limits, fc.integer({ min: 0, max: 4 })).map(
      ([declared, hubRevision]): HubCapacityCommand => ({
        type: 'DeclareCapacity',
        at,
        hub: 'h1',
        limits: declared,
        hubRevision,
      }),
    ),
    fc
      .integer({ min: 0, max: 4 })
      .map((hubRevision): HubCapacityCommand => ({ type: 'CloseCapacity', at, hub: 'h1', hubRevision })),
    fc
      .tuple(fc.constantFrom('ReserveCapacity' as const, 'ResizeReservation' as const), holder, claim)
      .map(([type, of, wanted]): HubCapacityCommand => ({ type, at, holder: of, claim: wanted })),
    holder.map((of): HubCapacityCommand => ({ type: 'ReleaseCapacity', at, holder: of })),
  );
