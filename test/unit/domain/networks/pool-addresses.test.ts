import { expect } from 'chai';
import type { PoolEvent } from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import {
  later,
  tomorrow,
  IPV4,
  one,
  two,
  three,
  ordered,
  quarantine,
  placed,
  deleting,
  assigned,
  released,
  claim,
  release,
  given,
} from './pool-histories.ts';

describe('external IP pools', () => {
  describe('give out addresses', () => {
    it('the lowest one that is free', () => {
      given(ordered())
        .when(claim(one))
        .thenEvents(assigned(one, 1, '192.0.2.1'));
      given(ordered(), assigned(one, 1, '192.0.2.1'))
        .when(claim(two))
        .thenEvents(assigned(two, 2, '192.0.2.2'));
      given(
        ordered(),
        assigned(one, 1, '192.0.2.1'),
        assigned(two, 2, '192.0.2.2'),
        released(one, 1, '192.0.2.1'),
      )
        .when(claim(three))
        .thenEvents(assigned(three, 3, '192.0.2.1'));
    });

    it('once to each holder', () => {
      given(ordered(), assigned(one, 1, '192.0.2.1'))
        .when(claim(one))
        .thenNothing();
    });

    it('no more than there are', () => {
      given(ordered(), assigned(one, 1, '192.0.2.1'), assigned(two, 2, '192.0.2.2'))
        .when(claim(three))
        .thenRejected('POOL_EXHAUSTED', {
          kind: 'failed-precondition',
          message: "external IP pool 'public' has no free address",
        });
    });

    it('only when they have rested, and say until when that is', () => {
      const history = [
        ordered(),
        assigned(one, 1, '192.0.2.1'),
        assigned(two, 2, '192.0.2.2'),
        released(one, 1, '192.0.2.1', tomorrow),
      ];
      const { decision } = given(...history).when(claim(three));
      expect(decision).to.deep.include({ code: 'ADDRESSES_RESTING', facts: { until: tomorrow } });
      given(...history)
        .when(claim(three, undefined, tomorrow))
        .thenEvents({
          type: 'AddressAssigned',
          data: { at: tomorrow, holder: three, generation: 3, address: '192.0.2.1' },
        });
    });

    it('that somebody wants, unless they are taken, outside or at rest', () => {
      given(ordered())
        .when(claim(one, '192.0.2.2'))
        .thenEvents(assigned(one, 1, '192.0.2.2'));
      for (const outside of ['192.0.2.0', '192.0.2.3', '192.0.2.9', '::1'])
        given(ordered()).when(claim(one, outside)).thenRejected('ADDRESS_OUTSIDE_POOL', { kind: 'invalid' });
      given(ordered(), assigned(two, 1, '192.0.2.1'))
        .when(claim(one, '192.0.2.1'))
        .thenRejected('ADDRESS_TAKEN', { kind: 'invalid' });
      given(ordered(), assigned(two, 1, '192.0.2.1'), released(two, 1, '192.0.2.1', tomorrow))
        .when(claim(one, '192.0.2.1'))
        .thenRejected('ADDRESS_RESTING', { kind: 'invalid' });
      const resting = given(
        ordered(),
        assigned(two, 1, '192.0.2.1'),
        released(two, 1, '192.0.2.1', tomorrow),
      );
      expect(resting.when(claim(one, '192.0.2.1')).decision).to.deep.include({ facts: { until: tomorrow } });
    });

    it('in their one spelling', () => {
      given(ordered({ cidrs: ['2001:db8::/64'], ip_family: 'IP_FAMILY_IPV6' }))
        .when(claim(one, '2001:DB8:0:0::00A'))
        .thenEvents(assigned(one, 1, '2001:db8::a'));
    });

    it('of all ranges in numeric order', () => {
      const spec = { cidrs: ['10.10.0.1/32', '10.9.0.0/31'], ip_family: 'IP_FAMILY_IPV4' };
      const taken = [assigned(one, 1, '10.9.0.0'), assigned(two, 2, '10.9.0.1')];
      given(ordered(spec))
        .when(claim(one))
        .thenEvents(assigned(one, 1, '10.9.0.0'));
      given(ordered(spec), ...taken)
        .when(claim(three))
        .thenEvents(assigned(three, 3, '10.10.0.1'));
    });

    it('to nobody while they are deleted or gone', () => {
      given(ordered(), placed, deleting).when(claim(one)).thenRejected('DELETION_REQUESTED');
      given().when(claim(one)).thenRejected('POOL_GONE');
    });
  });

  describe('take addresses back', () => {
    const held = assigned(one, 1, '192.0.2.1');
    const until = (restsUntil: string): PoolEvent => released(one, 1, '192.0.2.1', restsUntil);

    it('for a rest of a day where they are public, of ten minutes where they are private', () => {
      given(ordered(), held).when(release(one, 1)).thenEvents(until(tomorrow));
      given(ordered({ ...IPV4, cidrs: ['10.0.0.0/24'] }), assigned(one, 1, '10.0.0.1'))
        .when(release(one, 1))
        .thenEvents(released(one, 1, '10.0.0.1', '2026-11-23T09:10:00.000Z'));
    });

    it('for as long as the pool says', () => {
      given(ordered(IPV4, quarantine('PT1H')), held)
        .when(release(one, 1))
        .thenEvents(until(later));
      given(ordered(IPV4, quarantine('PT0S')), held)
        .when(release(one, 1))
        .thenEvents(released(one, 1, '192.0.2.1'));
    });

    it('from their holder, by the generation that it was given, and once', () => {
      given(ordered(), held).when(release(two, 1)).thenNothing();
      given(ordered(), held).when(release(one, 2)).thenNothing();
      given(ordered(), held, released(one, 1, '192.0.2.1'))
        .when(release(one, 1))
        .thenNothing();
      given(ordered(), held, released(one, 1, '192.0.2.1'), assigned(one, 2, '192.0.2.1'))
        .when(release(one, 1))
        .thenNothing();
    });
  });
});
