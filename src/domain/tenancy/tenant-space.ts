import { z } from 'zod';
import { reject, type DataOf, type Decider, type Decision } from '../decider.ts';
import type { EventType } from '../event-type.ts';
import { base32, fnv1a64 } from '../hash.ts';
import { sameJson } from '../json-tools.ts';
import { list, mayBe, text, typesOf, type EventOf, type Shapes } from '../schemas.ts';

/**
 * What a hub holds of a tenant before the first object of that tenant goes there: namespaces, and a `Tenant` by which the
 * hub's operator knows them. One stream for each tenant and hub. It is asked for by whatever is to be sent, and stays until
 * the tenant is gone: the operator keeps storage of the tenant by it, which must not go with its last object.
 */
export const TENANT_SPACE_CATEGORY = 'tenantSpace';

/** Names the tenant in no stream name. */
export const tenantSpaceId = (hub: string, tenant: string): string => base32(fnv1a64(`${hub}\n${tenant}`));

const ORDERED = {
  hub: text,
  tenant: text,
  /** The hub's own, where its Tenant is. */
  namespace: text,
  /** Those that are the tenant's alone. */
  namespaces: list,
  simulated: z.boolean(),
  /** Who reconciles objects there. */
  controller: z.enum(['operator', 'ledger']),
  /** Which cluster the hub was; on another one nothing of it is there. */
  cluster: mayBe,
};

const TENANT_SPACE = {
  TenantSpaceRequested: ORDERED,
  TenantSpaceBecameReady: {},
  TenantSpaceFailed: { reason: text, message: text },
  /** The hub shows it no more, although nobody here removed it: it is made again. */
  TenantSpaceLost: {},
  TenantSpaceRemovalRequested: {},
  TenantSpaceRemoved: {},
} as const satisfies Shapes;
type Name = keyof typeof TENANT_SPACE;
export type TenantSpaceEvent = EventOf<typeof TENANT_SPACE>;

export const tenantSpaceTypes: readonly EventType[] = typesOf(
  { context: 'tenancy', audience: 'provider' },
  TENANT_SPACE,
);

type Facts<Type extends Name> = DataOf<TenantSpaceEvent, Type>;
export type TenantSpaceOrder = Omit<Facts<'TenantSpaceRequested'>, 'at'>;
export type TenantSpaceState =
  | { readonly status: 'none' }
  | ({
      readonly status: 'requested' | 'ready' | 'removing' | 'removed';
      /** Why it does not go on. */
      readonly failure?: Facts<'TenantSpaceFailed'>;
    } & TenantSpaceOrder);
export type TenantSpace = Exclude<TenantSpaceState, { status: 'none' }>;

type At = { readonly at: string };
export type TenantSpaceCommand =
  | ({ readonly type: 'RequestSpace' } & Facts<'TenantSpaceRequested'>)
  | ({ readonly type: 'RecordSpaceReady' | 'RecordSpaceLost' } & At)
  | ({ readonly type: 'RecordSpaceFailure' } & Facts<'TenantSpaceFailed'>)
  /** The tenant is gone, and with it whatever it had there. */
  | ({ readonly type: 'RemoveSpace' | 'ConfirmSpaceRemoved' } & At);

export const isSpace = (state: TenantSpaceState): state is TenantSpace => state.status !== 'none';
const isThere = (state: TenantSpaceState): state is TenantSpace =>
  state.status === 'requested' || state.status === 'ready';

export const orderOfSpace = ({
  status: _status,
  failure: _failure,
  ...order
}: TenantSpace): TenantSpaceOrder => order;

/** It has what is asked for now: the hub may have been given other namespaces, or be another cluster, since. */
export const isReadySpace = (state: TenantSpaceState, wanted: TenantSpaceOrder): boolean =>
  state.status === 'ready' && sameJson(orderOfSpace(state), wanted);

const event = <Type extends Name>(type: Type, data: Facts<Type>): TenantSpaceEvent =>
  ({ type, data }) as unknown as TenantSpaceEvent;

const decide = (state: TenantSpaceState, command: TenantSpaceCommand): Decision<TenantSpaceEvent> => {
  const { at } = command;
  switch (command.type) {
    case 'RequestSpace': {
      const { type: _type, at: _at, ...order } = command;
      if (state.status === 'removing') {
        const message = `what hub ${order.hub} held of tenant ${order.tenant} before is still being removed`;
        return reject('failed-precondition', 'SPACE_REMOVING', message);
      }
      return isThere(state) && sameJson(orderOfSpace(state), order)
        ? []
        : [event('TenantSpaceRequested', { at, ...order })];
    }
    case 'RecordSpaceReady':
      return state.status === 'requested' ? [event('TenantSpaceBecameReady', { at })] : [];
    case 'RecordSpaceLost':
      return isThere(state) ? [event('TenantSpaceLost', { at })] : [];
    case 'RecordSpaceFailure': {
      if (state.status !== 'requested' && state.status !== 'removing') return [];
      const { reason, message } = command;
      // Its words may hold times and numbers: only another reason is news.
      return state.failure?.reason === reason ? [] : [event('TenantSpaceFailed', { at, reason, message })];
    }
    case 'RemoveSpace':
      return isThere(state) ? [event('TenantSpaceRemovalRequested', { at })] : [];
    case 'ConfirmSpaceRemoved':
      return state.status === 'removing' ? [event('TenantSpaceRemoved', { at })] : [];
  }
};

const evolve = (state: TenantSpaceState, { type, data }: TenantSpaceEvent): TenantSpaceState => {
  if (type === 'TenantSpaceRequested') {
    const { at: _at, ...order } = data;
    return { status: 'requested', ...order };
  }
  if (!isSpace(state)) return state;
  const { failure: _failure, ...well } = state;
  switch (type) {
    case 'TenantSpaceBecameReady':
      return { ...well, status: 'ready' };
    case 'TenantSpaceLost':
      return { ...well, status: 'requested' };
    case 'TenantSpaceFailed':
      return { ...state, failure: data };
    case 'TenantSpaceRemovalRequested':
      return { ...well, status: 'removing' };
    case 'TenantSpaceRemoved':
      return { ...well, status: 'removed' };
    default:
      return state;
  }
};

export const tenantSpaceDecider: Decider<TenantSpaceState, TenantSpaceCommand, TenantSpaceEvent> = {
  initialState: () => ({ status: 'none' }),
  decide,
  evolve,
};
