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
import {
  at,
  IPV4,
  one,
  two,
  three,
  ordered,
  placed,
  onOperator,
  deleted,
  assigned,
  released,
  claim,
  release,
  shown,
  status,
  given,
} from './pool-histories.ts';

describe('external IP pools of which the operator of the hub chooses the addresses', () => {
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
