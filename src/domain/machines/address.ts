import { reject, type Decision, type DomainEvent, type Rejection } from '../decider.ts';
import { creationUnderWay, isHeldBy, lendsItself, type UseCommand, type User } from '../exclusive-use.ts';
import type { Holder } from '../holder.ts';
import type { JsonObject } from '../json.ts';
import { defined, objectAt, stringAt, without } from '../json-tools.ts';
import type { MadeObject } from '../made-objects.ts';
import { autoAddresses, boundTo } from '../networks/auto-addresses.ts';
import { isUnderWay, type Placed, type PlacedState } from '../placed-document.ts';
import type { OwnAddress } from './shapes.ts';

/** External IPs of machines, virtual and bare metal: one at a time, ordered with the machine or attached by hand (OSAC). */
export type Addressed = {
  /** What has an external IP attached to it, and the number of claims so far. */
  readonly user?: User & { readonly address?: string };
  readonly claims?: number;
  readonly resolved?: { readonly externalIp?: OwnAddress };
};
type AddressedState = PlacedState & Addressed;

type Machine = {
  /** Its field in the spec of an attachment. */
  readonly field: 'compute_instance' | 'baremetal_instance';
  readonly words: string;
  /** What its events begin with. */
  readonly prefix: string;
};

export const machineAddress = ({ field, words, prefix }: Machine) => {
  /** The external IP and its attachment that the service makes for it and removes with it (OSAC). */
  const makes = ({ id, name, resolved }: Placed & Addressed): readonly MadeObject[] => {
    const { externalIp } = resolved ?? {};
    if (externalIp === undefined) return [];
    return autoAddresses({ field, id, name }, externalIp.pool, [['', externalIp]]);
  };
  /** What goes before it: each group once nothing is left of the one before. */
  const bound = (state: Placed & Addressed): readonly (readonly Holder[])[] =>
    boundTo(state.user === undefined ? [] : [state.user], makes(state));

  const refuse = (kind: Rejection['kind'], code: string, message: string): Rejection =>
    reject(kind, code, message, { field: `spec.${field}` });

  /** One user at a time, and none of what is about to go. */
  const use = (state: AddressedState, command: UseCommand): Decision<DomainEvent> => {
    const { user, claims = 0 } = state;
    const { at, holder } = command;
    const isUser = isHeldBy(user, holder);
    if (command.type === 'DetachFrom')
      return isUser && user.generation === command.generation
        ? [{ type: `${prefix}AddressDetached`, data: { at, holder, generation: command.generation } }]
        : [];
    const { by, address } = command;
    if (isUser && by === undefined) {
      if (address === undefined || address === user.address) return [];
      const { generation } = user;
      return [{ type: `${prefix}AddressAttached`, data: { at, holder, generation, address } }];
    }
    if (isUser && user.by !== by) return creationUnderWay(holder);
    if (!isUnderWay(state))
      return refuse('failed-precondition', 'INSTANCE_GONE', `the ${words} is being deleted or was given up`);
    const own = claims === 0 ? state.resolved?.externalIp?.attachment : undefined;
    const isFree = user === undefined && (own === undefined || own === holder.id);
    const data = { at, holder, generation: claims + 1, ...defined({ by }) };
    return isFree || isUser
      ? [{ type: `${prefix}AddressAttached`, data }]
      : refuse(
          'already-exists',
          'ALREADY_EXISTS',
          `${words} '${state.name}' already has an external IP: detach that one first`,
        );
  };

  const user = (data: JsonObject): string => ` (${stringAt(objectAt(data, 'holder'), 'id')})`;

  return {
    sentences: {
      [`${prefix}AddressAttached`]: (data: JsonObject): string => {
        const address = stringAt(data, 'address');
        return address === ''
          ? `An external IP was attached to it${user(data)}.`
          : `Its external IP is ${address}.`;
      },
      [`${prefix}AddressDetached`]: (data: JsonObject): string =>
        `An external IP was detached from it${user(data)}.`,
    },
    makes,
    bound,
    isBound: (state: Placed) => bound(state as Placed & Addressed).some((group) => group.length > 0),
    use,
    lends: {
      ...lendsItself,
      held: ({ user }: Addressed) => (user === undefined ? [] : [user]),
      heldBy: ({ user }: Addressed, holder: Holder) => (isHeldBy(user, holder) ? user.generation : undefined),
    },
  };
};

export const attached = <State extends Addressed>(
  state: State,
  { at: _at, ...user }: User & { readonly at: string; readonly address?: string },
): State => ({ ...state, user, claims: user.generation });

export const detached = <State extends Addressed>(state: State): State => without(state, 'user') as State;

/** What was made for it is gone too, unless it was only aborted. */
export const withoutOwnAddress = <State extends AddressedState>(state: State): State =>
  state.status === 'deleting' && state.resolved !== undefined
    ? { ...state, resolved: without(state.resolved, 'externalIp') }
    : state;
