import type { JsonObject } from '../../domain/json.ts';
import { defined } from '../../domain/json-tools.ts';
import { ownNamespaces } from '../../domain/hubs/hub-facts.ts';
import { aggregateOf, tenant as tenantKind, tenantSpaceAggregate } from '../../domain/kinds.ts';
import {
  isReadySpace,
  isSpace,
  tenantSpaceId,
  type TenantSpaceCommand,
  type TenantSpaceEvent,
  type TenantSpaceOrder,
  type TenantSpaceState,
} from '../../domain/tenancy/tenant-space.ts';
import type { Aggregate, CommandRunner } from '../commands/command.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import { done, effectPort, outcomeOf, registeredHub } from './hub-effects.ts';
import type { HubRegistry } from './hub-registry.ts';

const spaces: Aggregate<TenantSpaceState, TenantSpaceCommand, TenantSpaceEvent> = tenantSpaceAggregate;

/** What a tenant reads of it; `detail` is the provider's. */
export type TenantWait = { readonly waiting: string; readonly detail?: string };

export type TenantSpaces = {
  /** Undefined: the hub holds what the call's tenant needs there. Else it was asked for, or is on its way. */
  settle(hub: string, call: EffectCall): Promise<TenantWait | undefined>;
};

const WAITING = 'TenantNotReady: what your tenant needs first is still being made';
/** It is tried on, but somebody has to look at the hub. */
const STUCK = 'TenantNotReady: what your tenant needs first cannot be made at the moment: ask your provider';

export const createTenantSpaces = ({
  registry,
  commandRunner,
  clock,
}: {
  readonly registry: Pick<HubRegistry, 'ready' | 'get'>;
  readonly commandRunner: CommandRunner;
  readonly clock: Pick<Clock, 'now'>;
}): TenantSpaces => ({
  settle: async (id, call) => {
    const { facts, cluster } = await registeredHub(registry, id, call);
    const { tenant, signal } = call;
    const order: TenantSpaceOrder = {
      hub: id,
      tenant,
      namespace: facts.namespace,
      namespaces: ownNamespaces(facts, tenant),
      simulated: facts.simulated,
      controller: facts.controller,
      ...defined({ cluster }),
    };
    const space = tenantSpaceId(id, tenant);
    const known = (await commandRunner.peek(spaces, space, { signal })).state;
    if (isReadySpace(known, order)) return undefined;
    const command = { type: 'RequestSpace', at: clock.now(), ...order } as const;
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type);
    const context = { ...contextOf(call, commandId), project: '', hub: id };
    const outcome = await commandRunner.execute(spaces, space, command, context, { step: true });
    const { state } = outcome.loaded;
    if (outcome.outcome === 'accepted' && isReadySpace(state, order)) return undefined;
    const detail = detailOf(state, id);
    return { waiting: detail === undefined ? WAITING : STUCK, ...defined({ detail }) };
  },
});

const detailOf = (state: TenantSpaceState, hub: string): string | undefined =>
  isSpace(state) && state.failure !== undefined
    ? `hub ${hub}, tenant ${state.tenant}: ${state.failure.reason}: ${state.failure.message}`
    : undefined;

/**
 * Effect port `tenants`:
 *
 * - `look` {} → {gone}: whether the tenant was removed.
 */
export const createTenantEffects = (commandRunner: Pick<CommandRunner, 'load'>): EffectPort =>
  effectPort(
    {
      look: async (_args: JsonObject, { tenant, signal }: EffectCall) => {
        const view = tenantKind.view(
          (await commandRunner.load(aggregateOf(tenantKind), tenant, { signal })).state,
        );
        return done({ gone: view.exists && view.archived });
      },
    },
    (error) => outcomeOf(error) ?? storeOutcome(error),
  );
