import { isStored } from '../../domain/catalog/document.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import {
  bookOf,
  externalIpPool,
  type PoolCommand,
  type PoolState,
} from '../../domain/networks/external-ip-pool.resource.ts';
import type { Holder } from '../../domain/holder.ts';
import { holdingOf } from '../../domain/networks/address-book.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defined, stringAt } from '../../domain/json-tools.ts';
import { isAborted } from '../../domain/placed-document.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CommandOutcome, CommandRunner } from '../commands/command.ts';
import { contextOf, storeOutcome } from '../process-runner/effect-commands.ts';
import { done, refused } from './hub-effects.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Clock } from '../ports.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';

type Args = {
  readonly pool: string;
  readonly holder: Holder;
  readonly wanted?: string;
  readonly address?: string;
  readonly generation?: number;
};

const pools = aggregateOf(externalIpPool);

/** Reasons that pass by themselves: a claim refused for one of them waits. */
const PASSING: readonly string[] = ['ADDRESSES_RESTING', 'POOL_EXHAUSTED', 'ADDRESS_RESTING'];

/**
 * Effect port `addresses`: what an external IP asks of its pool, whose own stream decides. All of it may be repeated.
 *
 * - `place` {pool} → {place}: where the pool is; null: nowhere yet, or it was aborted and leaves its hub.
 * - `claim` {pool, holder, wanted?} → {generation, address?}, or {waiting, until?} where there is none at the moment.
 * - `observe` {pool, holder, address} → {address}: the hub shows it, and the pool has it down for the holder; or, with
 *   {reason, message}, why not.
 * - `release` {pool, holder, generation?} → {}: gives back what the holder was given as this generation. Absent: it was
 *   told of none; what came after that is given back by `address-repair.ts`.
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
    args: Args,
    command: PoolCommand,
    call: EffectCall,
  ): Promise<CommandOutcome<PoolState>> => {
    const state = await poolOf(args, call);
    const commandId = derivedCommandId(call.effectId, call.attempt, command.type);
    const owner = isStored(state) ? { tenant: state.tenant, project: state.project } : {};
    const context = { ...contextOf(call, commandId), ...owner };
    return commandRunner.execute(pools, args.pool, command, context, { step: true, inLine: true });
  };

  const heldIn = (state: PoolState, holder: Holder): JsonObject => {
    const { generation, address } = holdingOf(bookOf(state), holder) ?? {};
    return defined({ generation, address });
  };

  const operations: {
    readonly [operation: string]: (args: Args, call: EffectCall) => Promise<EffectOutcome>;
  } = {
    place: async (args, call) => {
      const pool = await poolOf(args, call);
      return done({ place: (isAborted(pool) ? undefined : pool.place) ?? null });
    },
    look: async (args, call) => done(heldIn(await poolOf(args, call), args.holder)),
    claim: async (args, call) => {
      const { holder, wanted } = args;
      const command = { type: 'ClaimAddress', at: clock.now(), holder } as const;
      const asked = wanted === undefined ? command : { ...command, wanted };
      const outcome = await execute(args, asked, call);
      if (outcome.outcome === 'accepted') return done(heldIn(outcome.loaded.state, holder));
      const { code, message, facts } = outcome.rejection;
      if (!PASSING.includes(code)) return refused(code, message);
      const until = stringAt(facts, 'until');
      return done({ waiting: message, ...(until === '' ? {} : { until }) });
    },
    observe: async (args, call) => {
      const { holder, address = '' } = args;
      const outcome = await execute(args, { type: 'ObserveAddress', at: clock.now(), holder, address }, call);
      if (outcome.outcome === 'rejected') {
        const { code: reason, message } = outcome.rejection;
        return done({ address, reason, message });
      }
      if (heldIn(outcome.loaded.state, holder)['address'] === address) return done({ address });
      const message = `the hub shows address ${address}, which belongs to another one`;
      return done({ address, reason: 'AddressShownTwice', message });
    },
    release: async (args, call) => {
      const { holder, generation } = args;
      if (generation === undefined) return done({});
      const command = { type: 'ReleaseAddress', at: clock.now(), holder, generation } as const;
      const outcome = await execute(args, command, call);
      return outcome.outcome === 'accepted'
        ? done({})
        : refused(outcome.rejection.code, outcome.rejection.message);
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
