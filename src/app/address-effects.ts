import { isStored } from '../domain/catalog/document.ts';
import { aggregateOf } from '../domain/kinds.ts';
import {
  bookOf,
  externalIpPool,
  type PoolCommand,
  type PoolState,
} from '../domain/networks/external-ip-pool.resource.ts';
import { holdingOf, type Holder } from '../domain/networks/address-book.ts';
import { stringAt } from '../domain/json-tools.ts';
import type { EffectOutcome } from '../domain/workflow.ts';
import type { CommandOutcome, CommandRunner } from './command.ts';
import { contextOf, storeOutcome } from './effect-commands.ts';
import { done, refused } from './hub-effects.ts';
import { derivedCommandId } from './identifiers.ts';
import type { Clock } from './ports.ts';
import type { EffectCall, EffectPort } from './process-runner/types.ts';

type Args = {
  readonly pool: string;
  readonly holder: Holder;
  readonly wanted?: string;
  readonly address?: string;
};

const pools = aggregateOf(externalIpPool);

/** Reasons that pass by themselves: a claim refused for one of them waits. */
const PASSING: readonly string[] = ['ADDRESSES_RESTING', 'POOL_EXHAUSTED', 'ADDRESS_RESTING'];

/**
 * Effect port `addresses`: what an external IP asks of its pool, whose own stream decides. All of it may be repeated.
 *
 * - `place` {pool} → {place}: where the pool is; null: nowhere yet.
 * - `claim` {pool, holder, wanted?} → {generation, address?}, or {waiting, until?} where there is none at the moment.
 * - `observe` {pool, holder, address} → {taken}: the hub shows this address; true: it is another holder's.
 * - `release` {pool, holder} → {}: gives back what the holder has.
 * - `look` {pool, holder} → {generation?, address?}: what it has.
 */
export const createAddressEffects = ({
  commandRunner,
  clock,
}: {
  readonly commandRunner: CommandRunner;
  readonly clock: Clock;
}): EffectPort => {
  /** Waits for what is under way: an earlier attempt of the same effect may be. */
  const poolOf = async ({ pool }: Args, call: EffectCall): Promise<PoolState> =>
    (await commandRunner.load(pools, pool, { signal: call.signal })).state;

  /** In the name of the pool's tenant: the stream is the pool's, whoever's the holder is. */
  const execute = async (
    { pool }: Args,
    command: PoolCommand,
    state: PoolState,
    call: EffectCall,
  ): Promise<CommandOutcome<PoolState>> => {
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type);
    const owner = isStored(state) ? { tenant: state.tenant, project: state.project } : {};
    const context = { ...contextOf(call, commandId), ...owner };
    return commandRunner.execute(pools, pool, command, context, { step: true });
  };

  const heldIn = (state: PoolState, holder: Holder): EffectOutcome => {
    const { generation, address } = holdingOf(bookOf(state), holder) ?? {};
    return done({
      ...(generation === undefined ? {} : { generation }),
      ...(address === undefined ? {} : { address }),
    });
  };

  const operations: {
    readonly [operation: string]: (args: Args, call: EffectCall) => Promise<EffectOutcome>;
  } = {
    place: async (args, call) => done({ place: (await poolOf(args, call)).place ?? null }),
    look: async (args, call) => heldIn(await poolOf(args, call), args.holder),
    claim: async (args, call) => {
      const { holder, wanted } = args;
      const command = { type: 'ClaimAddress', at: clock.now(), holder } as const;
      const asked = wanted === undefined ? command : { ...command, wanted };
      const outcome = await execute(args, asked, await poolOf(args, call), call);
      if (outcome.outcome === 'accepted') return heldIn(await poolOf(args, call), holder);
      const { code, message, facts } = outcome.rejection;
      if (!PASSING.includes(code)) return refused(code, message);
      const until = stringAt(facts, 'until');
      return done({ waiting: message, ...(until === '' ? {} : { until }) });
    },
    observe: async (args, call) => {
      const { holder, address = '' } = args;
      const before = await poolOf(args, call);
      await execute(args, { type: 'ObserveAddress', at: clock.now(), holder, address }, before, call);
      return done({ taken: holdingOf(bookOf(await poolOf(args, call)), holder)?.address !== address });
    },
    release: async (args, call) => {
      const { holder } = args;
      const state = await poolOf(args, call);
      const held = holdingOf(bookOf(state), holder);
      if (held === undefined) return done({});
      const { generation } = held;
      await execute(args, { type: 'ReleaseAddress', at: clock.now(), holder, generation }, state, call);
      return heldIn(await poolOf(args, call), holder);
    },
  };

  return async (operation, args, call) => {
    try {
      const operationOf = operations[operation];
      // Arguments are this service's own, made by its workflow and typed there.
      return operationOf === undefined
        ? refused('NoSuchOperation', `no operation is called ${operation}`)
        : await operationOf(args as unknown as Args, call);
    } catch (error) {
      return storeOutcome(error);
    }
  };
};
