import { expect } from 'chai';
import { isRejection } from '../../../../src/domain/decider.ts';
import type { PrefixPoolEvent } from '../../../../src/domain/pools/event-types.ts';
import { blocksOf } from '../../../../src/domain/pools/prefix-blocks.ts';
import { hostsOf } from '../../../../src/domain/pools/prefix-hosts.ts';
import { plainCidrs, prefixPoolDecider } from '../../../../src/domain/pools/prefix-pool.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const pool = specify(prefixPoolDecider);
const at = '2026-11-23T12:00:00.000Z';
const later = '2026-11-23T12:10:00.000Z';
const reason = 'site east';
const definition = {
  vrf: 'tenants',
  zone: 'east',
  ranges: ['10.20.0.0/16'],
  reserved: [] as string[],
  quarantineSeconds: 600,
};
const of = (id: string) => ({ kind: 'cluster', id });
const purpose = 'cluster-network';

const created = (more: Partial<typeof definition> = {}): PrefixPoolEvent => ({
  type: 'PrefixPoolCreated',
  data: { at, ...definition, ...more, reason },
});
const allocated = (id: string, generation: number, ...prefixes: string[]): PrefixPoolEvent => ({
  type: 'PrefixAllocated',
  data: { at, holder: of(id), generation, purpose, prefixes, gateways: [] },
});
const released = (id: string, generation: number, ...prefixes: string[]): PrefixPoolEvent => ({
  type: 'PrefixReleased',
  data: { at, holder: of(id), generation, prefixes, gateways: [], quarantinedUntil: later },
});
const create = (more: object) =>
  ({ type: 'CreatePool', at, reason, definition: { ...definition, ...more } }) as const;
const resize = (size: object, when = at) => ({ type: 'ResizePool', at: when, reason, size }) as const;

/** What `id` is given, or the code of why not. */
const given = (history: readonly PrefixPoolEvent[], request: object, when = at): unknown => {
  const { decision } = pool
    .given(...history)
    .when({ type: 'AllocateFromPool', at: when, holder: of('new'), purpose, request });
  if (isRejection(decision)) return decision.code;
  const [event] = decision;
  if (event?.type === 'PrefixPoolExhausted') return { short: event.data.wanted, until: event.data.until };
  return event?.type === 'PrefixAllocated' ? event.data.prefixes : event;
};

describe('a prefix pool', () => {
  it('gives the lowest aligned part of the smallest free range that is large enough', () => {
    const used = [created(), allocated('a', 1, '10.20.0.0/24'), allocated('b', 2, '10.20.1.0/26')];
    expect(given(used, { v4: 24 })).to.deep.equal(['10.20.2.0/24']);
    expect(given(used, { v4: 26 })).to.deep.equal(['10.20.1.64/26']);
    expect(given(used, { v4: 25 })).to.deep.equal(['10.20.1.128/25']);
    const full = [
      created({ ranges: ['10.20.0.0/22'] }),
      ...['10.20.0.0/24', '10.20.1.0/24', '10.20.2.0/24', '10.20.3.0/25'].map((prefix, i) =>
        allocated(`c${i}`, i + 1, prefix),
      ),
    ];
    expect(given(full, { v4: 24 })).to.deep.equal({ short: ['v4/24'], until: undefined });
    expect(given(full, { v4: 25 })).to.deep.equal(['10.20.3.128/25']);
  });

  it('gives both families or none', () => {
    const both = created({ ranges: ['10.20.0.0/24', 'fd20::/63'] });
    expect(given([both], { v4: 24, v6: 64 })).to.deep.equal(['10.20.0.0/24', 'fd20::/64']);
    const used = [both, allocated('a', 1, '10.20.0.0/24', 'fd20::/64')];
    expect(given(used, { v4: 24, v6: 64 })).to.deep.equal({ short: ['v4/24'], until: undefined });
    expect(given(used, { v6: 64 })).to.deep.equal(['fd20:0:0:1::/64']);
    expect(given([created()], { v4: 24, v6: 64 })).to.equal('NOT_IN_POOL');
  });

  it('records prefixes and gateways', () => {
    const both = created({ ranges: ['10.20.0.0/24', 'fd20::/48'] });
    const request = { v4: 25, v6: 64 };
    pool
      .given(both)
      .when({ type: 'AllocateFromPool', at, holder: of('a'), purpose, request })
      .thenEvents({
        type: 'PrefixAllocated',
        data: {
          at,
          holder: of('a'),
          generation: 1,
          purpose,
          prefixes: ['10.20.0.0/25', 'fd20::/64'],
          gateways: ['10.20.0.1', 'fd20::1'],
        },
      });
  });

  it('refuses lengths that no prefix has', () => {
    for (const v4 of [0, -1, 33, 1.5, Number.NaN])
      expect(given([created()], { v4 })).to.equal('INVALID_LENGTH');
    expect(given([created()], { v6: 129 })).to.equal('INVALID_LENGTH');
    expect(given([created()], {})).to.equal('LENGTH_REQUIRED');
    expect(given([created()], { v4: 15 })).to.equal('NOT_IN_POOL');
    expect(given([created({ ranges: ['192.0.2.7/32'] })], { v4: 32 })).to.deep.equal(['192.0.2.7/32']);
  });

  it('never counts through a range of IPv6', () => {
    const wide = [created({ ranges: ['fd00::/8'] })];
    expect(given(wide, { v6: 64 })).to.deep.equal(['fd00::/64']);
    expect(given([...wide, allocated('a', 1, 'fd00::/64')], { v6: 128 })).to.deep.equal(['fd00:0:0:1::/128']);
  });

  it('gives out what is next to each other as one, and nothing across a gap of alignment', () => {
    const ranges = ['10.0.0.0/24', '10.0.1.0/24', '10.0.3.0/24', '10.0.4.0/24'];
    expect(given([created({ ranges })], { v4: 23 })).to.deep.equal(['10.0.0.0/23']);
    const used = [created({ ranges }), allocated('a', 1, '10.0.0.0/23')];
    expect(given(used, { v4: 23 })).to.deep.equal({ short: ['v4/23'], until: undefined });
    expect(given([created({ ranges: ranges.slice(2) })], { v4: 23 })).to.equal('NOT_IN_POOL');
  });

  it('keeps out what is reserved', () => {
    const reserved = ['10.20.0.0/17', '10.20.128.0/24'];
    expect(given([created({ reserved })], { v4: 24 })).to.deep.equal(['10.20.129.0/24']);
  });

  it('rests what was released, and gives it out again when nothing else fits', () => {
    const small = created({ ranges: ['10.20.0.0/23'] });
    const back = [small, allocated('a', 1, '10.20.0.0/24'), released('a', 1, '10.20.0.0/24')];
    expect(given(back, { v4: 24 }, later)).to.deep.equal(['10.20.1.0/24']);
    expect(given(back, { v4: 23 })).to.deep.equal({ short: ['v4/23'], until: later });
    // What rested and what is free next to it are one again.
    expect(given(back, { v4: 23 }, later)).to.deep.equal(['10.20.0.0/23']);
    const used = [...back, allocated('b', 2, '10.20.1.0/24')];
    expect(given(used, { v4: 26 })).to.deep.equal({ short: ['v4/26'], until: later });
    expect(given(used, { v4: 26 }, later)).to.deep.equal(['10.20.0.0/26']);
    // The rest of it goes on resting by its own time.
    const part = [...used, { ...allocated('c', 3, '10.20.0.0/26') }];
    expect(given(part, { v4: 26 })).to.deep.equal({ short: ['v4/26'], until: later });
    expect(given(part, { v4: 26 }, later)).to.deep.equal(['10.20.0.64/26']);
  });

  it('tells once for each length that nothing is left of it', () => {
    const full = [created({ ranges: ['10.20.0.0/24'] }), allocated('a', 1, '10.20.0.0/25')];
    const told: PrefixPoolEvent = { type: 'PrefixPoolExhausted', data: { at, wanted: ['v4/24'] } };
    expect(given([...full, told], { v4: 24 })).to.equal('POOL_EXHAUSTED');
    expect(given([...full, told, allocated('b', 2, '10.20.0.128/26')], { v4: 24 })).to.equal(
      'POOL_EXHAUSTED',
    );
    expect(given([...full, told, allocated('b', 2, '10.20.0.128/25')], { v4: 25 })).to.deep.equal({
      short: ['v4/25'],
      until: undefined,
    });
  });

  it('refuses what is no CIDR, has host bits, overlaps, or that nobody routes', () => {
    const wrong = [
      '10.20.0.0',
      '10.20.0.0/33',
      '10.0.0.1/8',
      '0.0.0.0/0',
      '::/0',
      '::ffff:10.0.0.0/104',
      'x',
    ];
    for (const range of wrong)
      pool
        .given()
        .when(create({ ranges: [range] }))
        .thenRejected('INVALID_CIDR', { field: 'ranges' });
    for (const ranges of [
      ['10.0.0.0/8', '10.20.0.0/16'],
      ['fd00::/8', 'fd20::/48'],
    ])
      pool.given().when(create({ ranges })).thenRejected('INVALID_CIDR', { field: 'ranges' });
    pool
      .given()
      .when(create({ ranges: [] }))
      .thenRejected('RANGES_REQUIRED', { field: 'ranges' });
    pool
      .given()
      .when(create({ reserved: ['10.20.0.9'] }))
      .thenRejected('INVALID_CIDR', { field: 'reserved' });
    pool
      .given()
      .when(create({ vrf: '' }))
      .thenRejected('INVALID_NAME', { field: 'vrf' });
    const many = Array.from({ length: 65 }, (_, i) => `10.0.${i}.0/24`);
    pool
      .given()
      .when(create({ ranges: many }))
      .thenRejected('INVALID_CIDR', { field: 'ranges' });
    expect(plainCidrs(['10.1.2.3/16', 'FD00:0::1/48', 'x'])).to.deep.equal(['10.1.0.0/16', 'fd00::/48', 'x']);
  });

  it('shrinks no further than what is in use or in quarantine', () => {
    const had = [created(), allocated('a', 1, '10.20.1.0/26'), allocated('b', 2, '10.20.2.0/24')];
    const now = pool.given(...had, released('b', 2, '10.20.2.0/24'));
    now.when(resize({ ranges: ['10.20.0.0/24'] })).thenRejected('POOL_IN_USE', { field: 'ranges' });
    now.when(resize({ ranges: ['10.20.0.0/23'] })).thenRejected('POOL_IN_USE', { field: 'ranges' });
    now.when(resize({ reserved: ['10.20.1.32/27'] })).thenRejected('POOL_IN_USE', { field: 'ranges' });
    now.when(resize({ ranges: ['10.20.0.0/23'] }, later)).thenRejected('POOL_IN_USE');
    // As for VLANs: a clock may be set back.
    const nextDay = new Date(Date.parse(later) + 86_400_000).toISOString();
    const shrunk = { type: 'PrefixPoolResized', data: { at: nextDay, ranges: ['10.20.0.0/23'] } } as const;
    const { reserved, quarantineSeconds } = definition;
    now.when(resize({ ranges: ['10.20.0.0/23'] }, nextDay)).thenEvents({
      ...shrunk,
      data: { ...shrunk.data, reserved, quarantineSeconds, reason },
    });
    // Two ranges side by side hold what one held.
    now.when(resize({ ranges: ['10.20.0.0/17', '10.20.128.0/17'] })).thenEvents({
      type: 'PrefixPoolResized',
      data: { at, ranges: ['10.20.0.0/17', '10.20.128.0/17'], reserved, quarantineSeconds, reason },
    });
  });

  it('after a change of size gives out neither what is held nor what rests', () => {
    const grown: PrefixPoolEvent = {
      type: 'PrefixPoolResized',
      data: { at, ranges: ['10.20.0.0/22'], reserved: [], quarantineSeconds: 600, reason },
    };
    const had = [
      created({ ranges: ['10.20.0.0/23'] }),
      allocated('a', 1, '10.20.0.0/24'),
      allocated('b', 2, '10.20.1.0/24'),
      released('b', 2, '10.20.1.0/24'),
      grown,
    ];
    expect(given(had, { v4: 23 })).to.deep.equal(['10.20.2.0/23']);
    expect(given([...had, allocated('c', 3, '10.20.2.0/23')], { v4: 24 })).to.deep.equal({
      short: ['v4/24'],
      until: later,
    });
  });
});

describe('hosts of a prefix', () => {
  const hosts = (text: string) => blocksOf([text]).map(hostsOf)[0];

  it('of IPv4 are not its network, its broadcast address and its gateway', () => {
    expect(hosts('192.0.2.0/29')).to.deep.equal({
      first: '192.0.2.1',
      last: '192.0.2.6',
      gateway: '192.0.2.1',
      usable: 5n,
    });
    expect(hosts('192.0.2.8/31')).to.include({ first: '192.0.2.8', last: '192.0.2.9', usable: 1n });
    expect(hosts('192.0.2.7/32')).to.deep.equal({ first: '192.0.2.7', last: '192.0.2.7', usable: 1n });
    expect(hosts('10.0.0.0/15')).to.include({ first: '10.0.0.1', last: '10.1.255.254' });
  });

  it('of IPv6 are not the anycast addresses', () => {
    expect(hosts('fd20::/64')).to.include({ first: 'fd20::1', gateway: 'fd20::1' });
    expect(hosts('fd20::/64')?.last).to.equal('fd20::ffff:ffff:ffff:ff7f');
    expect(hosts('fd20::/127')).to.include({ first: 'fd20::', last: 'fd20::1', gateway: 'fd20::' });
    expect(hosts('fd20::9/128')).to.deep.equal({ first: 'fd20::9', last: 'fd20::9', usable: 1n });
    expect(hosts('fd20::/126')).to.include({ first: 'fd20::1', last: 'fd20::3', usable: 2n });
  });
});
