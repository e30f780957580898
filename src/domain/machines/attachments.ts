import { invalid, reject, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { listAt, objectAt, sameJson, stringAt } from '../json-tools.ts';

/** Subnets and security groups of machines, virtual and bare metal (OSAC). */
export const attachmentsOf = (document: JsonObject): readonly JsonObject[] =>
  listAt(objectAt(document, 'spec'), 'network_attachments') as readonly JsonObject[];
export const subnetIn = (attachment: JsonObject): string => stringAt(objectAt(attachment, 'subnet'), 'id');
export const groupsIn = (attachment: JsonObject): readonly string[] =>
  listAt(attachment, 'security_groups').map((group) => stringAt(group, 'id'));

export const ATTACHMENTS = 'spec.network_attachments';
const MAX_ATTACHMENTS = 8;

/** `fixed`: what of each attachment stays as it was ordered, and how it is called. */
export const attachmentsRejection = (
  document: JsonObject,
  previous: JsonObject | undefined,
  fixed: { readonly of: (attachment: JsonObject) => JsonValue; readonly words: string } = {
    of: subnetIn,
    words: 'subnets',
  },
): Rejection | undefined => {
  const field = ATTACHMENTS;
  const subnets = attachmentsOf(document).map(subnetIn);
  if (
    previous !== undefined &&
    !sameJson(attachmentsOf(previous).map(fixed.of), attachmentsOf(document).map(fixed.of))
  )
    return invalid(
      'IMMUTABLE_FIELD',
      field,
      `${fixed.words} of field '${field}' are immutable, and so is their number: only security groups may change`,
    );
  const empty = subnets.indexOf('');
  if (empty >= 0) return invalid('FIELD_REQUIRED', `${field}.${empty}.subnet`, 'subnet is required');
  if (subnets.length > MAX_ATTACHMENTS)
    return invalid(
      'TOO_MANY_ATTACHMENTS',
      field,
      `field '${field}' may hold at most ${MAX_ATTACHMENTS} entries`,
    );
  const twice = subnets.find((id, index) => subnets.indexOf(id) !== index);
  return twice === undefined
    ? undefined
    : invalid('SUBNET_TWICE', field, `field '${field}' names subnet '${twice}' twice`);
};

/** Why nothing can stand in a subnet or behind a group now. */
export const notReady = (words: string, id: string, state: string): Rejection =>
  reject(
    'failed-precondition',
    'NETWORK_NOT_READY',
    `${words} '${id}' is not in READY state (current state: ${state.replace(/^.*_STATE_/, '') || 'UNSPECIFIED'})`,
    { field: ATTACHMENTS },
  );

/** `words`: of the machine. */
export const otherNetwork = (words: string): Rejection =>
  invalid(
    'OTHER_NETWORK',
    ATTACHMENTS,
    `all subnets and security groups of a ${words} must be of one virtual network`,
  );
