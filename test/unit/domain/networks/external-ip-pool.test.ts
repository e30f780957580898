import { expect } from 'chai';
import {
  bookOf,
  externalIpPool,
  type PoolCommand,
  type PoolEvent,
} from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import { entriesOf, entryOf } from '../../../../src/domain/buckets.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { holdingOf } from '../../../../src/domain/networks/address-book.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt } from '../../../../src/domain/json-tools.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const at = '2026-11-23T09:00:00.000Z';
const later = '2026-11-23T10:00:00.000Z';
const tomorrow = '2026-11-24T09:00:00.000Z';
const facts = { at, id: 'p1', tenant: 'shared', project: '', name: 'public', creator: 'someone' };
const IPV4 = { cidrs: ['192.0.2.0/30'], ip_family: 'IP_FAMILY_IPV4' };
const place = {
  hub: 'h1',
  namespace: 'osac',
  objectName: 'externalippool-a',
  simulated: true,
  controller: 'operator',
} as const;
const one = { kind: 'externalIp', id: 'one' };
const two = { kind: 'externalIp', id: 'two' };
const three = { kind: 'externalIp', id: 'three' };

const order = (document: JsonObject): PoolCommand => ({ type: 'CreateDocument', ...facts, document });
const ordered = (spec: JsonObject = IPV4, annotations?: JsonObject): PoolEvent => ({
  type: 'ExternalIPPoolOrdered',
  data: { ...facts, document: { ...(annotations === undefined ? {} : { metadata: { annotations } }), spec } },
});
const quarantine = (duration: string) => ({ 'fulfillment-ledger/quarantine': duration });
const placed: PoolEvent = { type: 'ExternalIPPoolPlaced', data: { at, ...place } };
const onOperator: PoolEvent = { type: 'ExternalIPPoolPlaced', data: { at, ...place, simulated: false } };
const ready: PoolEvent = { type: 'ExternalIPPoolBecameReady', data: { at } };
const deleted: PoolEvent = { type: 'ExternalIPPoolDeleted', data: { at } };
const deleting: PoolEvent = { type: 'ExternalIPPoolDeletionRequested', data: { at } };
const assigned = (holder: typeof one, generation: number, address: string): PoolEvent => ({
  type: 'AddressAssigned',
  data: { at, holder, generation, address },
});
const released = (
  holder: typeof one,
  generation: number,
  address: string,
  restsUntil?: string,
): PoolEvent => ({
  type: 'AddressReleased',
  data: { at, holder, generation, address, ...(restsUntil === undefined ? {} : { restsUntil }) },
});
const claim = (holder: typeof one, wanted?: string, when = at): PoolCommand => ({
  type: 'ClaimAddress',
  at: when,
  holder,
  ...(wanted === undefined ? {} : { wanted }),
});
const release = (holder: typeof one, generation: number, when = at): PoolCommand => ({
  type: 'ReleaseAddress',
  at: when,
  holder,
  generation,
});

describe('external IP pools', () => {
  const { given } = specify(externalIpPool.decider);
  const shown = (...history: PoolEvent[]): JsonObject => {
    const view = externalIpPool.view(given(...history).state());
    if (!view.exists) throw new Error('the pool shows nothing');
    return view.document;
  };
  const status = (...history: PoolEvent[]): JsonObject => objectAt(shown(...history), 'status');

  describe('are ordered', () => {
    it('with ranges of one family, without host bits, whatever status is sent', () => {
      given()
        .when(
          order({
            spec: { cidrs: ['192.0.2.1/30'], ip_family: 'IP_FAMILY_IPV4', implementation_strategy: 'mine' },
            status: { state: 'EXTERNAL_IP_POOL_STATE_READY', total: '7' },
          }),
        )
        .thenEvents(ordered());
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

    it('show a status that somebody wrote until the next report, and no written counters', () => {
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
      expect(status(ordered(), reported, placed)['state']).to.equal('EXTERNAL_IP_POOL_STATE_PENDING');
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
        .thenRejected('POOL_EXHAUSTED', { kind: 'failed-precondition' });
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

  describe('of which the operator of the hub chooses the addresses', () => {
    const requested = (holder: typeof one, generation: number): PoolEvent => ({
      type: 'AddressRequested',
      data: { at, holder, generation },
    });
    const observed = (holder: typeof one, generation: number, address: string): PoolEvent => ({
      type: 'AddressObserved',
      data: { at, holder, generation, address },
    });
    const observe = (holder: typeof one, address: string): PoolCommand => ({
      type: 'ObserveAddress',
      at,
      holder,
      address,
    });
    const twice: PoolEvent = {
      type: 'AddressShownTwice',
      data: { at, holder: two, other: one, address: '192.0.2.2' },
    };
    const begun = [ordered(), onOperator] as const;

    it('count a holder before its address was seen', () => {
      given(...begun)
        .when(claim(one))
        .thenEvents(requested(one, 1));
      given(...begun, requested(one, 1))
        .when(claim(one))
        .thenNothing();
      given(...begun, requested(one, 1), requested(two, 2))
        .when(claim(three))
        .thenRejected('POOL_EXHAUSTED');
      expect(status(...begun, requested(one, 1))['allocated']).to.equal('1');
    });

    it('record what the hub shows, and what it shows instead', () => {
      given(...begun, requested(one, 1))
        .when(observe(one, '192.0.2.2'))
        .thenEvents(observed(one, 1, '192.0.2.2'));
      const seen = [...begun, requested(one, 1), observed(one, 1, '192.0.2.2')] as const;
      given(...seen)
        .when(observe(one, '192.0.2.2'))
        .thenNothing();
      given(...seen)
        .when(observe(one, '192.0.2.1'))
        .thenEvents(observed(one, 1, '192.0.2.1'));
      expect(status(...seen)['allocated']).to.equal('1');
    });

    it('record nothing of a holder without room: it gave its address back, and this look comes late', () => {
      const gone = [requested(one, 1), observed(one, 1, '192.0.2.2'), released(one, 1, '192.0.2.2')] as const;
      for (const history of [[], gone])
        given(...begun, ...history)
          .when(observe(one, '192.0.2.2'))
          .thenRejected('NO_ADDRESS_HELD', { kind: 'failed-precondition' });
      given(...begun, requested(one, 1), deleted)
        .when(observe(one, '192.0.2.2'))
        .thenRejected('POOL_GONE');
    });

    it('record no address that is not one of theirs, but the first and the last of a range', () => {
      for (const outside of ['192.0.2.4', '192.0.1.255', '2001:db8::1', 'pending', ''])
        given(...begun, requested(one, 1))
          .when(observe(one, outside))
          .thenRejected('ADDRESS_OUTSIDE_POOL', { kind: 'failed-precondition' });
      for (const edge of ['192.0.2.0', '192.0.2.3'])
        given(...begun, requested(one, 1))
          .when(observe(one, edge))
          .thenEvents(observed(one, 1, edge));
    });

    it('raise an alarm, once, for an address that is shown for two holders', () => {
      const seen = [...begun, requested(one, 1), observed(one, 1, '192.0.2.2'), requested(two, 2)] as const;
      given(...seen)
        .when(observe(two, '192.0.2.2'))
        .thenEvents(twice);
      given(...seen, twice)
        .when(observe(two, '192.0.2.2'))
        .thenNothing();
      expect(status(...seen, twice)['message']).to.contain('192.0.2.2');
      expect(status(...seen, twice, observed(two, 2, '192.0.2.1'))).to.not.have.property('message');
      given(...seen, twice, released(one, 1, '192.0.2.2'))
        .when(observe(two, '192.0.2.2'))
        .thenEvents(observed(two, 2, '192.0.2.2'));
    });

    it('end the alarm when the hub shows something else for either of the two, or one of them goes', () => {
      const seen = [
        ...begun,
        requested(one, 1),
        observed(one, 1, '192.0.2.2'),
        requested(two, 2),
        twice,
      ] as const;
      const passedOn = observed(two, 2, '192.0.2.2');
      given(...seen)
        .when(observe(one, '192.0.2.1'))
        .thenEvents(observed(one, 1, '192.0.2.1'), passedOn);
      given(...seen)
        .when(release(one, 1))
        .thenEvents(released(one, 1, '192.0.2.2'), passedOn);
      given(...seen)
        .when(observe(two, '192.0.2.1'))
        .thenEvents(observed(two, 2, '192.0.2.1'));
      given(...seen)
        .when(release(two, 2))
        .thenEvents({ type: 'AddressReleased', data: { at, holder: two, generation: 2 } });
      const marks = (...history: PoolEvent[]) => externalIpPool.marks?.(shown(...history));
      expect(marks(...seen)).to.deep.equal(['address-shown-twice']);
      for (const end of [
        [observed(one, 1, '192.0.2.1'), passedOn],
        [observed(two, 2, '192.0.2.1')],
        [released(two, 2, '192.0.2.2')],
      ])
        expect(marks(...seen, ...end)).to.deep.equal([]);
    });

    it('are passed on where the hub swaps those of several holders, in whatever order it is seen', () => {
      const swapped = (addresses: readonly string[], order: readonly number[]) => {
        const holders = [one, two, three].slice(0, addresses.length);
        const wide = ordered({ ...IPV4, cidrs: ['192.0.2.0/29'] });
        const begun = holders.flatMap((holder, i) => [
          requested(holder, i + 1),
          observed(holder, i + 1, `192.0.2.${i + 1}`),
        ]);
        let state = given(wide, onOperator, ...begun).state();
        for (const i of [...order, ...order]) {
          const holder = holders[i] ?? one;
          const command = observe(holder, addresses[i] ?? '');
          const decided = externalIpPool.decider.decide(state, command);
          if (isRejection(decided)) throw new Error(decided.message);
          state = decided.reduce(externalIpPool.decider.evolve, state);
        }
        const { owners, shownTwice } = bookOf(state);
        expect(shownTwice).to.deep.equal({});
        expect(holders.map((holder) => holdingOf(bookOf(state), holder)?.address)).to.deep.equal(addresses);
        expect(entriesOf(owners)).to.have.length(addresses.length);
        for (const [i, address] of addresses.entries())
          expect(entryOf(owners, address)).to.deep.equal(holders[i]);
      };
      for (const order of [
        [0, 1],
        [1, 0],
      ])
        swapped(['192.0.2.2', '192.0.2.1'], order);
      for (const order of [
        [0, 1, 2],
        [0, 2, 1],
        [2, 1, 0],
      ]) {
        swapped(['192.0.2.2', '192.0.2.3', '192.0.2.1'], order);
        swapped(['192.0.2.2', '192.0.2.1', '192.0.2.3'], order);
        swapped(['192.0.2.2', '192.0.2.3', '192.0.2.6'], order);
      }
    });

    it('are no longer those of a holder for which the hub shows another one, once somebody has them', () => {
      const wide = ordered({ ...IPV4, cidrs: ['192.0.2.0/29'] });
      const history = [
        wide,
        onOperator,
        requested(one, 1),
        observed(one, 1, '192.0.2.2'),
        requested(two, 2),
        observed(two, 2, '192.0.2.3'),
        requested(three, 3),
        { ...twice, data: { ...twice.data, other: one } },
      ] as const;
      const taken = observed(three, 3, '192.0.2.3');
      given(...history)
        .when(observe(three, '192.0.2.3'))
        .thenEvents(taken);
      expect(status(...history, taken)['allocated']).to.equal('3');
      const back = { at, holder: two, other: three, address: '192.0.2.3' };
      given(...history, taken)
        .when(observe(two, '192.0.2.3'))
        .thenEvents({ type: 'AddressShownTwice', data: back });
      given(...history, taken)
        .when(release(two, 2))
        .thenEvents({ type: 'AddressReleased', data: { at, holder: two, generation: 2 } });
      given(...history, taken, { type: 'AddressReleased', data: { at, holder: two, generation: 2 } })
        .when(observe(three, '192.0.2.3'))
        .thenNothing();
    });

    it('of no use elsewhere do not come free: network and broadcast address are not given out', () => {
      const chosen = [...begun, requested(one, 1), observed(one, 1, '192.0.2.0')] as const;
      const elsewhere: PoolEvent[] = [
        { type: 'ExternalIPPoolFailed', data: { at, reason: 'Aborted', message: 'aborted' } },
        { type: 'ExternalIPPoolWithdrawn', data: { at } },
        { type: 'ExternalIPPoolRetryRequested', data: { at } },
        placed,
      ];
      given(...chosen, released(one, 1, '192.0.2.0'), ...elsewhere)
        .when(claim(two))
        .thenEvents(assigned(two, 2, '192.0.2.1'));
    });

    it('alone: where we choose, the hub has no say', () => {
      const held = [ordered(), placed, assigned(one, 1, '192.0.2.1')] as const;
      given(...held)
        .when(observe(one, '192.0.2.1'))
        .thenNothing();
      for (const [holder, address] of [
        [one, '192.0.2.2'],
        [two, '192.0.2.2'],
      ] as const)
        given(...held)
          .when(observe(holder, address))
          .thenRejected('ADDRESS_CHOSEN_HERE', { kind: 'failed-precondition' });
    });

    it('let nobody wish for one, and lay none to rest', () => {
      given(...begun)
        .when(claim(one, '192.0.2.1'))
        .thenRejected('ADDRESS_NOT_CHOSEN_HERE', { kind: 'invalid' });
      given(...begun, requested(one, 1), observed(one, 1, '192.0.2.2'))
        .when(release(one, 1))
        .thenEvents(released(one, 1, '192.0.2.2'));
    });
  });
});
