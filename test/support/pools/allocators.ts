import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createPoolEffects } from '../../../src/app/pools/pool-effects.ts';
import { POOL_KINDS, type AnyDefinition, type PoolKindName } from '../../../src/app/pools/pool-kinds.ts';
import { createPoolRegistry } from '../../../src/app/pools/pool-registry.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { numberAt, stringAt } from '../../../src/domain/json-tools.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { eventually } from '../eventually.ts';
import { commandContext, effectCall } from '../hubs/hub-fixture.ts';
import { silentLogger } from '../loggers.ts';
import { auditPool, withoutPrefix, withoutVlan } from './audit-pool.ts';

/** Seeded, so that a failure can be repeated (mulberry32). */
const randomOf = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

/** One instance of the service: what it remembers is gone when another one takes over. */
const instanceOn = (store: EventStore, now: () => string) => {
  const codec = createEventCodec(eventTypes);
  const clock = { ...systemClock(), now };
  const commandRunner = createCommandRunner({
    store,
    codec,
    clock,
    instance: 'fixture',
    recordRejection: () => undefined,
  });
  const registry = createPoolRegistry({ store, codec, timers: systemTimers(), logger: silentLogger });
  const end = new AbortController();
  const running = registry.run(end.signal);
  return {
    commandRunner,
    registry,
    effects: createPoolEffects({ registry, commandRunner, clock }),
    stop: async () => {
      end.abort();
      await running;
    },
  };
};

const DEFINITIONS: { readonly [Kind in PoolKindName]: readonly AnyDefinition[] } = {
  vlan: [
    { fabric: 'one', zone: 'east', ranges: ['100-119'], reserved: ['105'], quarantineSeconds: 30 },
    { fabric: 'two', zone: 'east', ranges: ['100-129'], reserved: [], quarantineSeconds: 0 },
  ],
  prefix: [
    { vrf: 'one', zone: 'east', ranges: ['10.0.0.0/23', 'fd00::/60'], reserved: [], quarantineSeconds: 30 },
    { vrf: 'two', zone: 'east', ranges: ['10.8.0.0/24', 'fd08::/60'], reserved: [], quarantineSeconds: 0 },
  ],
};
const LENGTHS = [{ v4: 27 }, { v4: 26, v6: 64 }, { v6: 63 }, { v4: 28, v6: 64 }];

/**
 * `allocators` at once take and give back until so many operations are done; their clocks jump. Two instances know nothing
 * of each other and are replaced now and then amid what they are doing. Then the log is read, event by event.
 */
export const raceAllocators = async (
  kind: PoolKindName,
  {
    operations,
    allocators,
    seed,
    instances: many,
  }: {
    readonly operations: number;
    readonly allocators: number;
    readonly seed: number;
    readonly instances: 1 | 2;
  },
): Promise<{ readonly given: number; readonly waited: number }> => {
  const random = randomOf(seed);
  const pick = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value;
  const store = createMemoryEventStore({ singleWriter: many === 1 });
  let ms = Date.parse('2026-11-23T09:00:00.000Z');
  const now = (): string => {
    ms += Math.floor(random() * 2_000) - (random() < 0.01 ? 60_000 : 0);
    return new Date(ms).toISOString();
  };
  const all: ReturnType<typeof instanceOn>[] = [];
  const begin = (): ReturnType<typeof instanceOn> => {
    const instance = instanceOn(store, now);
    all.push(instance);
    return instance;
  };
  const instances = Array.from({ length: many }, begin);
  const changeAfter = Math.ceil(operations / 20);
  const { aggregate } = POOL_KINDS[kind];
  for (const [i, definition] of DEFINITIONS[kind].entries()) {
    const command = { type: 'CreatePool', at: now(), reason: 'race', definition } as const;
    await instances[0]?.commandRunner.execute(aggregate, `p${i}`, command, commandContext(`create-${i}`));
  }
  for (const { registry } of instances)
    await eventually('both pools', () => registry.pools(kind).length === DEFINITIONS[kind].length);

  const counts = { given: 0, waited: 0 };
  let left = operations;
  const allocate = async (number: number): Promise<void> => {
    const holder = { kind: 'cluster', id: `order-${number}` };
    let held: JsonObject | undefined;
    while (left > 0) {
      left -= 1;
      if (many === 2 && left % changeAfter === 0) instances[left % 2] = begin();
      const { effects } = pick(instances);
      if (held === undefined) {
        const args = {
          holder,
          zone: 'east',
          purpose: 'net',
          ...(kind === 'prefix' ? { lengths: pick(LENGTHS) } : {}),
        };
        // What one instance was told may not be known to another: look, as a retry does.
        const call = effectCall({ attempt: 2, mode: 'observe' });
        const outcome = await effects(kind, args, call);
        if (outcome.outcome === 'done' && outcome.result['pool'] !== undefined) {
          held = outcome.result;
          counts.given += 1;
        } else counts.waited += 1;
      } else {
        const args = { holder, pool: stringAt(held, 'pool'), generation: numberAt(held, 'generation') ?? 0 };
        const outcome = await effects(`release-${kind}`, args, effectCall());
        if (outcome.outcome === 'done') held = undefined;
      }
    }
  };
  await Promise.all(Array.from({ length: allocators }, (_, i) => allocate(i)));
  for (const [i] of DEFINITIONS[kind].entries()) {
    const events: { readonly type: string; readonly data: JsonObject }[] = [];
    for await (const event of store.readStream(`${kind}Pool-p${i}`)) events.push(event);
    const told = kind === 'vlan' ? events : events.filter(({ type }) => type !== 'PrefixPoolExhausted');
    auditPool(
      told,
      (data) =>
        kind === 'vlan' ? [String(numberAt(data, 'vlanId'))] : (data['prefixes'] as readonly string[]),
      kind === 'vlan' ? withoutVlan : withoutPrefix,
    );
  }
  await Promise.all(all.map(({ stop }) => stop()));
  expect(counts.given).to.be.greaterThan(0);
  return counts;
};
