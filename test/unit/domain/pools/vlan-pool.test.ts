import { expect } from 'chai';
import { isRejection } from '../../../../src/domain/decider.ts';
import type { VlanPoolEvent } from '../../../../src/domain/pools/event-types.ts';
import { allocationsOf } from '../../../../src/domain/pools/pool.ts';
import { vlanIdsOf, vlanPoolDecider } from '../../../../src/domain/pools/vlan-pool.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const pool = specify(vlanPoolDecider);
const at = '2026-11-23T12:00:00.000Z';
const later = '2026-11-23T13:00:00.000Z';
const muchLater = '2026-11-23T14:00:00.000Z';
const reason = 'site east';
const size = { ranges: ['100-102'], reserved: [] as string[], quarantineSeconds: 3_600 };
const definition = { fabric: 'leaf-east', zone: 'east', ...size };
const of = (id: string) => ({ kind: 'cluster', id });
const purpose = 'cluster-network';

const created: VlanPoolEvent = { type: 'VlanPoolCreated', data: { at, ...definition, reason } };
const allocated = (id: string, generation: number, vlanId: number, when = at): VlanPoolEvent => ({
  type: 'VlanAllocated',
  data: { at: when, holder: of(id), generation, purpose, vlanId },
});
const released = (id: string, generation: number, vlanId: number, until = later): VlanPoolEvent => ({
  type: 'VlanReleased',
  data: { at, holder: of(id), generation, vlanId, quarantinedUntil: until },
});
const ask = (id: string, when = at) =>
  ({ type: 'AllocateFromPool', at: when, holder: of(id), purpose, request: {} }) as const;
const giveBack = (id: string, generation: number) =>
  ({ type: 'ReleaseToPool', at, holder: of(id), generation }) as const;
const create = (more: object) =>
  ({ type: 'CreatePool', at, reason, definition: { ...definition, ...more } }) as const;
const resize = (more: object, when = at) => ({ type: 'ResizePool', at: when, reason, size: more }) as const;

describe('a VLAN pool', () => {
  it('is created once', () => {
    pool.given().when(create({})).thenEvents(created);
    pool.given(created).when(create({})).thenNothing();
    pool
      .given(created)
      .when(create({ zone: 'west' }))
      .thenRejected('POOL_EXISTS');
  });

  it('refuses ranges that no fabric has, and names the field', () => {
    for (const ranges of [['0-10'], ['1'], ['1-100'], ['4000-4095'], ['4095']])
      pool.given().when(create({ ranges })).thenRejected('INVALID_VLAN_RANGE', { field: 'ranges' });
    for (const ranges of [['200-100'], ['ten'], ['10.0.0.0/8'], ['99999'], ['-5'], [''], ['10-20', '20-30']])
      pool.given().when(create({ ranges })).thenRejected('INVALID_VLAN_RANGE', { field: 'ranges' });
    pool
      .given()
      .when(create({ ranges: [] }))
      .thenRejected('RANGES_REQUIRED', { field: 'ranges' });
    pool
      .given()
      .when(create({ reserved: ['4095'] }))
      .thenRejected('INVALID_VLAN_RANGE', { field: 'reserved' });
    const many = Array.from({ length: 65 }, (_, i) => String(i + 2));
    pool
      .given()
      .when(create({ ranges: many }))
      .thenRejected('INVALID_VLAN_RANGE', { field: 'ranges' });
    pool
      .given()
      .when(create({ fabric: 'Leaf East' }))
      .thenRejected('INVALID_NAME', { field: 'fabric' });
    pool
      .given()
      .when(create({ zone: '' }))
      .thenRejected('INVALID_NAME', { field: 'zone' });
    for (const quarantineSeconds of [-1, 1.5, 1e12])
      pool
        .given()
        .when(create({ quarantineSeconds }))
        .thenRejected('INVALID_QUARANTINE', { field: 'quarantine_seconds' });
  });

  it('hands out every usable id', () => {
    expect(vlanIdsOf({ ranges: ['2-4094'], reserved: ['1002-1005'] })).to.have.length(4_089);
    expect(vlanIdsOf({ ranges: ['200', '100-103'], reserved: ['101-102'] })).to.deep.equal([100, 103, 200]);
  });

  it('gives the lowest id that nobody had', () => {
    pool
      .given(created)
      .when(ask('a'))
      .thenEvents(allocated('a', 1, 100));
    pool
      .given(created, allocated('a', 1, 100), released('a', 1, 100))
      .when(ask('b', muchLater))
      .thenEvents({
        type: 'VlanAllocated',
        data: { ...allocated('b', 2, 101).data, at: muchLater },
      } as never);
  });

  it('gives a holder the same one again, and another one for another purpose', () => {
    const had = [created, allocated('a', 1, 100)];
    pool
      .given(...had)
      .when(ask('a'))
      .thenNothing();
    pool
      .given(...had)
      .when({ ...ask('a'), purpose: 'storage' })
      .thenEvents({
        type: 'VlanAllocated',
        data: { at, holder: of('a'), generation: 2, purpose: 'storage', vlanId: 101 },
      });
  });

  it('gives out what was released first, once its quarantine is over', () => {
    const used = [created, allocated('a', 1, 100), allocated('b', 2, 101), allocated('c', 3, 102)];
    const back = [...used, released('b', 2, 101), released('a', 1, 100, muchLater)];
    const short = pool.given(...back).when(ask('d'));
    short.thenEvents({ type: 'VlanPoolExhausted', data: { at, wanted: ['vlan'], until: later } });
    pool
      .given(...back)
      .when(ask('d', later))
      .thenEvents(allocated('d', 4, 101, later));
  });

  it('tells that it is exhausted once, and again after something was given out', () => {
    const used = [created, allocated('a', 1, 100), allocated('b', 2, 101), allocated('c', 3, 102)];
    const told: VlanPoolEvent = { type: 'VlanPoolExhausted', data: { at, wanted: ['vlan'] } };
    pool
      .given(...used)
      .when(ask('d'))
      .thenEvents(told);
    pool
      .given(...used, told)
      .when(ask('d'))
      .thenRejected('POOL_EXHAUSTED');
    const again = [...used, told, released('a', 1, 100, at), allocated('d', 4, 100)];
    pool
      .given(...again)
      .when(ask('e'))
      .thenEvents(told);
  });

  it('rests what is given back, and refuses what is not held', () => {
    const had = [created, allocated('a', 1, 100), allocated('b', 2, 101)];
    pool
      .given(...had)
      .when(giveBack('a', 1))
      .thenEvents(released('a', 1, 100));
    pool
      .given(...had)
      .when(giveBack('a', 2))
      .thenRejected('NOT_THE_HOLDER', { field: 'generation' });
    pool
      .given(...had, released('a', 1, 100))
      .when(giveBack('a', 1))
      .thenRejected('ALREADY_RELEASED');
    pool
      .given(...had)
      .when(giveBack('a', 9))
      .thenRejected('NO_SUCH_ALLOCATION');
    pool.given().when(giveBack('a', 1)).thenRejected('NO_SUCH_POOL');
  });

  it('without quarantine gives back at once, behind what nobody had', () => {
    const free: VlanPoolEvent = {
      type: 'VlanPoolCreated',
      data: { at, ...definition, quarantineSeconds: 0, reason },
    };
    const back = pool.given(free, allocated('a', 1, 100)).when(giveBack('a', 1)).decision;
    expect(back).to.deep.equal([
      { type: 'VlanReleased', data: { at, holder: of('a'), generation: 1, vlanId: 100 } },
    ]);
    if (isRejection(back)) throw new Error(back.message);
    const history = [free, allocated('a', 1, 100), ...back, allocated('b', 2, 101), allocated('c', 3, 102)];
    pool
      .given(...history)
      .when(ask('d'))
      .thenEvents(allocated('d', 4, 100));
  });

  it('grows, and shrinks no further than what is in use or in quarantine', () => {
    const had = [created, allocated('a', 1, 100), allocated('b', 2, 101), released('b', 2, 101)];
    const given = pool.given(...had);
    given.when(resize({})).thenNothing();
    given.when(resize({ ranges: ['100-199'] })).thenEvents({
      type: 'VlanPoolResized',
      data: { at, ...size, ranges: ['100-199'], reason },
    });
    given.when(resize({ ranges: ['101-199'] })).thenRejected('POOL_IN_USE', { field: 'ranges' });
    given.when(resize({ reserved: ['100'] })).thenRejected('POOL_IN_USE');
    const resting = given.when(resize({ ranges: ['100', '102-110'] })).decision;
    // The clock may be set back: what left the pool would be given out before its quarantine is over.
    const nextDay = '2026-11-24T13:00:00.000Z';
    expect(resting).to.deep.include({ code: 'POOL_IN_USE', facts: { until: nextDay } });
    given.when(resize({ ranges: ['100', '102-110'] }, later)).thenRejected('POOL_IN_USE');
    given.when(resize({ ranges: ['100', '102-110'] }, nextDay)).thenEvents({
      type: 'VlanPoolResized',
      data: { at: nextDay, ...size, ranges: ['100', '102-110'], reason },
    });
    given.when(resize({ ranges: ['0-9'] })).thenRejected('INVALID_VLAN_RANGE');
  });

  it('after a change of size gives out neither what is held nor what rests', () => {
    const grown: VlanPoolEvent = {
      type: 'VlanPoolResized',
      data: { at, ...size, ranges: ['99-102'], reason },
    };
    const had = [created, allocated('a', 1, 100), allocated('b', 2, 101), released('b', 2, 101), grown];
    pool
      .given(...had)
      .when(ask('c'))
      .thenEvents(allocated('c', 3, 99));
    pool
      .given(...had, allocated('c', 3, 99))
      .when(ask('d'))
      .thenEvents(allocated('d', 4, 102));
    pool
      .given(...had, allocated('c', 3, 99), allocated('d', 4, 102))
      .when(ask('e'))
      .thenEvents({ type: 'VlanPoolExhausted', data: { at, wanted: ['vlan'], until: later } });
  });

  it('once retired gives out nothing, but takes back', () => {
    const retired: VlanPoolEvent = { type: 'VlanPoolRetired', data: { at, reason } };
    const retire = { type: 'RetirePool', at, reason } as const;
    const had = [created, allocated('a', 1, 100), retired];
    pool.given(created).when(retire).thenEvents(retired);
    pool
      .given(...had)
      .when(retire)
      .thenNothing();
    pool
      .given(...had)
      .when(ask('b'))
      .thenRejected('POOL_RETIRED');
    pool
      .given(...had)
      .when(ask('a'))
      .thenNothing();
    pool
      .given(...had)
      .when(resize({ ranges: ['100-200'] }))
      .thenRejected('POOL_RETIRED');
    pool
      .given(...had)
      .when(giveBack('a', 1))
      .thenEvents(released('a', 1, 100));
    pool
      .given(...had)
      .when(create({}))
      .thenRejected('POOL_RETIRED');
    pool.given().when(retire).thenRejected('NO_SUCH_POOL');
    expect(allocationsOf(pool.given(...had).state(), of('a'))).to.have.length(1);
  });
});
