import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection } from '../../../../src/domain/decider.ts';
import { entriesOf } from '../../../../src/domain/buckets.ts';
import { amountOf, dimensionOf, summed, type Amounts } from '../../../../src/domain/quotas/amounts.ts';
import type { QuotaEvent } from '../../../../src/domain/quotas/event-types.ts';
import {
  holdingOf,
  MAX_LIMIT,
  quotaDecider,
  type QuotaCommand,
  type QuotaState,
  type Use,
} from '../../../../src/domain/quotas/quota.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { cases, check } from '../../../support/property.ts';

const { given } = specify(quotaDecider);
const at = '2026-11-23T12:00:00.000Z';
const expiresAt = '2026-11-24T12:00:00.000Z';
const holder = (id: string) => ({ kind: 'cluster', id });
const nodes = (count: number): Amounts => ({ clusters: 1, 'nodes/fc430': count });
const inFlight = (count: number): Amounts => ({ ...nodes(count), orders: 1 });

const began: QuotaEvent = { type: 'QuotaCountBegan', data: { at, tenant: 'acme' } };
const limited = (limits: Amounts): QuotaEvent => ({
  type: 'QuotaLimitsSet',
  data: { at, tenant: 'acme', limits, reason: 'contract' },
});
const reserved = (id: string, count: number, seen = -1, by = id): QuotaEvent => ({
  type: 'QuotaReserved',
  data: { at, holder: holder(id), amounts: inFlight(count), seen, by, expiresAt },
});
const committed = (id: string, count: number, seen: number): QuotaEvent => ({
  type: 'QuotaCommitted',
  data: { at, holder: holder(id), amounts: nodes(count), seen },
});
const counted = (id: string, use: Use): QuotaEvent => ({
  type: 'QuotaUseCounted',
  data: { at, uses: [{ holder: holder(id), ...use }] },
});
const released = (id: string, why: 'ended' | 'refused' | 'expired' = 'ended'): QuotaEvent => ({
  type: 'QuotaReleased',
  data: { at, holder: holder(id), why },
});

const setLimits = (limits: Amounts): QuotaCommand => ({
  type: 'SetLimits',
  at,
  tenant: 'acme',
  limits,
  reason: 'contract',
});
const reserve = (id: string, count: number, seen = -1, by = id): QuotaCommand => ({
  type: 'ReserveQuota',
  at,
  holder: holder(id),
  amounts: nodes(count),
  seen,
  by,
});
const settle = (
  id: string,
  seen: number,
  use?: Omit<Use, 'seen'>,
  more: { own?: string; why?: 'refused' | 'expired' } = {},
): QuotaCommand => ({
  type: 'SettleQuota',
  at,
  holder: holder(id),
  seen,
  why: 'ended',
  ...(use === undefined ? {} : { use }),
  ...more,
});
const there = (count: number) => ({ amounts: nodes(count), settled: true });
const ordered = (count: number) => ({ amounts: nodes(count), settled: false });

describe('quotas: limits', () => {
  it('of a tenant without any hold nothing', () => {
    given().when(reserve('c1', 3)).thenNothing();
    given()
      .when(settle('c1', 4, there(3)))
      .thenNothing();
    given().when(setLimits({})).thenNothing();
  });
  it('are set once what exists is counted', () => {
    given()
      .when(setLimits({ clusters: 1 }))
      .thenRejected('QUOTA_NOT_COUNTED');
    given().when({ type: 'BeginCount', at, tenant: 'acme' }).thenEvents(began);
    given(began)
      .when(setLimits({ clusters: 1 }))
      .thenEvents(limited({ clusters: 1 }));
    given(began, limited({ clusters: 1 }))
      .when({ type: 'BeginCount', at, tenant: 'acme' })
      .thenNothing();
    given(began, limited({ clusters: 1 }))
      .when(setLimits({ clusters: 1 }))
      .thenNothing();
  });
  it('are whole numbers from 0 on', () => {
    for (const limit of [-1, 1.5, Number.NaN, MAX_LIMIT + 1, 1e300])
      given(began)
        .when(setLimits({ clusters: limit }))
        .thenRejected('INVALID_LIMIT', { field: 'limits.clusters' });
    given(began)
      .when(setLimits({ clusters: 0 }))
      .thenEvents(limited({ clusters: 0 }));
  });
  it('below use block and evict nobody', () => {
    const history = [began, reserved('c1', 3), committed('c1', 3, 5), limited({ 'nodes/fc430': 2 })];
    expect(holdingOf(given(...history).state(), holder('c1'))?.amounts).to.deep.equal(nodes(3));
    given(...history)
      .when(reserve('c2', 1))
      .thenRejected('QUOTA_EXCEEDED', {
        message: "quota of 'nodes/fc430' exceeded: limit 2, used 3, reserved 0, requested 1",
      });
    // Less of it is always granted.
    given(...history)
      .when(reserve('c1', 2, 6, 'change'))
      .thenEvents({
        type: 'QuotaReserved',
        data: { at, holder: holder('c1'), amounts: inFlight(3), seen: 6, by: 'change', expiresAt },
      });
  });
  it('that are all taken away end the count', () => {
    const state = given(began, reserved('c1', 3), limited({ clusters: 1 }), limited({})).state();
    expect(state).to.deep.equal(quotaDecider.initialState());
  });
});

describe('quotas: what exists when the first limit is set', () => {
  it('is counted, whatever the limit; what is held already is not counted twice', () => {
    const uses = [
      { holder: holder('c1'), ...there(3), seen: 7 },
      { holder: holder('c2'), ...ordered(2), seen: 1 },
    ];
    given(began, reserved('c3', 4))
      .when({ type: 'CountUse', at, uses: [...uses, { holder: holder('c3'), ...ordered(4), seen: 0 }] })
      .thenEvents({
        type: 'QuotaUseCounted',
        data: { at, uses: [uses[0]!, { ...uses[1]!, amounts: inFlight(2) }] },
      });
    const state = given(
      began,
      counted('c1', { ...there(3), seen: 7 }),
      counted('c2', { amounts: inFlight(2), settled: false, seen: 1 }),
    ).state();
    expect([state.used, state.held]).to.deep.equal([nodes(3), { clusters: 2, 'nodes/fc430': 5, orders: 1 }]);
  });
  it('is counted when it comes to light later: it was ordered while the count began', () => {
    given(began, limited({ clusters: 0 }))
      .when(settle('c1', 0, ordered(3)))
      .thenEvents(counted('c1', { amounts: inFlight(3), settled: false, seen: 0 }));
    given(began, limited({ clusters: 0 }))
      .when(settle('c1', 5, there(3)))
      .thenEvents(counted('c1', { ...there(3), seen: 5 }));
  });
});

describe('quotas: an order', () => {
  const on = [began, limited({ clusters: 2, 'nodes/fc430': 5, orders: 2 })] as const;
  it('reserves all or nothing', () => {
    given(...on)
      .when(reserve('c1', 5))
      .thenEvents(reserved('c1', 5));
    given(...on, reserved('c1', 4))
      .when(reserve('c2', 2))
      .thenRejected('QUOTA_EXCEEDED', { kind: 'exhausted' });
    const refused = given(...on, reserved('c1', 4)).when(reserve('c2', 2)).decision;
    expect(isRejection(refused) && refused.facts).to.deep.equal({
      dimension: 'nodes/fc430',
      limit: 5,
      used: 0,
      reserved: 4,
      requested: 2,
    });
  });
  it('is in flight until it is there', () => {
    const two = [...on, reserved('c1', 1), reserved('c2', 1)] as const;
    const full = [...two, limited({ orders: 2 })];
    given(...full)
      .when(reserve('c3', 1))
      .thenRejected('QUOTA_EXCEEDED');
    given(...full, committed('c1', 1, 4))
      .when(reserve('c3', 1))
      .thenEvents(reserved('c3', 1));
  });
  it('reserves again with each attempt, since the former may be given up', () => {
    given(...on, reserved('c1', 3))
      .when(reserve('c1', 3))
      .thenNothing();
    given(...on, reserved('c1', 3))
      .when(reserve('c1', 3, 0))
      .thenEvents(reserved('c1', 3, 0));
    given(...on, reserved('c1', 3))
      .when(reserve('c1', 3, -1, 'x'))
      .thenEvents(reserved('c1', 3, -1, 'x'));
  });
  it('has what it was given until its stream has moved on', () => {
    given(...on, reserved('c1', 3, 4))
      .when(settle('c1', 4, there(2)))
      .thenNothing();
    given(...on, reserved('c1', 3, 4))
      .when(settle('c1', 3))
      .thenNothing();
    given(...on, reserved('c1', 3, 4))
      .when(settle('c1', 5, ordered(3)))
      .thenNothing();
    given(...on, reserved('c1', 3, 4))
      .when(settle('c1', 6, there(3)))
      .thenEvents(committed('c1', 3, 6));
    given(...on, reserved('c1', 3, 4), committed('c1', 3, 6))
      .when(settle('c1', 6, there(3)))
      .thenNothing();
    given(...on, reserved('c1', 3, 4), committed('c1', 3, 6))
      .when(settle('c1', 5, there(4)))
      .thenNothing();
  });
  it('gives it back when it is refused, expires or is gone', () => {
    given(...on, reserved('c1', 3))
      .when(settle('c1', -1, undefined, { own: 'c1', why: 'refused' }))
      .thenEvents(released('c1', 'refused'));
    given(...on, reserved('c1', 3))
      .when(settle('c1', -1, undefined, { own: 'another', why: 'refused' }))
      .thenNothing();
    given(...on, reserved('c1', 3))
      .when(settle('c1', 0, undefined, { why: 'expired' }))
      .thenEvents(released('c1', 'expired'));
    given(...on, committed('c1', 3, 6))
      .when(settle('c1', 9))
      .thenEvents(released('c1'));
    given(...on)
      .when(settle('c1', 9))
      .thenNothing();
  });
  it('that grows reserves the difference; one that shrinks keeps all until it is there', () => {
    const has = [...on, committed('c1', 3, 6)] as const;
    given(...has)
      .when(reserve('c1', 6, 6, 'up'))
      .thenRejected('QUOTA_EXCEEDED');
    given(...has)
      .when(reserve('c1', 5, 6, 'up'))
      .thenEvents(reserved('c1', 5, 6, 'up'));
    const growing = given(...has, reserved('c1', 5, 6, 'up')).state();
    expect([growing.used, growing.held]).to.deep.equal([nodes(3), inFlight(5)]);
    // The change came to nothing: it has what it had.
    given(...has, reserved('c1', 5, 6, 'up'))
      .when(settle('c1', 6, there(3), { own: 'up', why: 'refused' }))
      .thenEvents(committed('c1', 3, 6));
    given(...has)
      .when(settle('c1', 7, ordered(1)))
      .thenNothing();
    given(...has)
      .when(settle('c1', 9, there(1)))
      .thenEvents(committed('c1', 1, 9));
  });
});

describe('quotas: dimensions', () => {
  it('are those that are known, some with a class', () => {
    expect(dimensionOf('clusters')).to.deep.equal({ dimension: 'clusters' });
    expect(dimensionOf('nodes/fc430')).to.deep.equal({ dimension: 'nodes', className: 'fc430' });
    expect(dimensionOf('gpus/nvidia.com/A100')).to.deep.equal({
      dimension: 'gpus',
      className: 'nvidia.com/A100',
    });
    for (const wrong of ['', 'nodes', 'nodes/', 'clusters/x', 'Clusters', '__proto__', 'toString/x'])
      expect(dimensionOf(wrong), wrong).to.equal(undefined);
  });
});

/** Objects whose orders and changes are appended behind their reservation, or never; `seen` is where their streams stand. */
type Thing = {
  revision: number;
  has: number;
  wants: number;
  pending: { by: string; count: number; at: number }[];
};

describe('quotas: under any order of attempts, deaths and late looks', () => {
  const LIMIT = 12;
  const step = fc.record({
    id: fc.integer({ min: 0, max: 5 }),
    count: fc.integer({ min: 1, max: 6 }),
    does: fc.constantFrom(
      'reserve',
      'append',
      'die',
      'refuse',
      'finish',
      'delete',
      'look',
      'late-look',
      'fence',
    ),
  });

  it('no limit is ever passed, what exists is held, and all comes back', () =>
    check(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let state: QuotaState = [began, limited({ 'nodes/fc430': LIMIT })].reduce(
          quotaDecider.evolve,
          quotaDecider.initialState(),
        );
        const things = new Map<string, Thing>();
        const looks: QuotaCommand[] = [];
        const tell = (command: QuotaCommand): boolean => {
          const decision = quotaDecider.decide(state, command);
          if (isRejection(decision)) return false;
          state = decision.reduce(quotaDecider.evolve, state);
          expect(amountOf(state.held, 'nodes/fc430')).to.be.at.most(LIMIT);
          return true;
        };
        const useOf = ({ has, wants }: Thing): Omit<Use, 'seen'> | undefined =>
          wants === 0 && has === 0 ? undefined : { amounts: nodes(wants), settled: has === wants };
        const lookAt = (id: string, thing: Thing, more = {}): QuotaCommand =>
          settle(id, thing.revision, useOf(thing), more);
        let serial = 0;
        for (const { id: number, count, does } of steps) {
          const id = `c${number}`;
          const thing = things.get(id) ?? { revision: -1, has: 0, wants: 0, pending: [] };
          things.set(id, thing);
          const attempt = thing.pending.at(-1);
          const moveOn = (change: Partial<Thing>): void => {
            Object.assign(thing, change, { revision: thing.revision + 1 });
          };
          if (does === 'reserve' && count > thing.wants) {
            const by = `b${(serial += 1)}`;
            if (tell(reserve(id, count, thing.revision, by)))
              thing.pending.push({ by, count, at: thing.revision });
          } else if (does === 'append' && attempt !== undefined) {
            thing.pending.pop();
            if (attempt.at === thing.revision) moveOn({ wants: attempt.count });
          } else if (does === 'die') thing.pending.pop();
          else if (does === 'refuse' && attempt !== undefined) {
            thing.pending.pop();
            tell(lookAt(id, thing, { own: attempt.by, why: 'refused' }));
          } else if (does === 'finish' && thing.wants > 0) moveOn({ has: thing.wants });
          else if (does === 'delete' && thing.wants > 0) moveOn({ has: 0, wants: 0 });
          else if (does === 'fence' && thing.wants === 0) moveOn({});
          else if (does === 'look') {
            tell(lookAt(id, thing));
            looks.push(lookAt(id, thing));
          } else if (does === 'late-look') {
            const look = looks.shift();
            // One that is late for a reservation: what it saw is old.
            if (look?.type === 'SettleQuota' && holdingOf(state, look.holder)?.by !== undefined) tell(look);
          }
          for (const [each, { wants }] of things)
            expect(amountOf(holdingOf(state, holder(each))?.amounts ?? {}, 'nodes/fc430')).to.be.at.least(
              wants,
            );
          const sum = entriesOf(state.holdings).reduce<Amounts>(
            (all, [, one]) => summed(all, one.amounts),
            {},
          );
          expect(state.held).to.deep.equal(sum);
        }
        for (const [id, thing] of things) {
          thing.pending.length = 0;
          Object.assign(thing, { revision: thing.revision + 1, has: thing.wants });
          tell(lookAt(id, thing));
        }
        const left = [...things.values()].filter(({ wants }) => wants > 0);
        const all = left.reduce<Amounts>((sum, { wants }) => summed(sum, nodes(wants)), {});
        expect([state.held, state.used]).to.deep.equal([all, all]);
      }),
      { numRuns: cases(2_000) },
    ));
});
