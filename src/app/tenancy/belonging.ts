import type { CommandRunner } from '../commands/command.ts';
import type { ResourceCommands } from '../commands/resource-commands.ts';
import type { Position } from '../log/event-store.ts';
import type { Clock } from '../ports.ts';

/**
 * Something that every tenant has from its creation until it is gone, written by the service itself: its default
 * project, and its default networking (OSAC).
 *
 * The tenant is stored first. `give` and `take` are idempotent (ids follow from the tenant), run in the same request,
 * and again for every tenant when the service starts, so that a crash in between leaves nothing half done.
 */
export type TenantBelonging = {
  /** Makes what is missing. Position of the last event, if there was one. Throws what the event store throws. */
  readonly give: (tenantId: string) => Promise<Step>;
  /** Removes what is left once the tenant is gone; the same otherwise. */
  readonly take: (tenantId: string) => Promise<Step>;
};

/** `more`: there is more to do than is done at once; what comes after it waits for the next time. */
type Step = { readonly position: Position | undefined; readonly more?: boolean };

export type TenantBelongingsServices = {
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly clock: Clock;
  /** Ids of a tenant's objects of a kind, at most so many. */
  readonly idsOf: (kind: string, tenantId: string, limit: number) => readonly string[];
};
