import type { Logger, Timers } from '../../../app/ports.ts';
import type { Authenticate } from '../../authenticate.ts';
import { ApiError } from '../../errors.ts';
import type { Principal } from '../principal.ts';
import { notAccepted, rightsChanged } from './endings.ts';
import type { OpenWatch } from './hub.ts';

/**
 * Who watches with which token. A watch may outlive the token it was opened with, the tenant or the caller's roles, so
 * each token is presented again every few seconds, once for all watches that it opened.
 */
export type Sessions = {
  /** Takes a place. Throws ApiError 429 or 503 when there is none. */
  readonly enter: (caller: Caller) => Seat;
  readonly count: () => number;
};

export type Caller = {
  readonly principal: Pick<Principal, 'subjectId' | 'tokenIdHash' | 'admin'>;
  readonly authorization: string | undefined;
  readonly method: string;
  /** Equal as long as the caller sees the same things; throws ApiError when the caller may not watch at all. */
  readonly rightsOf: (principal: Principal) => string;
  readonly rights: string;
};

export type Seat = {
  /** What is to be ended when the token is no longer good for it. */
  readonly take: (watch: OpenWatch) => void;
  readonly leave: () => void;
};

export type SessionSettings = {
  /** Watches of one subject at one time; admins, who watch for many, are counted in the total only. */
  readonly perSubject: number;
  /** Watches of all at one time. */
  readonly total: number;
  /** Milliseconds between two looks at a token. */
  readonly recheckMs: number;
};

export const SESSION_SETTINGS: SessionSettings = { perSubject: 100, total: 20_000, recheckMs: 5_000 };

export type SessionsOptions = {
  readonly authenticate: Authenticate;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly settings?: Partial<SessionSettings>;
};

type Session = { readonly caller: Caller; readonly watches: Set<OpenWatch>; seats: number };

export const createSessions = ({ authenticate, timers, logger, settings }: SessionsOptions): Sessions => {
  const { perSubject, total, recheckMs } = { ...SESSION_SETTINGS, ...settings };
  const sessions = new Map<string, Session>();
  const bySubject = new Map<string, number>();
  let seats = 0;
  let cancel = (): void => {};

  const admit = ({ subjectId, admin }: Caller['principal']): void => {
    if (seats >= total) {
      throw new ApiError('UNAVAILABLE', 'this instance serves as many watches as it can; try again later', {
        reason: 'TOO_MANY_WATCHES',
        retryAfterSeconds: 30,
      });
    }
    if (!admin && (bySubject.get(subjectId) ?? 0) >= perSubject) {
      throw new ApiError(
        'RESOURCE_EXHAUSTED',
        `the caller has ${perSubject === 1 ? '1 watch' : `${perSubject} watches`} open already, and more are not allowed; close one, or let one watch serve several readers`,
        { reason: 'TOO_MANY_WATCHES', retryAfterSeconds: 30 },
      );
    }
  };
  const end = (session: Session, ending: Parameters<OpenWatch['end']>[0]): void => {
    for (const watch of session.watches) watch.end(ending);
  };
  const recheck = async (session: Session): Promise<void> => {
    const { authorization, method, rights, rightsOf } = session.caller;
    try {
      const principal = await authenticate(authorization, method);
      if (rightsOf(principal) !== rights) end(session, rightsChanged);
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) end(session, notAccepted(error));
      // The issuer is out of reach: what was accepted so far goes on, and is asked about again.
      else if (!(error instanceof ApiError))
        logger.error({ err: error }, 'a token could not be looked at again');
    }
  };
  /** A few at a time: a known token costs one hash, another one a request to its issuer. */
  const recheckAll = async (): Promise<void> => {
    let checked = 0;
    for (const session of sessions.values()) {
      await recheck(session);
      if ((checked += 1) % RECHECKS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    if (sessions.size > 0) later();
  };
  const later = (): void => {
    cancel = timers.after(recheckMs, () => void recheckAll());
  };

  return {
    enter: (caller) => {
      const { principal, rights } = caller;
      admit(principal);
      const key = `${principal.tokenIdHash} ${rights}`;
      const session = sessions.get(key) ?? { caller, watches: new Set<OpenWatch>(), seats: 0 };
      sessions.set(key, session);
      if (seats === 0) later();
      session.seats += 1;
      seats += 1;
      bySubject.set(principal.subjectId, (bySubject.get(principal.subjectId) ?? 0) + 1);
      let mine: OpenWatch | undefined;
      let left = false;
      return {
        take: (watch) => {
          mine = watch;
          session.watches.add(watch);
        },
        leave: () => {
          if (left) return;
          left = true;
          if (mine !== undefined) session.watches.delete(mine);
          session.seats -= 1;
          seats -= 1;
          if (session.seats === 0) sessions.delete(key);
          if (seats === 0) cancel();
          const others = (bySubject.get(principal.subjectId) ?? 1) - 1;
          if (others > 0) bySubject.set(principal.subjectId, others);
          else bySubject.delete(principal.subjectId);
        },
      };
    },
    count: () => seats,
  };
};

const RECHECKS_PER_TURN = 200;
