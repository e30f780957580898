import type { Logger, Timers } from '../../../app/ports.ts';
import type { Authenticate } from '../../authenticate.ts';
import { ApiError } from '../../errors.ts';
import type { Principal } from '../principal.ts';
import { notAccepted, rightsChanged } from './endings.ts';
import type { OpenWatch } from './hub.ts';
import { createSeats, type SeatLimits } from './seats.ts';

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
  readonly principal: Pick<Principal, 'subjectId' | 'tokenIdHash' | 'homeTenant' | 'admin'>;
  readonly authorization: string | undefined;
  readonly method: string;
  /** Equal for filters that are evaluated once for all who sent them; empty: none. */
  readonly filter: string;
  /** Equal as long as the caller sees the same things; throws ApiError when the caller may not watch at all. */
  readonly rightsOf: (principal: Principal) => string;
  readonly rights: string;
};

export type Seat = {
  /** What is to be ended when the token is no longer good for it. */
  readonly take: (watch: OpenWatch) => void;
  readonly leave: () => void;
};

export type SessionSettings = SeatLimits & {
  /** Milliseconds between two looks at a token. */
  readonly recheckMs: number;
};

export const SESSION_SETTINGS: SessionSettings = {
  total: 20_000,
  perTenant: 10_000,
  perSubject: 100,
  filtersPerTenant: 50,
  recheckMs: 5_000,
};

export type SessionsOptions = {
  readonly authenticate: Authenticate;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly settings?: Partial<SessionSettings>;
};

type Session = { readonly caller: Caller; readonly watches: Set<OpenWatch>; seats: number };

export const createSessions = ({ authenticate, timers, logger, settings }: SessionsOptions): Sessions => {
  const limits = { ...SESSION_SETTINGS, ...settings };
  const { recheckMs } = limits;
  const seats = createSeats(limits);
  const sessions = new Map<string, Session>();
  let cancel = (): void => {};

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
        logger.error({ err: error }, 'token of a watch not verified again');
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
      const vacate = seats.take(caller);
      const key = `${principal.tokenIdHash} ${rights}`;
      const session = sessions.get(key) ?? { caller, watches: new Set<OpenWatch>(), seats: 0 };
      sessions.set(key, session);
      if (seats.count() === 1) later();
      session.seats += 1;
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
          vacate();
          if (session.seats === 0) sessions.delete(key);
          if (seats.count() === 0) cancel();
        },
      };
    },
    count: seats.count,
  };
};

const RECHECKS_PER_TURN = 200;
