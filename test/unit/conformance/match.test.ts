import { expect } from 'chai';
import { difference, fill, type Captures } from '../../support/conformance/match.ts';

const none = (): Captures => new Map();
const compare = (expected: unknown, actual: unknown, captures = none()): string | undefined =>
  difference(expected, actual, captures);

const ID = '01a1fdc2-4508-7855-8634-3a90dec35dd3';
const OTHER = '01a1fdbf-84ed-7030-aedf-1bf80e427cd0';

describe('conformance: comparing answers', () => {
  it('finds equal JSON equal, whatever the order of its keys', () =>
    expect(compare({ a: 1, b: [true, null, 'x'] }, { b: [true, null, 'x'], a: 1 })).to.equal(undefined));

  for (const [what, expected, actual, words] of [
    ['another text', { a: 'x' }, { a: 'y' }, 'body.a: "x" was expected, not "y"'],
    ['another number', { a: { b: 1 } }, { a: { b: 2 } }, 'body.a.b: 1 was expected, not 2'],
    ['a number written as text', { a: 1 }, { a: '1' }, 'body.a: 1 was expected'],
    ['a text that is a number', { a: '1' }, { a: 1 }, 'body.a: "1" was expected'],
    ['true for 1', [1], [true], 'body[0]: 1 was expected, not true'],
    ['null for an object', { a: {} }, { a: null }, 'body.a: an object was expected, not null'],
    ['a list for an object', {}, [], 'body: an object was expected, not []'],
    ['an object for a list', [], {}, 'body: a list was expected, not {}'],
    ['a key that is missing', { a: 1, b: 2 }, { a: 1 }, 'body: b missing'],
    ['a key too much', { a: 1 }, { a: 1, b: 2 }, 'body: b not expected'],
    ['a key too much further in', [{ a: {} }], [{ a: { c: 0 } }], 'body[0].a: c not expected'],
    ['an inherited key', { constructor: '<any>' }, {}, 'body: constructor missing'],
    ['an entry too much', [1], [1, 2], 'body: 1 entries were expected, not 2'],
    ['an entry too few', [1, 2], [1], 'body: 2 entries were expected, not 1'],
    ['another order of entries', [1, 2], [2, 1], 'body[0]: 1 was expected, not 2'],
    ['nothing at all', { a: 1 }, undefined, 'body: an object was expected, not nothing'],
    ['letters that mean something in patterns', 'a.c', 'abc', 'body: "a.c" was expected'],
    ['more text behind', '<uuid>', `${ID}!`, 'body: "<uuid>" was expected'],
    ['no UUID', '<uuid>', 'mine', 'body: "<uuid>" was expected'],
    ['no time', '<time>', '2026-11-21', 'body: "<time>" was expected'],
    ['a time with an offset', '<time>', '2026-11-21T10:00:00+01:00', 'body: "<time>" was expected'],
    ['a time of another century', '<time>', '1999-12-31T00:00:00Z', 'body: "<time>" was expected'],
    ['no text', '<text>', '', 'body: "<text>" was expected'],
    ['a number for a text', '<text>', 7, 'body: "<text>" was expected'],
  ] as const)
    it(`tells ${what}`, () => expect(compare(expected, actual)).to.include(words));

  it('allows more keys beside "..."', () => {
    expect(compare({ a: 1, '...': true }, { a: 1, b: 2 })).to.equal(undefined);
    expect(compare({ a: 1, '...': true }, { b: 2 })).to.include('a missing');
  });
  it('takes anything for <any>, but not nothing', () => {
    for (const value of [0, '', null, [], {}])
      expect(compare({ a: '<any>' }, { a: value })).to.equal(undefined);
    expect(compare('<any>', undefined)).to.include('nothing there');
  });
  it('knows forms inside texts', () => {
    expect(compare('cluster <uuid> at <time>', `cluster ${ID} at 2026-11-21T10:00:00.500Z`)).to.equal(
      undefined,
    );
    expect(compare('<event>', 'memory.0000000000000039.0')).to.equal(undefined);
  });
  it('refuses placeholders that it does not know', () =>
    expect(() => compare('<number>', '7')).to.throw('<number> is no placeholder'));
});

describe('conformance: captured values', () => {
  it('binds a name at first sight and holds every later one against it', () => {
    const captures = none();
    expect(
      compare({ id: '<C1:uuid>', text: "no '<C1>'" }, { id: ID, text: `no '${ID}'` }, captures),
    ).to.equal(undefined);
    expect(captures.get('C1')).to.equal(ID);
    expect(compare('<C1>', ID, captures)).to.equal(undefined);
    expect(compare('<C1>', OTHER, captures)).to.include('"<C1>" was expected');
    expect(compare('<C1:uuid>', OTHER, captures)).to.include('was expected');
  });
  it('binds nothing to what has not the form', () => {
    const captures = none();
    expect(compare('<C1:uuid>', 'mine', captures)).to.include('was expected');
    expect([...captures]).to.deep.equal([]);
  });
  it('fills them into paths, keys and bodies', () => {
    const captures: Captures = new Map([['C1', ID]]);
    expect(fill({ '{C1}': ['/clusters/{C1}', 1, null] }, captures)).to.deep.equal({
      [ID]: [`/clusters/${ID}`, 1, null],
    });
  });
  it('sends no placeholder that nothing was captured for', () =>
    expect(() => fill({ id: '{C2}' }, none())).to.throw('nothing was captured for {C2}'));
});
