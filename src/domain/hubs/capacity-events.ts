import type { DomainEvent } from '../decider.ts';
import type { Holder } from '../holder.ts';

/**
 * Events of `hubCapacity-<hub id>`: the one stream that owns what a hub can still take, so that a burst of orders
 * cannot all land on the emptiest hub (fleet-and-networks.md §2.9). Absent limits mean unlimited.
 */
export type CapacityLimits = {
  /** Hosted control planes the hub can carry. */
  readonly controlPlanes?: number;
  /** Nodes by host type id. */
  readonly nodes?: { readonly [hostType: string]: number };
};

export type CapacityClaim = {
  readonly controlPlanes: number;
  readonly nodes: { readonly [hostType: string]: number };
};

export type HubCapacityEvent =
  | DomainEvent<
      'HubCapacityDeclared',
      { readonly at: string; readonly hub: string; readonly limits: CapacityLimits }
    >
  | DomainEvent<
      'HubCapacityReserved',
      { readonly at: string; readonly holder: Holder; readonly claim: CapacityClaim }
    >
  /** A scale-out or scale-in: the claim of a holder is replaced as a whole. */
  | DomainEvent<
      'HubCapacityResized',
      { readonly at: string; readonly holder: Holder; readonly claim: CapacityClaim }
    >
  | DomainEvent<'HubCapacityReleased', { readonly at: string; readonly holder: Holder }>
  /**
   * The hub is about to be deregistered: nothing is reserved here until a later wording of its document declares
   * capacity again.
   */
  | DomainEvent<
      'HubCapacityClosed',
      {
        readonly at: string;
        readonly hub: string;
        /** Revision of the hub's document at which it was to be deregistered. */
        readonly hubRevision: number;
      }
    >;
