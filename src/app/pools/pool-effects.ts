import type { Rejection } from '../../domain/decider.ts';
import type { Holder } from '../../domain/holder.ts';
import { defined, stringAt } from '../../domain/json-tools.ts';
import { allocationsOf, type Allocation } from '../../domain/pools/pool.ts';
import type { PrefixRequest } from '../../domain/pools/prefix-pool.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandOutcome, CommandRunner } from '../commands/command.ts';
import { done, effectPort, failed, refused } from '../hubs/hub-effects.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import {
  POOL_KINDS,
  type AnyDefinition,
  type AnyItem,
  type AnyPoolCommand,
  type AnyPoolState,
  type PoolKind,
} from './pool-kinds.ts';
import type { PoolRegistry } from './pool-registry.ts';

type Asked = { readonly holder: Holder; readonly zone: string; readonly purpose: string };
type Given = { readonly holder: Holder; readonly pool?: string; readonly generation?: number };

/** Reasons that pass by themselves, or by what an operator does to a pool: who is refused for one of them waits. */
const PASSING: readonly string[] = ['POOL_EXHAUSTED', 'POOL_RETIRED', 'NOT_IN_POOL', 'NO_SUCH_POOL'];

/**
 * Effect port `pools`: what an order asks of the pools of its zone. Each pool's own stream decides; requests of one pool
 * follow each other without waiting for each other's commit. All of it may be repeated.
 *
 * - `vlan` {holder, zone, purpose} → {pool, fabric, vlanId, generation}, or {waiting, until?} where there is none at the
 *   moment. A holder has one for each purpose.
 * - `prefix` {holder, zone, purpose, lengths: {v4?, v6?}} → {pool, vrf, prefixes, gateways, generation}, or {waiting, until?}.
 * - `release-vlan`, `release-prefix` {holder, pool?, generation?} → {}. Without them all that it has: who was refused after an
 *   attempt without an answer does not know what that had given it.
 * - `look` {holder} → {vlans, prefixes}: what it has, in every pool.
 */
export const createPoolEffects = ({
  registry,
  commandRunner,
  clock,
}: {
  readonly registry: Pick<PoolRegistry, 'ready' | 'pools' | 'poolsOf'>;
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
}): EffectPort => {
  /** Waits for what is under way: an earlier attempt of the same effect may be. */
  const stateOf = async (kind: PoolKind, id: string, call: EffectCall): Promise<AnyPoolState> =>
    (await commandRunner.load(kind.aggregate, id, { signal: call.signal })).state;

  /** An effect's first attempt finds what an earlier effect was given: nothing of its own is under way. */
  const stateAtFirst = async (kind: PoolKind, id: string, call: EffectCall): Promise<AnyPoolState> =>
    call.mode === 'perform' && call.attempt === 1
      ? (await commandRunner.peek(kind.aggregate, id, { signal: call.signal })).state
      : stateOf(kind, id, call);

  const execute = (
    kind: PoolKind,
    id: string,
    command: AnyPoolCommand,
    call: EffectCall,
  ): Promise<CommandOutcome<AnyPoolState>> => {
    const which = command.type === 'ReleaseToPool' ? [command.generation] : [];
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type, id, ...which);
    return commandRunner.execute(kind.aggregate, id, command, contextOf(call, commandId), {
      step: true,
      inLine: true,
    });
  };

  const allocate = async (
    kind: PoolKind,
    { holder, zone, purpose }: Asked,
    request: object,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    await registry.ready(call.signal);
    const pools = registry.poolsOf(zone)[kind.name];
    for (const { id } of pools) {
      const held = heldIn(await stateAtFirst(kind, id, call), holder, purpose);
      if (held !== undefined) return done(shown(id, held));
    }
    const reasons: string[] = [];
    const untils: string[] = [];
    for (const { id, pool } of pools) {
      if (pool.retired) continue;
      const command = { type: 'AllocateFromPool', at: clock.now(), holder, purpose, request } as const;
      const outcome = await execute(kind, id, command, call);
      const held = heldIn(outcome.loaded.state, holder, purpose);
      if (outcome.outcome === 'accepted') {
        if (held !== undefined) return done(shown(id, held));
        // That nothing is left is told by an event, the first time.
        const told = outcome.events.find(({ type }) => type.endsWith('PoolExhausted'))?.data ?? {};
        reasons.push(`pool '${id}' is exhausted`);
        untils.push(stringAt(told as { readonly until: string }, 'until'));
        continue;
      }
      const { code, message, facts } = outcome.rejection;
      if (!PASSING.includes(code)) return refusal(outcome.rejection);
      reasons.push(code === 'POOL_EXHAUSTED' ? `pool '${id}' is exhausted` : `pool '${id}': ${message}`);
      untils.push(stringAt(facts, 'until'));
    }
    const until = untils.filter((each) => each !== '').toSorted()[0];
    const waiting = reasons.join('; ') || `zone '${zone}' has no ${kind.name} pool`;
    return done(defined({ waiting, until }));
  };

  const heldOf = async (
    kind: PoolKind,
    holder: Holder,
    call: EffectCall,
  ): Promise<readonly (Found & { readonly id: string })[]> => {
    await registry.ready(call.signal);
    const found = registry.pools(kind.name).map(async ({ id }) => {
      const state = await stateOf(kind, id, call);
      const { pool } = state;
      if (pool === undefined) return [];
      return allocationsOf(state, holder).map((allocation) => ({
        id,
        allocation,
        definition: pool.definition,
      }));
    });
    return (await Promise.all(found)).flat();
  };

  const release = async (
    kind: PoolKind,
    { holder, pool, generation }: Given,
    call: EffectCall,
  ): Promise<EffectOutcome> => {
    const given =
      pool === undefined || generation === undefined
        ? (await heldOf(kind, holder, call)).map(({ id, allocation }) => [id, allocation.generation] as const)
        : [[pool, generation] as const];
    for (const [id, one] of given) {
      const command = { type: 'ReleaseToPool', at: clock.now(), holder, generation: one } as const;
      const outcome = await execute(kind, id, command, call);
      if (outcome.outcome === 'rejected' && outcome.rejection.code !== 'ALREADY_RELEASED')
        return refusal(outcome.rejection);
    }
    return done({});
  };

  const look = async ({ holder }: Given, call: EffectCall): Promise<EffectOutcome> => {
    const shownOf = async (kind: PoolKind): Promise<readonly object[]> =>
      (await heldOf(kind, holder, call)).map(({ id, ...found }) => ({
        ...shown(id, found),
        purpose: found.allocation.purpose,
      }));
    return done({ vlans: await shownOf(POOL_KINDS.vlan), prefixes: await shownOf(POOL_KINDS.prefix) });
  };

  return effectPort(
    {
      vlan: (args: Asked, call) => allocate(POOL_KINDS.vlan, args, {}, call),
      prefix: (args: Asked & { readonly lengths: PrefixRequest }, call) =>
        allocate(POOL_KINDS.prefix, args, args.lengths, call),
      'release-vlan': (args: Given, call) => release(POOL_KINDS.vlan, args, call),
      'release-prefix': (args: Given, call) => release(POOL_KINDS.prefix, args, call),
      look,
    },
    // Throws what is no outcome of the store.
    storeOutcome,
  );
};

/** Others kept changing the pool: nothing was decided. */
const refusal = ({ kind, code, message }: Rejection): EffectOutcome =>
  kind === 'conflict' ? failed(code, message) : refused(code, message);

type Found = { readonly definition: AnyDefinition; readonly allocation: Allocation<AnyItem> };

const heldIn = (state: AnyPoolState, holder: Holder, purpose: string): Found | undefined => {
  const allocation = allocationsOf(state, holder).find((each) => each.purpose === purpose);
  return allocation === undefined || state.pool === undefined
    ? undefined
    : { allocation, definition: state.pool.definition };
};

const shown = (pool: string, { definition, allocation }: Found): { readonly [name: string]: unknown } => {
  const { fabric, vrf } = definition;
  const { purpose: _purpose, generation, ...item } = allocation;
  return { pool, ...defined({ fabric, vrf }), ...item, generation };
};
