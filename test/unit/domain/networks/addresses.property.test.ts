import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection } from '../../../../src/domain/decider.ts';
import {
  addressRules,
  bookOf,
  externalIpPool,
  type PoolState,
} from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import { holdingOf, holdingsOf } from '../../../../src/domain/networks/address-book.ts';
import { addressText, moved, parseAddress, parseRanges, sizeOf } from '../../../../src/domain/ranges.ts';
import { objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { Placed } from '../../../../src/domain/placed-document.ts';
import { createAddressEffects } from '../../../../src/app/hubs/address-effects.ts';
import { repairAddresses } from '../../../../src/app/hubs/address-repair.ts';
import type { Holder } from '../../../../src/domain/holder.ts';
import { aggregateOf } from '../../../../src/domain/kinds.ts';
import { commandContext, effectCall, hubFixture } from '../../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../../support/loggers.ts';
import { manualTime } from '../../../support/manual-time.ts';
import { cases, check, checkAsync } from '../../../support/property.ts';

const START = Date.parse('2026-11-23T09:00:00.000Z');
const timeOf = (minute: number): string => new Date(START + minute * 60_000).toISOString();
const HOLDERS = ['a', 'b', 'c', 'd', 'e', 'f'];
const LATE = ['over-1', 'over-2', 'stays-1', 'stays-2'] as const;
const holderOf = (id: string): Holder => ({ kind: 'externalIp', id });

/** Pools of one address, of some, and of more than can be counted through. */
const POOLS = [
  { cidrs: ['192.0.2.7/32'], family: 'IP_FAMILY_IPV4' },
  { cidrs: ['192.0.2.0/31', '198.51.100.0/30', '203.0.113.9/32'], family: 'IP_FAMILY_IPV4' },
  { cidrs: ['10.0.0.0/8'], family: 'IP_FAMILY_IPV4' },
  { cidrs: ['2001:db8::/127'], family: 'IP_FAMILY_IPV6' },
  { cidrs: ['2001:db8:1::/126', '2001:db8:1::ff/128'], family: 'IP_FAMILY_IPV6' },
  { cidrs: ['2001:db8:2::/48'], family: 'IP_FAMILY_IPV6' },
] as const;
const QUARANTINES = [
  ['PT0S', 0],
  ['PT10M', 10],
  ['P1D', 24 * 60],
] as const;

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('claim' as const), who: fc.constantFrom(...HOLDERS) }),
  },
  {
    weight: 2,
    // Offset from the first address of the pool: inside, at the edge and outside.
    arbitrary: fc.record({
      do: fc.constant('wish' as const),
      who: fc.constantFrom(...HOLDERS),
      offset: fc.integer({ min: -1, max: 4 }),
    }),
  },
  {
    weight: 5,
    // 0: the present generation; others are stale or never were.
    arbitrary: fc.record({
      do: fc.constant('release' as const),
      who: fc.constantFrom(...HOLDERS),
      off: fc.constantFrom(0, 0, 0, -1, 1),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('move' as const), minutes: fc.integer({ min: -30, max: 900 }) }),
  },
);

/** What a person with a list would keep: who has what, and until when the rest of an address lasts. */
type Model = {
  readonly owners: Map<string, { readonly address: string; readonly generation: number }>;
  readonly rests: Map<string, number>;
};

const poolOf = (cidrs: readonly string[], family: string, quarantine: string): PoolState => {
  const decided = externalIpPool.decider.decide(externalIpPool.decider.initialState(), {
    type: 'CreateDocument',
    at: timeOf(0),
    id: 'p',
    tenant: 'shared',
    project: '',
    name: 'p',
    creator: 'someone',
    document: {
      metadata: { annotations: { 'fulfillment-ledger/quarantine': quarantine } },
      spec: { cidrs: [...cidrs], ip_family: family },
    },
  });
  if (isRejection(decided)) throw new Error(decided.message);
  return decided.reduce(externalIpPool.decider.evolve, externalIpPool.decider.initialState());
};

/** Every address of a small pool in numeric order; of a large one as many as the holders could ever have. */
const firstAddresses = (cidrs: readonly string[], most: number): readonly string[] =>
  parseRanges(cidrs).flatMap((range) => {
    const size = sizeOf([range]);
    const count = size < BigInt(most) ? Number(size) : most;
    return Array.from({ length: count }, (_, i) => addressText(moved(range.first, BigInt(i))));
  });

describe('addresses of a pool', () => {
  it('property: none is given twice or lost, none too early, and the counters are exact', () => {
    check(
      fc.property(
        fc.constantFrom(...POOLS),
        fc.constantFrom(...QUARANTINES),
        fc.array(step, { maxLength: 60 }),
        ({ cidrs, family }, [quarantine, restMinutes], steps) => {
          const all = firstAddresses(cidrs, 80);
          const first = parseAddress(all[0] ?? '');
          const size = sizeOf(parseRanges(cidrs));
          const model: Model = { owners: new Map(), rests: new Map() };
          let state = poolOf(cidrs, family, quarantine);
          let minute = 0;

          const isFree = (address: string): boolean =>
            ![...model.owners.values()].some((owner) => owner.address === address) &&
            (model.rests.get(address) ?? -Infinity) <= minute;
          const expected = (wish: string | undefined): string | undefined =>
            wish === undefined ? all.find(isFree) : all.includes(wish) && isFree(wish) ? wish : undefined;

          for (const each of steps) {
            if (each.do === 'move') {
              minute += each.minutes;
              continue;
            }
            const holder = holderOf(each.who);
            const had = model.owners.get(each.who);
            if (each.do === 'release') {
              const generation = (had?.generation ?? 1) + each.off;
              const decided = externalIpPool.decider.decide(state, {
                type: 'ReleaseAddress',
                at: timeOf(minute),
                holder,
                generation,
              });
              if (isRejection(decided)) throw new Error(decided.message);
              state = decided.reduce(externalIpPool.decider.evolve, state);
              if (had?.generation === generation) {
                model.owners.delete(each.who);
                if (restMinutes > 0) model.rests.set(had.address, minute + restMinutes);
              }
            } else {
              const wish =
                each.do === 'claim' || first === undefined
                  ? undefined
                  : addressText(moved(first, BigInt(each.offset)));
              const decided = externalIpPool.decider.decide(state, {
                type: 'ClaimAddress',
                at: timeOf(minute),
                holder,
                ...(wish === undefined ? {} : { wanted: wish }),
              });
              const wanted = had === undefined ? expected(wish) : had.address;
              if (isRejection(decided)) {
                expect(wanted, decided.message).to.equal(undefined);
                if (decided.code === 'ADDRESSES_RESTING') {
                  const next = Math.min(...[...model.rests.values()].filter((until) => until > minute));
                  expect(decided.facts?.['until']).to.equal(timeOf(next));
                } else if (wish === undefined) expect(model.owners.size).to.equal(Number(size));
              } else {
                state = decided.reduce(externalIpPool.decider.evolve, state);
                const held = holdingOf(bookOf(state), holder);
                expect(held?.address).to.equal(wanted);
                if (had !== undefined) expect(held?.generation).to.equal(had.generation);
                else if (held?.address !== undefined) {
                  model.owners.set(each.who, { address: held.address, generation: held.generation });
                  model.rests.delete(held.address);
                }
              }
            }
            const view = externalIpPool.view(state);
            const status = view.exists ? objectAt(view.document, 'status') : {};
            const counted = (field: string): bigint => BigInt(stringAt(status, field) || '0');
            const total = size < 2n ** 63n ? size : 2n ** 63n - 1n;
            expect(counted('total')).to.equal(total);
            expect(counted('allocated')).to.equal(BigInt(model.owners.size));
            expect(counted('available')).to.equal(total - BigInt(model.owners.size));
          }
        },
      ),
      { numRuns: cases(1_000) },
    );
  });

  it('of a large pool take as much room as those that were given out', () => {
    let state = poolOf(['10.0.0.0/8'], 'IP_FAMILY_IPV4', 'PT0S');
    for (let i = 1; i <= 3_000; i += 1) {
      const decided = externalIpPool.decider.decide(state, {
        type: 'ClaimAddress',
        at: timeOf(0),
        holder: holderOf(`h${i}`),
      });
      if (isRejection(decided)) throw new Error(decided.message);
      state = decided.reduce(externalIpPool.decider.evolve, state);
    }
    expect(holdingOf(bookOf(state), holderOf('h3000'))?.address).to.equal('10.0.11.184');
    expect(JSON.stringify(state).length).to.be.lessThan(3_000 * 300);
    expect(addressRules(state as Placed).ranges).to.have.length(1);
  });

  it('property: what lands after its holder gave back or is over frees and holds nothing of others', async () => {
    const call = fc.record({
      who: fc.constantFrom(...LATE),
      operation: fc.constantFrom('claim' as const, 'observe' as const, 'release' as const),
      // Release: that of the first claim's answer, which is of an old cycle after another claim.
      isFirst: fc.boolean(),
    });
    await checkAsync(
      fc.asyncProperty(
        fc.boolean(),
        fc.array(call, { maxLength: 12 }),
        fc.array(call, { maxLength: 8 }),
        async (simulated, calls, late) => {
          const fixture = hubFixture();
          const time = manualTime();
          const pool = aggregateOf(externalIpPool);
          const common = { at: timeOf(0), tenant: 'shared', project: '', name: 'p', creator: 'someone' };
          const document = {
            metadata: { annotations: { 'fulfillment-ledger/quarantine': 'PT0S' } },
            spec: { cidrs: ['192.0.2.0/28'], ip_family: 'IP_FAMILY_IPV4' },
          };
          const place = { hub: 'h', namespace: 'osac', objectName: 'p', controller: 'operator' } as const;
          for (const command of [
            { type: 'CreateDocument', id: 'p', ...common, document },
            { type: 'PlaceOnHub', at: timeOf(0), ...place, simulated },
          ] as const)
            await fixture.commandRunner.execute(pool, 'p', command, commandContext(command.type));
          const effects = createAddressEffects({ commandRunner: fixture.commandRunner, clock: time.clock });
          const held = async () =>
            holdingsOf(bookOf((await fixture.commandRunner.load(pool, 'p')).state)).toSorted((one, other) =>
              one.holder.id < other.holder.id ? -1 : 1,
            );
          /** What the model says that each holder has, and the generations that it was told. */
          const has = new Map<string, number>();
          const told = new Map<string, number[]>();
          const carryOut = async ({ who, operation, isFirst }: (typeof calls)[number]): Promise<void> => {
            const answered = told.get(who) ?? [];
            const generation = isFirst ? answered[0] : answered.at(-1);
            const args = {
              pool: 'p',
              holder: holderOf(who),
              ...(operation === 'observe' ? { address: `192.0.2.${LATE.indexOf(who) + 3}` } : {}),
              ...(operation === 'release' && generation !== undefined ? { generation } : {}),
            };
            const outcome = await effects(operation, args, effectCall());
            expect(outcome.outcome).to.equal('done');
            const given = outcome.outcome === 'done' ? outcome.result['generation'] : undefined;
            if (typeof given === 'number') {
              has.set(who, given);
              told.set(who, [...answered, given]);
            }
            if (operation === 'release' && has.get(who) === generation) has.delete(who);
          };
          const expectHeld = async (): Promise<void> => {
            const now = (await held()).map(({ holder, generation }) => [holder.id, generation]);
            expect(now).to.deep.equal([...has].toSorted(([one], [other]) => (one < other ? -1 : 1)));
          };
          for (const each of calls) await carryOut(each);
          for (const who of ['over-1', 'over-2'] as const)
            await carryOut({ who, operation: 'release', isFirst: false });
          for (const each of late) await carryOut(each);
          await expectHeld();
          const before = await held();
          const stop = new AbortController();
          const repaired = repairAddresses({
            pages: () => [[{ id: 'p', tenant: 'shared', project: '' }]],
            commandRunner: fixture.commandRunner,
            holders: {
              isOver: ({ id }) => id.startsWith('over'),
              ownerOf: async () => undefined,
            },
            ...time,
            logger: silentLogger,
            signal: stop.signal,
          });
          await time.pass(60_000);
          stop.abort();
          await repaired;
          await fixture.stop();
          expect(await held()).to.deep.equal(before.filter(({ holder }) => holder.id.startsWith('stays')));
        },
      ),
      { numRuns: cases(120) },
    );
  });
});
