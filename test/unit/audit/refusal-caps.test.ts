import { expect } from 'chai';
import { createRefusalCaps } from '../../../src/app/audit/refusal-caps.ts';

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
});
