import { parseStreamName } from '../../domain/stream-name.ts';
import type { EventCodec } from '../log/event-codec.ts';
import { LogReplaced, type EventStore, type RecordedEvent } from '../log/event-store.ts';
import type { Logger, Timers } from '../ports.ts';
import { aborted, pause } from '../process-runner/pause.ts';
import { poolKinds, type AnyPool, type AnyPoolState, type PoolKindName } from './pool-kinds.ts';

export type KnownPool = {
  readonly kind: PoolKindName;
  readonly id: string;
  readonly pool: AnyPool;
};

export type PoolRegistry = {
  /** Follows the log; returns when `signal` was aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when everything that was in the log at the start is known. */
  ready(signal?: AbortSignal): Promise<void>;
  /** All of them in the order of their ids, retired ones too. */
  pools(kind?: PoolKindName): readonly KnownPool[];
  /** Those that serve a zone: what a retired one gave out stays there, but it gives out nothing more. */
  poolsOf(zone: string): { readonly [Kind in PoolKindName]: readonly KnownPool[] };
};

/** Orders ask for a pool that somebody has just made: news may be this late. */
const PATIENCE_MS = 10;
/** Milliseconds before a log that turned out to be another one is read again. */
const READ_AGAIN_MS = 1_000;

/** Every pool in memory, folded from the log by each instance. What it gives out is decided by its own stream. */
export const createPoolRegistry = ({
  store,
  codec,
  timers,
  logger,
}: {
  readonly store: EventStore;
  readonly codec: Pick<EventCodec, 'decode'>;
  readonly timers: Timers;
  readonly logger: Logger;
}): PoolRegistry => {
  const states = new Map<string, AnyPoolState>();
  const caughtUp = Promise.withResolvers<void>();

  const see = (event: RecordedEvent): void => {
    const { category } = parseStreamName(event.stream);
    const kind = poolKinds.find(({ aggregate }) => aggregate.category === category);
    if (kind === undefined) return;
    const { initialState, evolve } = kind.aggregate.decider;
    states.set(event.stream, evolve(states.get(event.stream) ?? initialState(), codec.decode(event)));
  };

  const follow = async (signal: AbortSignal): Promise<void> => {
    states.clear();
    const filter = { streamPrefixes: poolKinds.map(({ aggregate }) => `${aggregate.category}-`) };
    for await (const item of store.subscribe({
      filter,
      signal,
      patienceMs: PATIENCE_MS,
      name: 'pool registry',
    })) {
      if (item.kind === 'event') see(item.event);
      else if (item.kind === 'caught-up') caughtUp.resolve();
      else if (item.kind === 'unreadable') {
        const { stream, revision, reason } = item.event;
        logger.error({ stream, revision, reason }, 'event unreadable; pool stays as last known');
      }
    }
  };

  const pools = (of?: PoolKindName): readonly KnownPool[] =>
    poolKinds
      .filter(({ name }) => of === undefined || name === of)
      .flatMap(({ name, aggregate }) =>
        [...states].flatMap(([stream, { pool }]) => {
          const { category, id } = parseStreamName(stream);
          return pool === undefined || category !== aggregate.category ? [] : [{ kind: name, id, pool }];
        }),
      )
      .toSorted((left, right) => (left.id < right.id ? -1 : left.id > right.id ? 1 : 0));

  return {
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          await follow(signal);
        } catch (error) {
          if (!(error instanceof LogReplaced)) throw error;
          logger.warn({ reason: error.message }, 'log replaced: reading the pools again');
          await pause(timers, READ_AGAIN_MS, signal);
        }
      }
    },
    ready: async (signal) => {
      await (signal === undefined ? caughtUp.promise : Promise.race([caughtUp.promise, aborted(signal)]));
      signal?.throwIfAborted();
    },
    pools,
    poolsOf: (zone) => {
      const of = (kind: PoolKindName): readonly KnownPool[] =>
        pools(kind).filter(({ pool }) => pool.definition.zone === zone);
      return { vlan: of('vlan'), prefix: of('prefix') };
    },
  };
};
