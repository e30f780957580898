import { expect } from 'chai';
import type { PoolSpaceEvent } from '../../../../src/domain/pools/event-types.ts';
import { poolSpaceDecider } from '../../../../src/domain/pools/pool-space.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const space = specify(poolSpaceDecider);
const at = '2026-11-23T12:00:00.000Z';
const reserved = (pool: string, base: number, ...ranges: string[]): PoolSpaceEvent => ({
  type: 'PoolSpaceReserved',
  data: { at, pool, base, ranges },
});
const settled = (pool: string, revision: number, ...ranges: string[]): PoolSpaceEvent => ({
  type: 'PoolSpaceSettled',
  data: { at, pool, revision, ranges },
});
const reserve = (pool: string, base: number, ...ranges: string[]) =>
  ({ type: 'ReservePoolSpace', at, pool, base, ranges }) as const;
const settle = (pool: string, revision: number, ...ranges: string[]) =>
  ({ type: 'SettlePoolSpace', at, pool, revision, ranges }) as const;

describe('the space that pools share', () => {
  it('lets no two pools overlap', () => {
    const had = [reserved('a', -1, '100-199', '10.0.0.0/16', 'fd00::/48')];
    for (const range of ['199', '150-160', '50-100', '2-4094', '10.0.4.0/24', '10.0.0.0/8', 'fd00::/64'])
      space
        .given(...had)
        .when(reserve('b', -1, range))
        .thenRejected('POOLS_OVERLAP', { field: 'ranges' });
    for (const range of ['200-299', '99', '10.1.0.0/16', 'fd00:0:1::/48', '0.0.0.0/8'])
      space
        .given(...had)
        .when(reserve('b', -1, range))
        .thenEvents(reserved('b', -1, range));
    const { decision } = space.given(...had).when(reserve('b', -1, '100'));
    expect(decision).to.deep.include({ facts: { pool: 'a' } });
  });

  it('lets a pool reserve again what it has', () => {
    const had = [reserved('a', -1, '100-199'), settled('a', 0, '100-199')];
    space
      .given(...had)
      .when(reserve('a', 7, '100-299'))
      .thenEvents(reserved('a', 7, '100-299'));
    space
      .given(...had, reserved('a', 7, '100-299'))
      .when(reserve('a', 7, '100-299'))
      .thenNothing();
  });

  it('keeps a reservation until the stream of its pool has moved on', () => {
    const had = [settled('a', 4, '100-199'), reserved('a', 6, '100-299'), reserved('a', 7, '100-399')];
    // At revision 7 the pool still has what it had: only what was to come at 6 came to nothing.
    const now = [...had, settled('a', 7, '100-199')];
    space
      .given(...now)
      .when(reserve('b', -1, '300'))
      .thenRejected('POOLS_OVERLAP');
    space
      .given(...had, settled('a', 8, '100-199'))
      .when(reserve('b', -1, '200'))
      .thenEvents(reserved('b', -1, '200'));
    space
      .given(...had, settled('a', 8, '100-399'))
      .when(reserve('b', -1, '200'))
      .thenRejected('POOLS_OVERLAP');
  });

  it('believes no older word of a pool', () => {
    const had = [settled('a', 9, '100-399')];
    space
      .given(...had)
      .when(settle('a', 5, '100-199'))
      .thenNothing();
    space
      .given(...had)
      .when(settle('a', 11, '100-399'))
      .thenNothing();
    space
      .given(...had)
      .when(settle('a', 11))
      .thenEvents(settled('a', 11));
  });
});
