import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection, type Decider, type DomainEvent } from '../../../../src/domain/decider.ts';
import type { PrefixPoolEvent, VlanPoolEvent } from '../../../../src/domain/pools/event-types.ts';
import { heldIn, type PoolCommand } from '../../../../src/domain/pools/pool.ts';
import {
  areDisjoint,
  blocksOf,
  sizeOfBlock,
  withBlock,
  withoutBlock,
} from '../../../../src/domain/pools/prefix-blocks.ts';
import { prefixPoolDecider, prefixRules } from '../../../../src/domain/pools/prefix-pool.ts';
import { vlanPoolDecider, vlanRules } from '../../../../src/domain/pools/vlan-pool.ts';
import { auditPool, withoutPrefix, withoutVlan } from '../../../support/pools/audit-pool.ts';
import { cases, check } from '../../../support/property.ts';

const START = Date.parse('2026-11-23T09:00:00.000Z');
const timeOf = (minute: number): string => new Date(START + minute * 60_000).toISOString();
const HOLDERS = Array.from({ length: 12 }, (_, i) => `h${i}`);

/** What many allocators do one after the other, on clocks of their own. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('take' as const), who: fc.constantFrom(...HOLDERS) }) },
  {
    weight: 5,
    // 0: the present generation; others are stale, or of another holder, or never were.
    arbitrary: fc.record({
      do: fc.constant('give' as const),
      who: fc.constantFrom(...HOLDERS),
      off: fc.constantFrom(0, 0, 0, -1, 1, 20),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('move' as const), minutes: fc.integer({ min: -30, max: 50 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('size' as const), to: fc.nat({ max: 2 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

type Worked<Event> = { readonly events: readonly Event[]; readonly refused: readonly string[] };

/** Carries the steps out; asserts what must hold of each decision by itself. */
const work = <
  State extends { readonly pool?: { readonly generation: number } },
  Request,
  Event extends DomainEvent,
>(
  decider: Decider<State, PoolCommand<never, Request>, Event>,
  created: Event,
  sizes: readonly object[],
  request: (who: string) => Request,
  heldBy: (state: State, who: string) => number | undefined,
  steps: readonly Step[],
): Worked<Event> => {
  const events: Event[] = [created];
  const refused: string[] = [];
  let state = decider.evolve(decider.initialState(), created);
  let minute = 0;
  for (const each of steps) {
    if (each.do === 'move') {
      minute += each.minutes;
      continue;
    }
    const at = timeOf(minute);
    const holder = { kind: 'cluster', id: each.do === 'size' ? '' : each.who };
    const held = heldBy(state, holder.id);
    const generation = each.do === 'give' ? (held ?? 1) + each.off : 0;
    const command =
      each.do === 'take'
        ? { type: 'AllocateFromPool' as const, at, holder, purpose: 'p', request: request(each.who) }
        : each.do === 'give'
          ? { type: 'ReleaseToPool' as const, at, holder, generation }
          : { type: 'ResizePool' as const, at, reason: 'r', size: sizes[each.to] ?? {} };
    const decided = decider.decide(state, command);
    if (isRejection(decided)) {
      refused.push(decided.code);
      if (each.do === 'give') expect(held).to.not.equal(generation);
      continue;
    }
    if (each.do === 'give') expect(held, 'only what it holds').to.equal(generation);
    // Given again: nothing changes.
    if (each.do === 'take' && held !== undefined) expect(decided).to.deep.equal([]);
    state = decided.reduce(decider.evolve, state);
    events.push(...decided);
  }
  return { events, refused };
};

const VLAN_SIZES = [
  { ranges: ['100-105'] },
  { ranges: ['100-103', '105-107'] },
  { ranges: ['98-106'], reserved: ['99'] },
];
const PREFIX_SIZES = [
  { ranges: ['10.0.0.0/25', 'fd00::/63'] },
  { ranges: ['10.0.0.0/26', 'fd00::/63'] },
  { ranges: ['10.0.0.0/24', 'fd00::/62'], reserved: ['10.0.0.192/26'] },
];
const REQUESTS = [{ v4: 27 }, { v4: 26, v6: 64 }, { v6: 63 }, { v4: 25 }, { v4: 28, v6: 64 }];
const SIZED = { zone: 'east', reserved: [] };

describe('allocations of a pool', () => {
  const steps = fc.array(step, { maxLength: 120, size: 'max' });
  const quarantine = fc.constantFrom(0, 600, 3_600);

  it('property: no VLAN is held twice, and none leaves quarantine early', () => {
    check(
      fc.property(steps, quarantine, (all, quarantineSeconds) => {
        const created: VlanPoolEvent = {
          type: 'VlanPoolCreated',
          data: { at: timeOf(0), fabric: 'f', ...SIZED, ranges: ['100-105'], quarantineSeconds, reason: 'r' },
        };
        const { events } = work(
          vlanPoolDecider as never,
          created as DomainEvent,
          VLAN_SIZES,
          () => ({}),
          ({ pool }: { readonly pool?: never }, who) =>
            pool === undefined
              ? undefined
              : heldIn<object>(pool).find(({ holder }) => holder.id === who)?.allocation.generation,
          all,
        );
        auditPool(
          events as readonly { readonly type: string; readonly data: { readonly vlanId?: number } }[],
          ({ vlanId }) => [String(vlanId)],
          withoutVlan,
        );
        // Folded again from the log, it is the same: what is free, held and resting adds up.
        const { pool } = (events as readonly VlanPoolEvent[]).reduce(
          vlanPoolDecider.evolve,
          vlanPoolDecider.initialState(),
        );
        if (pool === undefined) throw new Error('no pool');
        const held = heldIn(pool).map(({ allocation }) => allocation);
        const whole = vlanRules.stockOf(pool.definition, held, vlanRules.restingOf(pool.stock));
        expect(pool.count).to.equal(held.length);
        expect(whole.released).to.deep.equal(pool.stock.released);
        expect(whole.fresh).to.deep.equal(pool.stock.fresh);
      }),
      { numRuns: cases(2_000) },
    );
  });

  it('property: prefixes that are held are disjoint, and none leaves quarantine early', () => {
    check(
      fc.property(steps, quarantine, (all, quarantineSeconds) => {
        const created: PrefixPoolEvent = {
          type: 'PrefixPoolCreated',
          data: {
            at: timeOf(0),
            vrf: 'v',
            ...SIZED,
            ranges: PREFIX_SIZES[0]?.ranges ?? [],
            quarantineSeconds,
            reason: 'r',
          },
        };
        const { events } = work(
          prefixPoolDecider as never,
          created as DomainEvent,
          PREFIX_SIZES,
          (who) => REQUESTS[Number(who.slice(1)) % REQUESTS.length] ?? {},
          ({ pool }: { readonly pool?: never }, who) =>
            pool === undefined
              ? undefined
              : heldIn<object>(pool).find(({ holder }) => holder.id === who)?.allocation.generation,
          all,
        );
        const told = (events as readonly PrefixPoolEvent[]).filter(
          ({ type }) => type !== 'PrefixPoolExhausted',
        );
        auditPool(told, (data) => ('prefixes' in data ? data.prefixes : []), withoutPrefix);
        const { pool } = (events as readonly PrefixPoolEvent[]).reduce(
          prefixPoolDecider.evolve,
          prefixPoolDecider.initialState(),
        );
        if (pool === undefined) throw new Error('no pool');
        const held = heldIn(pool).map(({ allocation }) => allocation);
        const whole = prefixRules.stockOf(pool.definition, held, prefixRules.restingOf(pool.stock));
        for (const family of ['v4', 'v6'] as const)
          expect(whole[family].free).to.deep.equal(pool.stock[family].free);
      }),
      { numRuns: cases(1_000) },
    );
  });

  it('property: free blocks keep their size, whatever is taken out and put back', () => {
    const whole = blocksOf(['10.0.0.0/24']);
    const sizeOf = (blocks: typeof whole): bigint =>
      blocks.reduce((sum, block) => sum + sizeOfBlock(block), 0n);
    const part = fc.tuple(fc.integer({ min: 24, max: 32 }), fc.nat({ max: 255 }));
    check(
      fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
        let free = whole;
        const taken: (typeof whole)[number][] = [];
        for (const [length, offset] of parts) {
          const [block] = blocksOf([`10.0.0.${offset}/${length}`]);
          if (block === undefined || taken.some((other) => !areDisjoint(other, block))) continue;
          free = withoutBlock(free, block);
          taken.push(block);
          expect(sizeOf(free) + sizeOf(taken)).to.equal(256n);
        }
        for (const block of taken) free = withBlock(free, block);
        expect(free).to.deep.equal(whole);
      }),
      { numRuns: cases(2_000) },
    );
  });
});
