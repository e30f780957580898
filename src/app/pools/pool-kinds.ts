import type { DomainEvent } from '../../domain/decider.ts';
import { prefixPoolAggregate, vlanPoolAggregate } from '../../domain/kinds.ts';
import { prefixCounts, vlanCounts, type PoolCounts } from '../../domain/pools/pool-counts.ts';
import type { Definition, Pool, PoolCommand, PoolState, StockRules } from '../../domain/pools/pool.ts';
import { prefixRules } from '../../domain/pools/prefix-pool.ts';
import { vlanRules } from '../../domain/pools/vlan-pool.ts';
import type { Aggregate } from '../commands/command.ts';

/** Pools of both kinds as what works with any of them sees them. */
export type PoolKindName = 'vlan' | 'prefix';
export type AnyDefinition = Definition & { readonly fabric?: string; readonly vrf?: string };
export type AnyItem = {
  readonly vlanId?: number;
  readonly prefixes?: readonly string[];
  readonly gateways?: readonly string[];
};
export type AnyPool = Pool<AnyDefinition, AnyItem, unknown>;
export type AnyPoolState = PoolState<AnyDefinition, AnyItem, unknown>;
export type AnyPoolCommand = PoolCommand<AnyDefinition, object>;

export type PoolKind = {
  readonly name: PoolKindName;
  readonly aggregate: Aggregate<AnyPoolState, AnyPoolCommand, DomainEvent>;
  readonly rules: Pick<StockRules<AnyDefinition, object, AnyItem, unknown>, 'restingOf'>;
  /** Id of the stream in which its ranges must not overlap those of others. */
  readonly spaceOf: (definition: AnyDefinition) => string;
  readonly countsOf: (pool: AnyPool, at: string) => readonly PoolCounts[];
};

export const POOL_KINDS: { readonly [Name in PoolKindName]: PoolKind } = {
  vlan: {
    name: 'vlan',
    aggregate: vlanPoolAggregate as unknown as PoolKind['aggregate'],
    rules: vlanRules as unknown as PoolKind['rules'],
    spaceOf: ({ fabric = '' }) => `fabric.${fabric}`,
    countsOf: vlanCounts as unknown as PoolKind['countsOf'],
  },
  prefix: {
    name: 'prefix',
    aggregate: prefixPoolAggregate as unknown as PoolKind['aggregate'],
    rules: prefixRules as unknown as PoolKind['rules'],
    spaceOf: ({ vrf = '' }) => `vrf.${vrf}`,
    countsOf: prefixCounts as unknown as PoolKind['countsOf'],
  },
};
export const poolKinds: readonly PoolKind[] = Object.values(POOL_KINDS);
