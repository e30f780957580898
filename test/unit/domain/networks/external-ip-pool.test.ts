import { expect } from 'chai';
import type { PoolCommand, PoolEvent } from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import {
  at,
  later,
  tomorrow,
  IPV4,
  place,
  one,
  order,
  ordered,
  quarantine,
  placed,
  ready,
  deleting,
  assigned,
  released,
  shown,
  status,
  given,
} from './pool-histories.ts';

describe('external IP pools', () => {
  describe('are ordered', () => {
    it('with ranges of one family, without host bits, and with the status that a private caller sends', () => {
      const spec = {
        cidrs: ['192.0.2.1/30'],
        ip_family: 'IP_FAMILY_IPV4',
        implementation_strategy: 'mine',
      };
      given()
        .when(order({ spec, status: { total: '7' } }))
        .thenEvents(ordered());
      const state = 'EXTERNAL_IP_POOL_STATE_READY';
      const reported: PoolEvent = { type: 'ExternalIPPoolStatusReported', data: { at, status: { state } } };
      given()
        .when(order({ spec, status: { state, total: '7' } }))
        .thenEvents(ordered(), reported);
      expect(status(ordered(), reported)).to.deep.equal({ state, total: '2', available: '2' });
      expect(status(ordered())).to.deep.equal({ total: '2', available: '2' });
    });

    it('not without a range or family, with ranges of the other one, or with what is no range', () => {
      for (const spec of [
        { cidrs: ['192.0.2.0/30'] },
        { ip_family: 'IP_FAMILY_IPV4' },
        { cidrs: ['192.0.2.0/30', '2001:db8::/64'], ip_family: 'IP_FAMILY_IPV4' },
        { cidrs: ['192.0.2.0'], ip_family: 'IP_FAMILY_IPV4' },
        { cidrs: ['192.0.2.0/33'], ip_family: 'IP_FAMILY_IPV4' },
      ])
        given().when(order({ spec })).thenRejected('INVALID_POOL', { kind: 'invalid' });
    });

    it('not with all addresses there are, nor with IPv4 ranges written as IPv6', () => {
      for (const [cidr, ip_family] of [
        ['0.0.0.0/0', 'IP_FAMILY_IPV4'],
        ['10.0.0.0/0', 'IP_FAMILY_IPV4'],
        ['::/0', 'IP_FAMILY_IPV6'],
        ['::ffff:192.0.2.0/120', 'IP_FAMILY_IPV6'],
      ] as const)
        given()
          .when(order({ spec: { cidrs: [cidr], ip_family } }))
          .thenRejected('INVALID_CIDR', { field: 'spec.cidrs' });
    });

    it('not with more than 64 ranges', () => {
      const cidrs = Array.from({ length: 65 }, (_, i) => `10.0.${i}.0/24`);
      given()
        .when(order({ spec: { ...IPV4, cidrs } }))
        .thenRejected('INVALID_POOL', { field: 'spec.cidrs' });
    });

    it('not with ranges that overlap', () => {
      for (const cidrs of [
        ['10.0.0.0/24', '10.0.0.128/25'],
        ['10.0.0.0/24', '10.0.0.0/32'],
        ['10.0.0.0/24', '10.0.0.7/24'],
      ])
        given()
          .when(order({ spec: { ...IPV4, cidrs } }))
          .thenRejected('INVALID_POOL', { field: 'spec.cidrs' });
    });

    it('not with a quarantine that cannot be read', () => {
      for (const text of ['1 day', 'P1M', 'PT', '24h'])
        given()
          .when(order({ metadata: { annotations: quarantine(text) }, spec: IPV4 }))
          .thenRejected('INVALID_QUARANTINE');
    });
  });

  it('keep their ranges and family', () => {
    for (const spec of [
      { ...IPV4, cidrs: ['192.0.2.0/29'] },
      { ...IPV4, ip_family: 'IP_FAMILY_IPV6' },
    ])
      given(ordered())
        .when({ type: 'ReviseDocument', at: later, document: { spec } })
        .thenRejected('IMMUTABLE_FIELD', { kind: 'invalid' });
  });

  describe('count exactly', () => {
    it('what is given out, in 64 bits', () => {
      const big = ordered({ cidrs: ['2001:db8::/48'], ip_family: 'IP_FAMILY_IPV6' });
      expect(status(big)).to.deep.equal({ total: '9223372036854775807', available: '9223372036854775807' });
      expect(status(big, assigned(one, 1, '2001:db8::'))).to.deep.equal({
        total: '9223372036854775807',
        allocated: '1',
        available: '9223372036854775806',
      });
    });

    it('a resting address as free at once', () => {
      const history = [ordered(), assigned(one, 1, '192.0.2.1')];
      expect(status(...history)).to.deep.equal({ total: '2', allocated: '1', available: '1' });
      expect(status(...history, released(one, 1, '192.0.2.1', tomorrow))).to.deep.equal({
        total: '2',
        available: '2',
      });
    });
  });

  describe('on their way', () => {
    it('show what has become of them', () => {
      const stateAfter = (...history: PoolEvent[]) => status(ordered(), ...history)['state'];
      const failed: PoolEvent = { type: 'ExternalIPPoolFailed', data: { at, reason: 'No', message: 'no' } };
      const waiting: PoolEvent = { type: 'ExternalIPPoolWaiting', data: { at, message: 'no hub is there' } };
      expect(stateAfter()).to.equal(undefined);
      expect(stateAfter(waiting)).to.equal('EXTERNAL_IP_POOL_STATE_PENDING');
      expect(stateAfter(placed)).to.equal('EXTERNAL_IP_POOL_STATE_PENDING');
      expect(stateAfter(placed, ready)).to.equal('EXTERNAL_IP_POOL_STATE_READY');
      expect(stateAfter(placed, failed)).to.equal('EXTERNAL_IP_POOL_STATE_FAILED');
      expect(stateAfter(placed, failed, ready)).to.equal('EXTERNAL_IP_POOL_STATE_READY');
      expect(stateAfter(placed, ready, deleting)).to.equal('EXTERNAL_IP_POOL_STATE_DELETING');
      expect(stateAfter(placed, failed, deleting)).to.equal('EXTERNAL_IP_POOL_STATE_DELETING');
      expect(stateAfter(placed, ready, deleting, failed)).to.equal('EXTERNAL_IP_POOL_STATE_DELETE_FAILED');
      expect(status(ordered(), waiting)['message']).to.equal('no hub is there');
      expect(status(ordered(), waiting, placed)).to.not.have.property('message');
    });

    it('are placed once, and not while they are deleted', () => {
      given(ordered())
        .when({ type: 'PlaceOnHub', at, ...place })
        .thenEvents(placed);
      given(ordered(), placed)
        .when({ type: 'PlaceOnHub', at: later, ...place })
        .thenNothing();
      given(ordered(), placed)
        .when({ type: 'PlaceOnHub', at, ...place, hub: 'h2' })
        .thenRejected('ALREADY_PLACED');
      given(ordered(), deleting)
        .when({ type: 'PlaceOnHub', at, ...place })
        .thenRejected('DELETION_REQUESTED');
    });

    it('record what changed, and nothing twice', () => {
      const failure = { reason: 'No', message: 'no' };
      const failed: PoolEvent = { type: 'ExternalIPPoolFailed', data: { at, ...failure } };
      given(ordered(), placed).when({ type: 'RecordReady', at }).thenEvents(ready);
      given(ordered(), placed, ready).when({ type: 'RecordReady', at: later }).thenNothing();
      given(ordered(), placed, failed).when({ type: 'RecordReady', at }).thenEvents(ready);
      given(ordered(), placed, deleting).when({ type: 'RecordReady', at }).thenNothing();
      given(ordered(), placed)
        .when({ type: 'RecordFailure', at, ...failure })
        .thenEvents(failed);
      given(ordered(), placed, failed)
        .when({ type: 'RecordFailure', at: later, ...failure })
        .thenNothing();
    });

    it('show a status that somebody wrote until their hub shows them, and no written counters', () => {
      const written = { state: 'EXTERNAL_IP_POOL_STATE_READY', total: '9', available: '9' };
      const reported: PoolEvent = {
        type: 'ExternalIPPoolStatusReported',
        data: { at: later, status: { state: 'EXTERNAL_IP_POOL_STATE_READY' } },
      };
      given(ordered())
        .when({ type: 'ReviseDocument', at: later, document: { spec: IPV4, status: written } })
        .thenEvents(reported);
      given(ordered(), reported)
        .when({ type: 'ReviseDocument', at: later, document: { spec: IPV4, status: written } })
        .thenNothing();
      expect(status(ordered(), reported)).to.deep.equal({
        state: 'EXTERNAL_IP_POOL_STATE_READY',
        total: '2',
        available: '2',
      });
      const waiting: PoolEvent = { type: 'ExternalIPPoolWaiting', data: { at: later, message: 'no hub' } };
      expect(status(ordered(), reported, waiting, placed)).to.include({
        state: 'EXTERNAL_IP_POOL_STATE_READY',
        hub: place.hub,
      });
      const failure = { at: later, reason: 'ProvisioningFailed', message: 'no route' };
      const seen: PoolEvent = { type: 'ExternalIPPoolFailed', data: failure };
      expect(status(ordered(), reported, placed, seen)['state']).to.equal('EXTERNAL_IP_POOL_STATE_FAILED');
    });
  });

  describe('are deleted', () => {
    const remove: PoolCommand = { type: 'DeleteDocument', at };
    const gone: PoolEvent = { type: 'ExternalIPPoolDeleted', data: { at } };
    const withdrawn: PoolEvent = { type: 'ExternalIPPoolWithdrawn', data: { at } };

    it('at once while they have no place, else when their absence was observed', () => {
      given(ordered()).when(remove).thenEvents(gone);
      given(ordered(), placed).when(remove).thenEvents(deleting);
      given(ordered(), placed, deleting).when(remove).thenNothing();
      given(ordered(), placed, deleting).when({ type: 'ConfirmAbsence', at }).thenEvents(gone);
      given(ordered(), placed).when({ type: 'ConfirmAbsence', at }).thenRejected('NOT_DELETING');
      given(ordered(), placed, deleting, gone).when({ type: 'ConfirmAbsence', at }).thenNothing();
    });

    it('not while addresses are taken from them, whichever way', () => {
      given(ordered(), placed, assigned(one, 1, '192.0.2.1'))
        .when(remove)
        .thenRejected('STILL_IN_USE', { kind: 'failed-precondition' });
      given(ordered(), assigned(one, 1, '192.0.2.1'), released(one, 1, '192.0.2.1', tomorrow))
        .when(remove)
        .thenEvents(gone);
    });

    it('keep our finalizer from their place on, which nobody else removes', () => {
      const finalizers = (...history: PoolEvent[]) => objectAt(shown(...history), 'metadata')['finalizers'];
      expect(finalizers(ordered())).to.equal(undefined);
      expect(finalizers(ordered(), placed)).to.deep.equal(['fulfillment-controller']);
      given(ordered(), placed, deleting)
        .when({ type: 'ReviseDocument', at, document: { metadata: { finalizers: [] }, spec: IPV4 } })
        .thenNothing();
      const foreign: PoolEvent = {
        type: 'ExternalIPPoolRevised',
        data: { at, document: { metadata: { finalizers: ['x'] }, spec: IPV4 } },
      };
      expect(finalizers(ordered(), placed, foreign)).to.deep.equal(['fulfillment-controller', 'x']);
      const both = { metadata: { finalizers: ['fulfillment-controller', 'x'] }, spec: IPV4 };
      given(ordered(), placed).when({ type: 'ReviseDocument', at, document: both }).thenEvents(foreign);
      given(ordered(), placed, foreign, deleting).when({ type: 'ConfirmAbsence', at }).thenEvents(withdrawn);
      const freed: PoolEvent = { type: 'ExternalIPPoolRevised', data: { at, document: { spec: IPV4 } } };
      given(ordered(), placed, foreign, deleting, withdrawn)
        .when({ type: 'ReviseDocument', at, document: { metadata: { finalizers: [] }, spec: IPV4 } })
        .thenEvents(freed, gone);
    });

    it('for good: their id is not used again, and other tenants are not told why', () => {
      given(ordered(), gone)
        .when(order({ spec: IPV4 }))
        .thenRejected('ALREADY_EXISTS', { field: 'id' });
      const decision = given(ordered(), gone).when({
        ...(order({ spec: IPV4 }) as Extract<PoolCommand, { type: 'CreateDocument' }>),
        tenant: 't2',
      });
      decision.thenRejected('ALREADY_EXISTS', {
        message: "external IP pool with identifier 'p1' already exists",
      });
    });
  });
});
