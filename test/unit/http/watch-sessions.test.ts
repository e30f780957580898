import { expect } from 'chai';
import { ApiError, unauthenticated } from '../../../src/http/errors.ts';
import type { Principal } from '../../../src/http/osac/principal.ts';
import type { Ending } from '../../../src/http/osac/watch/endings.ts';
import {
  createSessions,
  type SessionSettings,
  type Sessions,
} from '../../../src/http/osac/watch/sessions.ts';
import { manualTime } from '../../support/manual-time.ts';

type Token = { tenants: readonly string[] } | Error;

const fixture = (settings: Partial<SessionSettings> = {}) => {
  const time = manualTime();
  const tokens = new Map<string, Token>();
  const asked: string[] = [];
  const logged: object[] = [];
  const logger = {
    debug() {},
    info() {},
    warn() {},
    error: (fields: object) => void logged.push(fields),
    child: () => logger,
  };
  const sessions: Sessions = createSessions({
    authenticate: (authorization = '') => {
      asked.push(authorization);
      const token = tokens.get(authorization);
      if (token === undefined || token instanceof Error) throw token ?? new Error('no such token');
      return { tenants: token.tenants } as Principal;
    },
    timers: time.timers,
    logger,
    settings,
  });
  /** Opens a watch; what ended it is in `ended`. */
  const enter = (token: string, subjectId = 'somebody', admin = false, homeTenant = 't1', filter = '') => {
    tokens.set(token, tokens.get(token) ?? { tenants: ['t1'] });
    const seat = sessions.enter({
      principal: { subjectId, tokenIdHash: `hash of ${token}`, admin, homeTenant },
      authorization: token,
      method: '/osac.public.v1.Events/Watch',
      filter,
      rightsOf: ({ tenants }) => tenants.join(),
      rights: 't1',
    });
    const ended: ApiError[] = [];
    seat.take({ end: (ending: Ending) => void ended.push(ending('last')), forget: () => {} });
    return { ...seat, ended };
  };
  return { time, tokens, asked, logged, sessions, enter };
};

const refusal = (act: () => unknown): ApiError => {
  try {
    act();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('it was not refused');
};

describe('sessions of watches', () => {
  it('present each token again, once for all of its watches, as long as there are any', async () => {
    const { time, asked, enter } = fixture({ recheckMs: 1000 });
    const seats = [enter('a'), enter('a'), enter('b')];
    await time.pass(2500);
    expect(asked).to.deep.equal(['a', 'b', 'a', 'b']);
    for (const seat of seats) seat.leave();
    await time.pass(5000);
    expect(asked).to.have.length(4);
    enter('c');
    await time.pass(1000);
    expect(asked.slice(4)).to.deep.equal(['c']);
    expect(seats.flatMap(({ ended }) => ended)).to.deep.equal([]);
  });

  it('end the watches of a token that is not accepted any more, and no others', async () => {
    const { time, tokens, enter } = fixture({ recheckMs: 1000 });
    const [over, other] = [enter('a'), enter('b')];
    tokens.set('a', unauthenticated('token expired: fetch a new one', true));
    await time.pass(1000);
    expect(over.ended.map(({ error, message }) => `${error} ${message}`)).to.deep.equal([
      'UNAUTHENTICATED token expired: fetch a new one',
    ]);
    expect(over.ended[0]?.options.facts).to.deep.equal({ last_id: 'last' });
    expect(other.ended).to.deep.equal([]);
  });

  it('end the watches of a caller who sees other things than before', async () => {
    const { time, tokens, enter } = fixture({ recheckMs: 1000 });
    const watch = enter('a');
    tokens.set('a', { tenants: ['t2'] });
    await time.pass(1000);
    expect(watch.ended.map(({ reason }) => reason)).to.deep.equal(['RIGHTS_CHANGED']);
  });

  it('go on while the issuer cannot be reached, and say so when the look itself breaks', async () => {
    const { time, tokens, enter, logged } = fixture({ recheckMs: 1000 });
    const [waiting, odd] = [enter('a'), enter('b')];
    tokens.set('a', new ApiError('UNAVAILABLE', 'the issuer cannot be reached'));
    tokens.set('b', new TypeError('a bug'));
    await time.pass(3000);
    expect([...waiting.ended, ...odd.ended]).to.deep.equal([]);
    expect(logged).to.have.length(3);
  });

  it('bound the watches of one subject over all of its tokens, but not those of admins', () => {
    const { enter } = fixture({ perSubject: 2 });
    const first = enter('a', 'alice');
    enter('b', 'alice');
    const refused = refusal(() => enter('c', 'alice'));
    expect(refused.status).to.equal(429);
    expect(refused.message).to.contain('2 watches');
    enter('d', 'bob');
    for (let i = 0; i < 5; i += 1) enter('e', 'root', true);
    first.leave();
    first.leave();
    enter('a', 'alice');
    expect(refusal(() => enter('a', 'alice')).reason).to.equal('TOO_MANY_WATCHES');
  });

  it('bound the watches of all', () => {
    const { enter, sessions } = fixture({ total: 2 });
    const seat = enter('a', 'alice');
    enter('b', 'root', true);
    expect(refusal(() => enter('c', 'root', true)).status).to.equal(503);
    expect(sessions.count()).to.equal(2);
    seat.leave();
    enter('c', 'root', true);
  });

  it('leave room for others: the many users of a tenant share its places', () => {
    const { enter, sessions } = fixture({ perTenant: 3, perSubject: 2, total: 5 });
    const seats = ['a', 'b', 'c'].map((user) => enter(user, user));
    const refused = refusal(() => enter('d', 'd'));
    expect([refused.status, refused.reason]).to.deep.equal([429, 'TOO_MANY_WATCHES']);
    expect(refused.message).to.contain('this tenant have 3 watches');
    enter('e', 'e', false, 't2');
    enter('root', 'root', true, 't1');
    expect(refusal(() => enter('f', 'f', false, 't2')).status, 'the total').to.equal(503);
    seats[0]?.leave();
    enter('d', 'd');
    expect(sessions.count()).to.equal(5);
  });

  it('have so many different filters of one tenant; equal ones are one', () => {
    const { enter } = fixture({ filtersPerTenant: 2 });
    const first = enter('a', 'a', false, 't1', 'x');
    const again = enter('b', 'b', false, 't1', 'x');
    enter('b', 'b', false, 't1', 'y');
    const refused = refusal(() => enter('c', 'c', false, 't1', 'z'));
    expect([refused.status, refused.reason]).to.deep.equal([429, 'TOO_MANY_FILTERS']);
    expect(refused.message).to.contain('2 different filters');
    enter('c', 'c', false, 't1');
    enter('d', 'd', false, 't2', 'z');
    for (const filter of ['p', 'q', 'r']) enter('root', 'root', true, 't1', filter);
    first.leave();
    expect(refusal(() => enter('c', 'c', false, 't1', 'z')).reason).to.equal('TOO_MANY_FILTERS');
    again.leave();
    again.leave();
    enter('c', 'c', false, 't1', 'z');
    expect(refusal(() => enter('c', 'c', false, 't1', 'x')).reason).to.equal('TOO_MANY_FILTERS');
  });
});
