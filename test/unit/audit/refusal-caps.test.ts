import { expect } from 'chai';
import fc from 'fast-check';
import { createRefusalCaps } from '../../../src/app/audit/refusal-caps.ts';
import type { Actor } from '../../../src/app/log/metadata.ts';
import { check } from '../../support/property.ts';

/** Room for callers whose refusals are counted one by one. */
const ROOM = 10_000;
const NONE = { atOnce: 0, perMinute: 0 };

describe('the caps of recorded refusals', () => {
  const at = (second: number): string => `2026-11-22T12:00:${String(second).padStart(2, '0')}.000Z`;
  const createCaps = () => createRefusalCaps({ perSubject: NONE, strangers: NONE, monotonicMs: () => 0 });

  it('count callers together beyond so many: who makes up callers does not fill the memory', () => {
    const caps = createCaps();
    const actor = { subjectId: 's', roles: [], authMethod: 'jwt' } as const;
    for (let n = 0; n < ROOM + 500; n += 1)
      expect(caps.admit({ subjectId: `s${n}`, tenant: 'acme', at: at(n % 60), actor })).to.equal(false);
    const counted = caps.take();
    expect(counted).to.have.length(ROOM + 1);
    expect(counted.reduce((sum, { count }) => sum + count, 0)).to.equal(ROOM + 500);
    // Of nobody, and in no tenant's history.
    expect(counted.at(-1)).to.include({ tenant: '', count: 500 });
    expect(counted.at(-1)).to.not.have.any.keys('subjectId', 'actor');
    expect(caps.take()).to.deep.equal([]);
  });

  it('go on counting those who are known when there is no more room, from the first to the last', () => {
    const caps = createCaps();
    for (let n = 0; n < ROOM; n += 1) caps.admit({ subjectId: `s${n}`, tenant: 'acme', at: at(30) });
    caps.admit({ subjectId: 's7', tenant: 'acme', at: at(40) });
    caps.admit({ subjectId: 's7', tenant: 'acme', at: at(20) });
    const taken = caps.take();
    expect(taken[7]).to.deep.equal({
      subjectId: 's7',
      tenant: 'acme',
      count: 3,
      since: at(20),
      until: at(40),
    });
    expect(taken).to.have.length(ROOM);
    // What could not be written counts on with what came since.
    caps.admit({ subjectId: 's7', tenant: 'acme', at: at(50) });
    caps.putBack(taken.slice(7, 8));
    expect(caps.take()).to.deep.equal([
      { subjectId: 's7', tenant: 'acme', count: 4, since: at(20), until: at(50) },
    ]);
  });

  /** Somebody, with a token of its own or through another; the service itself does what somebody has asked for. */
  const calling = (subjectId: string, through?: string): { subjectId: string; actor: Actor } => {
    const internal = through === 'system';
    const acting = {
      subjectId: through ?? subjectId,
      ...(through !== undefined && { onBehalfOf: subjectId }),
    };
    const actor: Actor = { ...acting, roles: [], authMethod: internal ? 'internal' : 'jwt', via: 'http' };
    return { subjectId: acting.subjectId, actor };
  };
  const two = { perSubject: { atOnce: 2, perMinute: 0 }, strangers: NONE, monotonicMs: () => 0 };

  it('given somebody who was refused up to the cap, when it comes through another proxy, then it has no more', () => {
    const caps = createRefusalCaps(two);
    const through = (proxy?: string): boolean =>
      caps.admit({ ...calling('alice', proxy), tenant: 'acme', at: at(1) });
    expect([through('p1'), through('p2'), through('p3'), through()]).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
    // Who did it is told for each of them, and for whom.
    expect(
      caps.take().map(({ subjectId, actor, count }) => [subjectId, actor?.onBehalfOf, count]),
    ).to.deep.equal([
      ['p3', 'alice', 1],
      ['alice', undefined, 1],
    ]);
  });

  it('given a proxy that was refused for one up to the cap, when it acts for another, then the other has its own', () => {
    const caps = createRefusalCaps(two);
    const of = (subject: string): boolean =>
      caps.admit({ ...calling(subject, 'proxy'), tenant: 'acme', at: at(1) });
    expect([of('alice'), of('alice'), of('alice')]).to.deep.equal([true, true, false]);
    expect([of('bob'), of('bob'), of('bob')]).to.deep.equal([true, true, false]);
    // Counted for each of them: the one's count is nothing that the other's history tells.
    expect(caps.take().map(({ actor, count }) => [actor?.onBehalfOf, count])).to.deep.equal([
      ['alice', 1],
      ['bob', 1],
    ]);
    expect(caps.admit({ ...calling('proxy'), tenant: 'acme', at: at(1) }), 'for itself').to.equal(true);
  });

  it('given what the service was refused for somebody, when that one is refused itself, then it has its own', () => {
    const caps = createRefusalCaps(two);
    const of = (through?: string): boolean =>
      caps.admit({ ...calling('alice', through), tenant: 'acme', at: at(1) });
    expect([of('system'), of('system'), of('system')]).to.deep.equal([true, true, false]);
    expect([of(), of(), of()]).to.deep.equal([true, true, false]);
  });

  it('given somebody who was refused in one tenant, when it is in another, then that history has its own, and its count', () => {
    const caps = createRefusalCaps(two);
    const of = (tenant: string): boolean => caps.admit({ ...calling('admin'), tenant, at: at(1) });
    expect([of('t1'), of('t1'), of('t1')]).to.deep.equal([true, true, false]);
    expect([of('t2'), of('t2'), of('t2'), of('t2')]).to.deep.equal([true, true, false, false]);
    const taken = caps.take();
    expect(taken.map(({ tenant, count }) => [tenant, count])).to.deep.equal([
      ['t1', 1],
      ['t2', 2],
    ]);
    caps.putBack(taken);
    expect(caps.take()).to.deep.equal(taken);
  });

  it('given more subjects than there is room for, when the first comes again, then it has no new allowance', () => {
    const room = 3;
    const caps = createRefusalCaps({ ...two, room });
    const of = (subject: string): boolean => caps.admit({ ...calling(subject), tenant: 'acme', at: at(1) });
    const rounds = Array.from({ length: 5 }, () => ['a', 'b', 'c', 'd', 'e'].filter(of));
    // Two each; those for whom there is no room share two.
    expect(rounds).to.deep.equal([['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'c'], [], [], []]);
  });

  it('given no room, when one of those who have some was not refused for long, then another one gets it', () => {
    let now = 0;
    const perSubject = { atOnce: 2, perMinute: 60 };
    const caps = createRefusalCaps({ perSubject, strangers: NONE, monotonicMs: () => now, room: 2 });
    const of = (subject: string): boolean => caps.admit({ ...calling(subject), tenant: 'acme', at: at(1) });
    expect(['a', 'b'].map(of)).to.deep.equal([true, true]);
    now = 900;
    expect(of('a')).to.equal(true);
    // What b has used is given back by now; a, which came before it at first, has come once more.
    now = 1_500;
    expect(['c', 'c', 'c'].map(of)).to.deep.equal([true, true, false]);
    expect(['b', 'd', 'b'].map(of), 'these two share').to.deep.equal([true, true, false]);
  });

  it('given one of those for whom there was no room, when there is, then it has what is left', () => {
    let now = 0;
    const perSubject = { atOnce: 3, perMinute: 60 };
    const caps = createRefusalCaps({ perSubject, strangers: NONE, monotonicMs: () => now, room: 1 });
    const of = (subject: string): boolean => caps.admit({ ...calling(subject), tenant: 'acme', at: at(1) });
    expect(['a', 'x', 'x', 'x', 'x'].map(of)).to.deep.equal([true, true, true, true, false]);
    now = 1_000;
    expect(['x', 'x'].map(of)).to.deep.equal([true, false]);
    now = 6_000;
    expect(['x', 'x', 'x', 'x'].map(of)).to.deep.equal([true, true, true, false]);
  });

  it('admit of one subject in one tenant what its allowance is, whoever acts and however many others there are', () => {
    const perSubject = { atOnce: 3, perMinute: 60 };
    const name = (...names: readonly string[]) => fc.constantFrom(...names);
    const call = fc.record({
      subject: name('a', 'b', 'c', 'd'),
      through: fc.option(name('p1', 'p2'), { nil: undefined }),
      tenant: name('t1', 't2'),
      // Of a length that adds up exactly.
      wait: fc.integer({ min: 0, max: 8 }).map((quarters) => quarters * 250),
    });
    const ofWhom = ({ subject, tenant }: { subject: string; tenant: string }): string =>
      `${tenant} ${subject}`;
    check(
      fc.property(fc.array(call, { maxLength: 60 }), fc.integer({ min: 1, max: 10 }), (calls, room) => {
        let now = 0;
        const caps = createRefusalCaps({ perSubject, strangers: NONE, monotonicMs: () => now, room });
        const allowances = new Map<string, { tokens: number; at: number }>();
        const crowded = new Set(calls.map(ofWhom)).size > room;
        let admitted = 0;
        for (const each of calls) {
          now += each.wait;
          const own = allowances.get(ofWhom(each)) ?? { tokens: perSubject.atOnce, at: now };
          own.tokens = Math.min(perSubject.atOnce, own.tokens + (now - own.at) / 1_000);
          own.at = now;
          allowances.set(ofWhom(each), own);
          const { subject, through, tenant } = each;
          const admits = caps.admit({ ...calling(subject, through), tenant, at: at(1) });
          // Never more than its own; less where there is no room for it.
          if (admits || !crowded) expect(admits).to.equal(own.tokens >= 1);
          if (admits) {
            own.tokens -= 1;
            admitted += 1;
          }
        }
        const counted = caps.take();
        expect(counted.reduce((sum, { count }) => sum + count, admitted)).to.equal(calls.length);
        // Only those for whom there is no room are counted together, without a name.
        for (const { tenant, actor, subjectId } of counted)
          if (subjectId === undefined)
            expect({ tenant, actor, crowded }).to.deep.equal({ tenant: '', actor: undefined, crowded: true });
          else expect([...allowances.keys()]).to.include(`${tenant} ${actor?.onBehalfOf ?? subjectId}`);
      }),
    );
  });
});
