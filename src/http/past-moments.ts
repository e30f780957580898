import type { EventStore, Position } from '../app/log/event-store.ts';
import type { Clock } from '../app/ports.ts';
import type { AuditReader } from '../projections/audit/audit-reader.ts';
import type { ReadModels } from '../projections/read-models.ts';
import { invalid, notReached, unfit, type ApiError } from './errors.ts';
import type { Positions } from './positions.ts';
import { isLikeTime, readRfc3339 } from './times.ts';

/** Moments of the past as callers name them: an RFC 3339 time, or a position as `X-Ledger-Position` shows it. */
export type Moments = {
  /**
   * The last position that counts at the moment; empty: nothing had been stored yet. Throws ApiError 400 (malformed,
   * of another store, in the future), 400 FAILED_PRECONDITION (a time, where no time can be looked up) or 503 (too
   * late).
   *
   * @param name the parameter, for the message.
   */
  resolve(text: string, name: string): Promise<Position>;
};

/** Stands before every position. */
export const BEFORE_EVERYTHING = '';

export type MomentsOptions = {
  readonly store: Pick<EventStore, 'lastPosition' | 'end'>;
  readonly positions: Pick<Positions, 'parse'>;
  /** Knows when which position was stored; undefined: this instance does not (role auditor). */
  readonly audit: () => Pick<AuditReader, 'positionAt' | 'size' | 'sizeAtTime'> | undefined;
  readonly waitFor: ReadModels['waitFor'];
  readonly clock: Pick<Clock, 'now'>;
  /** Milliseconds that a call waits for this instance to have taken in what was stored. Default 5,000. */
  readonly waitMs?: number;
};

export const createMoments = ({
  store,
  positions,
  audit,
  waitFor,
  clock,
  waitMs = 5_000,
}: MomentsOptions): Moments => {
  const atTime = async (text: string, name: string): Promise<Position> => {
    const ms = readRfc3339(text);
    if (ms === undefined)
      throw invalid(
        `'${name}' must be an existing time with its offset from UTC, such as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00`,
        name,
      );
    const now = clock.now();
    if (ms > Date.parse(now)) throw inTheFuture(name, ` (here it is ${now})`);
    const reader = audit();
    if (reader === undefined)
      throw unfit(
        `this instance knows no times of the past (role auditor is off here): give '${name}' as a position, as X-Ledger-Position shows it`,
        'NO_AUDITOR',
      );
    const time = new Date(ms).toISOString();
    // Once something later is known, all that is still to come counts as later too.
    const isSettled = reader.sizeAtTime(time) < reader.size();
    const last = isSettled ? undefined : await store.lastPosition();
    if (last !== undefined && !(await waitFor('audit', last, { timeoutMs: waitMs })))
      throw notReached('this instance has not taken in the latest events yet; try again');
    return reader.positionAt(time) ?? BEFORE_EVERYTHING;
  };
  return {
    resolve: async (text, name) => {
      if (isLikeTime(text)) return atTime(text, name);
      if (!/\.\d+$/.test(text) || /[:\s]/.test(text))
        throw invalid(
          `'${name}' must be a time such as 2026-01-31T12:00:00Z, or a position as X-Ledger-Position shows it`,
          name,
        );
      const position = positions.parse(text, name);
      // Answers name the position of a view, which may stand on a record of the store itself.
      const end = await store.end();
      if (end === undefined || position > end) throw inTheFuture(name);
      return position;
    },
  };
};

const inTheFuture = (name: string, more = ''): ApiError =>
  invalid(`'${name}' is in the future: only what has been can be shown${more}`, name, 'IN_THE_FUTURE');
