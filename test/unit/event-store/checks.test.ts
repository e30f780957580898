import { expect } from 'chai';
import { checkAppend, checkMaxCount, matcher } from '../../../src/adapters/event-store/shared/checks.ts';
import { EventTooLarge, MAX_APPEND_BYTES, type EventToAppend } from '../../../src/app/log/event-store.ts';

const of = (data: string, metadata = ''): EventToAppend => ({ id: 'id', type: 'Sized', data, metadata });
/** Twice the length of the type counts. */
const ROOM = MAX_APPEND_BYTES - 2 * 'Sized'.length;
const check = (...events: EventToAppend[]): void => checkAppend('order-1', 'no_stream', events);

describe('event store: checks before an append', () => {
  it('accepts exactly the limit and refuses one byte more: data, metadata and twice the type', () => {
    check(of('x'.repeat(ROOM - 10), 'x'.repeat(10)));
    expect(() => check(of('x'.repeat(ROOM - 10), 'x'.repeat(11)))).to.throw(
      EventTooLarge,
      `event Sized has ${MAX_APPEND_BYTES + 1} bytes; the event store takes at most ${MAX_APPEND_BYTES}`,
    );
  });

  it('counts bytes of UTF-8, not characters', () => {
    const threeBytes = '\u20ac';
    const most = Math.floor(ROOM / 3);
    check(of(threeBytes.repeat(most)));
    expect(() => check(of(threeBytes.repeat(most + 1)))).to.throw(EventTooLarge);
  });

  it('looks at every event', () => {
    expect(() => check(of('{}'), of('x'.repeat(MAX_APPEND_BYTES + 1)))).to.throw(
      EventTooLarge,
      'event Sized',
    );
  });

  it('counts the events of an append together', () => {
    const half = of('x'.repeat(ROOM / 2));
    expect(() => check(half, half)).to.throw(
      EventTooLarge,
      `append of 2 events to order-1 has ${ROOM + 20} bytes`,
    );
    check(half, of('x'.repeat(ROOM / 2 - 10)));
  });

  it('counts the names under which correlation and causation are stored as well', () => {
    const metadata = JSON.stringify({ correlationId: 'c-1', causationId: 'k-1' });
    const added = '"$correlationId":"c-1","$causationId":"k-1",'.length;
    const most = ROOM - metadata.length - added;
    check(of('x'.repeat(most), metadata));
    expect(() => check(of('x'.repeat(most + 1), metadata))).to.throw(
      EventTooLarge,
      String(MAX_APPEND_BYTES + 1),
    );
  });

  for (const wrong of [-1, 1.5, Number.NaN, Infinity])
    it(`takes ${wrong} for no revision`, () => {
      expect(() => checkAppend('order-1', wrong, [of('{}')])).to.throw(TypeError);
    });

  for (const [stream, maxCount] of [
    ['cluster-1', 1],
    ['sys-lease', 0],
    ['sys-lease', 1.5],
  ] as const)
    it(`refuses to bound ${stream} to ${maxCount}`, () => {
      expect(() => checkMaxCount(stream, maxCount)).to.throw(TypeError);
    });
});

describe('event store: filters', () => {
  const event = { stream: 'cluster-1', type: 'ClusterOrdered' };

  it('passes everything without a filter, nothing without prefixes', () => {
    expect(matcher(undefined)(event)).to.equal(true);
    expect(matcher({ streamPrefixes: [] })(event)).to.equal(false);
  });

  it('passes what begins with one of the prefixes', () => {
    expect(matcher({ streamPrefixes: ['host-', 'cluster-'] })(event)).to.equal(true);
    expect(matcher({ streamPrefixes: ['luster-', 'Cluster-'] })(event)).to.equal(false);
    expect(matcher({ typePrefixes: ['Cluster'] })(event)).to.equal(true);
    expect(matcher({ typePrefixes: ['cluster'] })(event)).to.equal(false);
  });
});
