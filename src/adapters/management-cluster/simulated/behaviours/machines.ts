import { fnv1a64 } from '../../../../domain/hash.ts';
import { OSAC_GROUP, type OwnedObject } from '../../../../domain/hubs/hub-object.ts';
import { withCondition, type ObjectRecord } from '../record.ts';
import type { Behaviour } from './behaviour.ts';
import { phaseBehaviour, type Before } from './phases.ts';

/** What machines of a simulated hub have in common, virtual and bare metal. */
export const conditionsAt = (
  { now, status }: Before,
  changes: readonly (readonly [type: string, status: boolean, reason: string])[],
) =>
  changes.reduce(
    (conditions, [type, is, reason]) => withCondition(conditions, now, type, is ? 'True' : 'False', reason),
    status.conditions,
  );

/** An address that no other object of this hub has. */
export const addressOf = ({ sequence, uid }: ObjectRecord, index = 0): string => {
  const octet = Number((fnv1a64(uid) + BigInt(index)) % 250n) + 2;
  return `10.${(sequence >> 8) & 255}.${sequence & 255}.${octet}`;
};

export const userDataBehaviour = (kind: OwnedObject): Behaviour =>
  phaseBehaviour({
    kind,
    finalizer: `${OSAC_GROUP}/userdata`,
    phases: [{ after: 'accept', status: () => ({}) }],
    failed: () => ({}),
    deleting: {},
    immutable: [],
  });
