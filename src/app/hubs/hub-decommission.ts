import { hub as hubKind, tenantSpaceAggregate } from '../../domain/kinds.ts';
import { tenantSpaceId } from '../../domain/tenancy/tenant-space.ts';
import type { CommandContext, CommandRunner } from '../commands/command.ts';
import { OutcomeUnknown, StoreUnavailable } from '../log/event-store.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';
import type { Clock, Logger, Timers } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { ResourceCommands } from '../commands/resource-commands.ts';
import { hubCapacity } from './scheduler.ts';
import type { HubSpace } from './tenant-space-book.ts';

/** Milliseconds between two looks whether hubs that are given up have become empty. */
const LOOK_MS = 10_000;
/** A hub that does not remove what it holds of tenants for so long is gone, or holds it in vain. */
const LEFT_BEHIND_MS = 60 * 60_000;

/**
 * Ends hubs that were given up with orders on them, once the last order has left: first nothing may be reserved there
 * any more, then what it holds of tenants is removed, then the hub goes, and with it its name. Runs until the signal is aborted; only for the owner of the
 * processes.
 */
export const finishDecommissions = async (options: {
  readonly registry: Pick<HubRegistry, 'hubs' | 'ready' | 'spacesOn'>;
  readonly commandRunner: CommandRunner;
  readonly commands: Pick<ResourceCommands, 'execute'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> => {
  const { registry, commandRunner, commands, clock, timers, logger, signal } = options;

  const contextOf = (hub: RegisteredHub, step: string): CommandContext => {
    const { id } = hub.facts;
    const commandId = derivedCommandId('finish-deregistration', id, hub.revision, step, clock.now());
    return hubContext(commandId, 'hub-decommission', id, hub);
  };

  const finish = async (hub: RegisteredHub): Promise<void> => {
    const { id } = hub.facts;
    const at = clock.now();
    const closing = { type: 'CloseCapacity', at, hub: id, hubRevision: hub.revision } as const;
    const closed = await commandRunner.execute(hubCapacity, id, closing, contextOf(hub, 'close'), {
      step: true,
    });
    if (closed.outcome === 'rejected') return;
    if (await holdsTenants(hub)) return;
    const finishing = { type: 'FinishDeregistration', at } as const;
    const done = await commands.execute(hubKind, id, finishing, contextOf(hub, 'finish'));
    if (done.outcome === 'accepted' && done.events.length > 0)
      logger.info({ hub: id }, 'decommissioned hub empty; removed');
  };

  /** Asks the hub to remove them. True: it should be asked on. */
  const holdsTenants = async (hub: RegisteredHub): Promise<boolean> => {
    const { id } = hub.facts;
    const at = clock.now();
    const spaces = registry.spacesOn(id);
    for (const { tenant, status } of spaces) {
      if (status === 'removing') continue;
      const command = { type: 'RemoveSpace', at } as const;
      const context = { ...contextOf(hub, `remove ${tenant}`), tenant, project: '', hub: id };
      await commandRunner.execute(tenantSpaceAggregate, tenantSpaceId(id, tenant), command, context, {
        step: true,
      });
    }
    const isOver = ({ status, since }: HubSpace): boolean =>
      status === 'removing' && Date.parse(at) - Date.parse(since) > LEFT_BEHIND_MS;
    if (!spaces.every(isOver)) return true;
    if (spaces.length > 0)
      logger.warn({ hub: id, tenants: spaces.map(({ tenant }) => tenant) }, 'tenants left behind on a hub');
    return false;
  };

  await registry.ready(signal).catch(() => undefined);
  while (!signal.aborted) {
    for (const hub of registry.hubs()) {
      if (!hub.deleting) continue;
      try {
        await finish(hub);
      } catch (error) {
        if (!(error instanceof StoreUnavailable || error instanceof OutcomeUnknown)) throw error;
        logger.warn(
          { err: error, hub: hub.facts.id },
          'check of a decommissioned hub failed; retrying later',
        );
      }
    }
    await pause(timers, LOOK_MS, signal);
  }
};
