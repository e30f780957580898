import type { DocumentCommand } from '../../domain/catalog/document.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { aggregateOf, project, tenant, user } from '../../domain/kinds.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import { defaultProjectId } from '../../domain/tenancy/project.resource.ts';
import type { CommandContext, CommandRunner } from '../commands/command.ts';
import type { Position } from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext } from '../log/metadata.ts';
import type { TenantBelonging, TenantBelongingsServices } from './belonging.ts';
import { defaultNetworking } from './default-networking.ts';

export type TenantBelongings = {
  /** Gives a living tenant what it lacks, takes from one that is gone what is left; nothing for one that never was. */
  readonly settle: (tenantId: string) => Promise<Position | undefined>;
};

/** How often a tenant may come or go while it is settled, before the rest waits for the next time. */
const MAX_ROUNDS = 3;

/** Objects of the service itself, without having been created by anybody. */
const SHARED = 'shared';

export const createTenantBelongings = (
  services: TenantBelongingsServices,
  belongings: readonly TenantBelonging[] = [
    tenantUsers(services),
    defaultProject(services),
    defaultNetworking(services),
  ],
): TenantBelongings => ({
  settle: async (tenantId) => {
    let last: Position | undefined;
    let lives = await livesOf(services.runner, tenantId);
    for (let round = 0; lives !== undefined && round < MAX_ROUNDS; round += 1) {
      for (const { give, take } of belongings) {
        const { position, more } = await (lives ? give : take)(tenantId);
        last = position ?? last;
        if (more === true) break;
      }
      // Taken from a tenant that came back meanwhile, or given to one that went: the other way round, then.
      const livesNow = await livesOf(services.runner, tenantId);
      if (livesNow === lives) break;
      lives = livesNow;
    }
    return last;
  },
});

/** Undefined: there never was such a tenant. */
const livesOf = async (runner: CommandRunner, tenantId: string): Promise<boolean | undefined> => {
  if (tenantId === SHARED) return true;
  const view = tenant.view((await runner.load(aggregateOf(tenant), tenantId)).state);
  return view.exists ? !view.archived : undefined;
};

/** The project without a name: objects that name no project lie in it (OSAC). */
const defaultProject = ({ runner, commands, clock }: TenantBelongingsServices): TenantBelonging => ({
  give: async (tenantId) => {
    const id = defaultProjectId(tenantId);
    const { state, revision } = await runner.load(aggregateOf(project), id);
    const view = project.view(state);
    if (view.exists && !view.archived) return { position: undefined };
    const create = (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at: clock.now(),
      id,
      tenant: tenantId,
      project: '',
      name: '',
      creator: 'system',
      document: {},
      abandonedBefore,
    });
    const outcome = await commands.execute(
      project,
      id,
      create,
      contextOf(tenantId, 'open', `${id} ${revision}`),
    );
    return { position: outcome.loaded.position };
  },
  take: async (tenantId) => ({
    position: await remove({ runner, commands }, project, tenantId, defaultProjectId(tenantId), {
      type: 'DeleteDocument',
      at: clock.now(),
    }),
  }),
});

/** Users that one request removes at most. */
const PAGE = 100;

/** Users come by themselves, with their first call, and go with their tenant. */
const tenantUsers = (services: TenantBelongingsServices): TenantBelonging => ({
  give: async () => ({ position: undefined }),
  take: async (tenantId) => {
    let position: Position | undefined;
    const ids = services.idsOf(user.kind, tenantId, PAGE);
    const command = { type: 'DeleteDocument', at: services.clock.now() } as const;
    for (const id of ids) position = (await remove(services, user, tenantId, id, command)) ?? position;
    return { position, more: ids.length === PAGE };
  },
});

const remove = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  { runner, commands }: Pick<TenantBelongingsServices, 'runner' | 'commands'>,
  kind: ResourceKind<S, C, E>,
  tenantId: string,
  id: string,
  command: C,
): Promise<Position | undefined> => {
  const loaded = await runner.load(aggregateOf(kind), id);
  const view = kind.view(loaded.state);
  if (!view.exists || view.archived) return undefined;
  const context = contextOf(tenantId, 'remove', `${id} ${loaded.revision}`);
  const outcome = await commands.execute(kind, id, command, context);
  return outcome.loaded.position;
};

/** The same step of the same tenant has the same command id, whichever instance takes it. */
const contextOf = (tenantId: string, ...step: readonly string[]): CommandContext =>
  systemContext(derivedCommandId(tenantId, 'belongings', ...step), 'tenancy', { tenant: tenantId });
