import { expect } from 'chai';
import { checkAppend, checkMaxCount, matcher } from '../../../src/adapters/event-store/shared/checks.ts';
import { EventTooLarge, MAX_EVENT_BYTES, type EventToAppend } from '../../../src/app/event-store.ts';

const of = (data: string, metadata = ''): EventToAppend => ({ id: 'id', type: 'Sized', data, metadata });

describe('event store: checks before an append', () => {
  it('accepts exactly the limit and refuses one byte more', () => {
    checkAppend('no_stream', [of('x'.repeat(MAX_EVENT_BYTES - 10), 'x'.repeat(10))]);
    expect(() => checkAppend('no_stream', [of('x'.repeat(MAX_EVENT_BYTES - 10), 'x'.repeat(11))])).to.throw(
      EventTooLarge,
      String(MAX_EVENT_BYTES + 1),
    );
  });

  it('counts bytes of UTF-8, not characters', () => {
    const threeBytes = '\u20ac';
    const most = Math.floor(MAX_EVENT_BYTES / 3);
    checkAppend(0, [of(threeBytes.repeat(most))]);
    expect(() => checkAppend(0, [of(threeBytes.repeat(most + 1))])).to.throw(EventTooLarge);
  });

  it('looks at every event', () => {
    expect(() => checkAppend(0, [of('{}'), of('x'.repeat(MAX_EVENT_BYTES + 1))])).to.throw(EventTooLarge);
  });

  for (const wrong of [-1, 1.5, Number.NaN, Infinity])
    it(`takes ${wrong} for no revision`, () => {
      expect(() => checkAppend(wrong, [of('{}')])).to.throw(TypeError);
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
