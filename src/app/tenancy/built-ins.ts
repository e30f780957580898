import type { DocumentCommand } from '../../domain/catalog/document.ts';
import { aggregateOf, role } from '../../domain/kinds.ts';
import { BUILT_IN_ROLES } from '../../domain/tenancy/role.resource.ts';
import type { CommandRunner } from '../commands/command.ts';
import type { Position } from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext } from '../log/metadata.ts';
import type { Runtime } from '../ports.ts';
import type { ResourceCommands } from '../commands/resource-commands.ts';
import type { TenantBelongings } from './tenant-belongings.ts';

export type BuiltInServices = {
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly belongings: TenantBelongings;
  /** Every tenant that may lack something or have left something behind. */
  readonly tenants: () => AsyncIterable<string>;
  readonly signal: AbortSignal;
} & Pick<Runtime, 'clock' | 'logger'>;

const SHARED = 'shared';

/**
 * What the service itself has to hold, whether it starts for the first time or after a crash: the built-in roles, and
 * the belongings of `shared` and of every tenant. Twice changes nothing. Position of the last event, if there was one.
 */
export const ensureBuiltIns = async (services: BuiltInServices): Promise<Position | undefined> => {
  const { belongings, tenants, signal } = services;
  const roles = await ensureRoles(services);
  let last = (await belongings.settle(SHARED)) ?? roles;
  for await (const tenantId of tenants()) {
    signal.throwIfAborted();
    last = (await belongings.settle(tenantId)) ?? last;
  }
  return last;
};

const ensureRoles = async ({
  runner,
  commands,
  clock,
  logger,
}: BuiltInServices): Promise<Position | undefined> => {
  let last: Position | undefined;
  for (const { id, name, title, description } of BUILT_IN_ROLES) {
    if (role.view((await runner.load(aggregateOf(role), id)).state).exists) continue;
    const define = (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at: clock.now(),
      id,
      tenant: SHARED,
      project: '',
      name,
      // Nobody made them (OSAC).
      creator: '',
      document: { spec: { title, description } },
      abandonedBefore,
    });
    const context = systemContext(derivedCommandId(id, 'define'), 'tenancy', { tenant: SHARED });
    const outcome = await commands.execute(role, id, define, context);
    if (outcome.outcome === 'rejected')
      logger.warn({ role: name, code: outcome.rejection.code }, 'built-in role not defined');
    else last = outcome.loaded.position ?? last;
  }
  return last;
};
