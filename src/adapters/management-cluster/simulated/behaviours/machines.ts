import { OSAC_GROUP, type OwnedObject } from '../../../../domain/hubs/hub-object.ts';
import { addressText, moved, parseRange, sizeOf } from '../../../../domain/ranges.ts';
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

/** The gateway of a subnet has its first address. */
const TAKEN = 1n;

/** The `turn`-th address that a machine gets in a subnet: all are given before one comes again. Undefined: it has none. */
export const addressIn = (cidr: string, turn: number): string | undefined => {
  const range = parseRange(cidr);
  if (range === undefined) return undefined;
  const size = sizeOf([range]);
  const offset = size > TAKEN ? TAKEN + (BigInt(turn) % (size - TAKEN)) : 0n;
  return addressText(moved(range.first, offset));
};

type Attached = { readonly networkAttachments?: readonly { readonly subnetRef: string }[] };
export const subnetsIn = (spec: object): readonly string[] =>
  ((spec as Attached).networkAttachments ?? []).map(({ subnetRef }) => subnetRef);

/** None where its subnet is not on the hub. */
export const addressOf = ({ addresses = {} }: ObjectRecord, subnet = ''): string => addresses[subnet] ?? '';

export const userDataBehaviour = (kind: OwnedObject): Behaviour =>
  phaseBehaviour({
    kind,
    finalizer: `${OSAC_GROUP}/userdata`,
    phases: [{ after: 'accept', status: () => ({}) }],
    failed: () => ({}),
    deleting: {},
    immutable: [],
  });
