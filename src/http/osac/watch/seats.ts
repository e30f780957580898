import { tooMuch, unavailable, type ApiError } from '../../errors.ts';
import { payerOf, type Principal } from '../principal.ts';

/** How many watches there may be at one time. Admins, who watch for many, are counted in the total only. */
export type SeatLimits = {
  readonly total: number;
  /** Watches of one tenant, so that its many users leave room for others. */
  readonly perTenant: number;
  readonly perSubject: number;
  /** Different filters of one tenant: each is evaluated for each change of the tenant's objects. */
  readonly filtersPerTenant: number;
};

export type Taker = {
  readonly principal: Pick<Principal, 'subjectId' | 'homeTenant' | 'admin'>;
  /** Equal for filters that are evaluated once for all who sent them; empty: none. */
  readonly filter: string;
};

export type Seats = {
  /** Gives back what leaves the seat, once. Throws ApiError 429 or 503 when there is none. */
  readonly take: (taker: Taker) => () => void;
  readonly count: () => number;
};

export const createSeats = ({ total, perTenant, perSubject, filtersPerTenant }: SeatLimits): Seats => {
  const bySubject = createTally();
  const byTenant = createTally();
  /** Watches with each filter of each tenant, and how many filters a tenant has. */
  const byFilter = createTally();
  const filtersOf = createTally();
  let seats = 0;

  const admit = ({ subjectId, admin }: Taker['principal'], tenant: string, filter: string): void => {
    if (seats >= total)
      throw unavailable(
        'this instance serves as many watches as it can; try again later',
        'TOO_MANY_WATCHES',
        30,
      );
    if (admin) return;
    if (bySubject.of(subjectId) >= perSubject)
      throw tooMany(
        `the caller has ${perSubject} watches open already, and more are not allowed; close one, or let one watch serve several readers`,
      );
    if (byTenant.of(tenant) >= perTenant)
      throw tooMany(
        `users of this tenant have ${perTenant} watches open already, and more are not allowed; close one, or let one watch serve several readers`,
      );
    if (filter !== '' && byFilter.of(filter) === 0 && filtersOf.of(tenant) >= filtersPerTenant)
      throw tooMany(
        `users of this tenant watch with ${filtersPerTenant} different filters already, and more are not allowed; use one of them, or watch without a filter and choose on your side`,
        'TOO_MANY_FILTERS',
      );
  };

  return {
    take: ({ principal, filter }) => {
      const tenant = payerOf(principal);
      const key = filter === '' ? '' : `${tenant} ${filter}`;
      admit(principal, tenant, key);
      const change = (by: 1 | -1): void => {
        seats += by;
        bySubject.add(principal.subjectId, by);
        byTenant.add(tenant, by);
        if (key === '') return;
        byFilter.add(key, by);
        if (byFilter.of(key) === (by === 1 ? 1 : 0)) filtersOf.add(tenant, by);
      };
      change(1);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        change(-1);
      };
    },
    count: () => seats,
  };
};

/** Counts by key; a key that is back at nothing is forgotten. */
const createTally = () => {
  const counts = new Map<string, number>();
  return {
    of: (key: string): number => counts.get(key) ?? 0,
    add: (key: string, by: 1 | -1): void => {
      const count = (counts.get(key) ?? 0) + by;
      if (count === 0) counts.delete(key);
      else counts.set(key, count);
    },
  };
};

const tooMany = (text: string, reason = 'TOO_MANY_WATCHES'): ApiError => tooMuch(text, reason, 30);
