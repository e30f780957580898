import { entryOf, withEntry, type Buckets } from '../buckets.ts';
import { reject, type DataOf, type Decider, type Decision, type Rejection } from '../decider.ts';
import { holderKey, type Holder } from '../holder.ts';
import { own, sameJson } from '../json-tools.ts';
import { later } from '../process/effects.ts';
import { amountOf, covering, grows, ORDERS, summed, type Amounts } from './amounts.ts';
import type { QuotaEvent } from './event-types.ts';

/**
 * What a tenant may have, and who has how much of it. What is held never exceeds a limit at the time it is reserved;
 * lowering a limit blocks new orders and evicts nobody.
 *
 * A reservation comes before the event that needs it. It names the revision of the holder's stream at which that event
 * is to be appended, so it is given up only when that stream has moved on: then the holder's own state says what it has.
 */
export const QUOTA_CATEGORY = 'quota';

/** A reservation of an order that is older raises an alarm. */
export const RESERVATION_MS = 24 * 3_600_000;

/** What an object uses, as its own state says at a revision of its stream. */
export type Use = { readonly amounts: Amounts; readonly settled: boolean; readonly seen: number };

export type QuotaCommand =
  | { readonly type: 'BeginCount'; readonly at: string; readonly tenant: string }
  | { readonly type: 'CountUse'; readonly at: string; readonly uses: readonly (Use & { holder: Holder })[] }
  | ({ readonly type: 'SetLimits' } & DataOf<QuotaEvent, 'QuotaLimitsSet'>)
  | ({ readonly type: 'ReserveQuota' } & Omit<DataOf<QuotaEvent, 'QuotaReserved'>, 'expiresAt'>)
  | {
      readonly type: 'SettleQuota';
      readonly at: string;
      readonly holder: Holder;
      readonly seen: number;
      /** Absent: the holder is gone, or never came to be. */
      readonly use?: Omit<Use, 'seen'>;
      readonly why: DataOf<QuotaEvent, 'QuotaReleased'>['why'];
      /** The attempt whose reservation is over although the holder's stream did not move. */
      readonly own?: string;
    };

export type Holding = {
  readonly amounts: Amounts;
  /** The part of it that is there. */
  readonly used: Amounts;
  readonly seen: number;
  /** Of a reservation: which attempt asked for it (empty: several), and when it should be settled. */
  readonly by?: string;
  readonly expiresAt?: string;
};

export type QuotaState = {
  /** Empty: the tenant has none. */
  readonly limits: Amounts;
  /** Nothing is held while it is not counted. */
  readonly counted: boolean;
  readonly holdings: Buckets<Holding>;
  /** Sums of all holdings. */
  readonly held: Amounts;
  readonly used: Amounts;
};

const OFF: QuotaState = { limits: {}, counted: false, holdings: {}, held: {}, used: {} };

/** The largest limit: sums of what is held stay exact. */
export const MAX_LIMIT = 1_000_000_000;

export const holdingOf = (state: QuotaState, holder: Holder): Holding | undefined =>
  entryOf(state.holdings, holderKey(holder));

const evolve = (state: QuotaState, event: QuotaEvent): QuotaState => {
  switch (event.type) {
    case 'QuotaCountBegan':
      return { ...OFF, counted: true };
    case 'QuotaUseCounted':
      return event.data.uses.reduce(
        (counted, { holder, amounts, settled, seen }) =>
          withHolding(counted, holder, {
            amounts,
            used: settled ? amounts : (holdingOf(counted, holder)?.used ?? {}),
            seen,
            ...(settled ? {} : { expiresAt: later(event.data.at, RESERVATION_MS) }),
          }),
        state,
      );
    case 'QuotaLimitsSet': {
      const { limits } = event.data;
      return Object.keys(limits).length === 0 ? OFF : { ...state, limits };
    }
    case 'QuotaReserved': {
      const { holder, amounts, seen, by, expiresAt } = event.data;
      const former = holdingOf(state, holder);
      // Of two attempts at the same revision neither can tell that its own end is the end of both.
      const isShared = former?.by !== undefined && former.seen === seen && former.by !== by;
      const used = former?.used ?? {};
      return withHolding(state, holder, { amounts, used, seen, by: isShared ? '' : by, expiresAt });
    }
    case 'QuotaCommitted': {
      const { holder, amounts, seen } = event.data;
      return withHolding(state, holder, { amounts, used: amounts, seen });
    }
    case 'QuotaReleased':
      return withHolding(state, event.data.holder, undefined);
    default:
      return state;
  }
};

const withHolding = (state: QuotaState, holder: Holder, next: Holding | undefined): QuotaState => {
  const before = holdingOf(state, holder);
  const changed = (sums: Amounts, was: Amounts | undefined, is: Amounts | undefined): Amounts =>
    summed(summed(sums, was ?? {}, -1), is ?? {});
  return {
    ...state,
    holdings: withEntry(state.holdings, holderKey(holder), next),
    held: changed(state.held, before?.amounts, next?.amounts),
    used: changed(state.used, before?.used, next?.used),
  };
};

const decide = (state: QuotaState, command: QuotaCommand): Decision<QuotaEvent> => {
  switch (command.type) {
    case 'BeginCount': {
      const { at, tenant } = command;
      const isLimited = Object.keys(state.limits).length > 0;
      return isLimited ? [] : [{ type: 'QuotaCountBegan', data: { at, tenant } }];
    }
    case 'CountUse': {
      const { at } = command;
      const uses = command.uses.flatMap(({ holder, ...use }) => counted(state, holder, use));
      return state.counted && uses.length > 0 ? [{ type: 'QuotaUseCounted', data: { at, uses } }] : [];
    }
    case 'SetLimits':
      return setLimits(state, command);
    case 'ReserveQuota':
      return reserve(state, command);
    case 'SettleQuota':
      return settle(state, command);
  }
};

const setLimits = (
  state: QuotaState,
  { type: _type, ...data }: Extract<QuotaCommand, { type: 'SetLimits' }>,
): Decision<QuotaEvent> => {
  const wrong = Object.entries(data.limits).find(([, limit]) => !isLimit(limit));
  if (wrong !== undefined) {
    const field = `limits.${wrong[0]}`;
    const message = `field '${field}' must be a whole number from 0 to ${MAX_LIMIT} (got ${wrong[1]})`;
    return reject('invalid', 'INVALID_LIMIT', message, { field });
  }
  if (sameJson(data.limits, state.limits)) return [];
  if (!state.counted && Object.keys(data.limits).length > 0) {
    const message = 'what the tenant has is not counted yet; set its limits again';
    return reject('failed-precondition', 'QUOTA_NOT_COUNTED', message);
  }
  return [{ type: 'QuotaLimitsSet', data }];
};

const isLimit = (limit: number): boolean => Number.isSafeInteger(limit) && limit >= 0 && limit <= MAX_LIMIT;

const reserve = (
  state: QuotaState,
  { at, holder, amounts, seen, by }: Extract<QuotaCommand, { type: 'ReserveQuota' }>,
): Decision<QuotaEvent> => {
  if (!state.counted) return [];
  const before = holdingOf(state, holder);
  const wanted = covering(before?.amounts ?? {}, { ...amounts, [ORDERS]: 1 });
  const short = shortages(state, before?.amounts ?? {}, wanted);
  if (short.length > 0) return exceeded(state, short);
  // With each attempt: one of an earlier revision may be given up at any time.
  if (before?.seen === seen && before.by === by && sameJson(before.amounts, wanted)) return [];
  const expiresAt = later(at, RESERVATION_MS);
  return [{ type: 'QuotaReserved', data: { at, holder, amounts: wanted, seen, by, expiresAt } }];
};

type Shortage = { readonly dimension: string; readonly limit: number; readonly requested: number };

const shortages = (state: QuotaState, before: Amounts, wanted: Amounts): readonly Shortage[] =>
  Object.entries(wanted)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([dimension, amount]) => {
      const limit = own(state.limits, dimension);
      const requested = amount - amountOf(before, dimension);
      const isShort =
        limit !== undefined && requested > 0 && amountOf(state.held, dimension) + requested > limit;
      return isShort ? [{ dimension, limit, requested }] : [];
    });

const exceeded = (state: QuotaState, short: readonly Shortage[]): Rejection => {
  const shown = short.map(({ dimension, limit, requested }) => {
    const used = amountOf(state.used, dimension);
    return { dimension, limit, used, reserved: amountOf(state.held, dimension) - used, requested };
  });
  const message = shown
    .map(
      ({ dimension, limit, used, reserved, requested }) =>
        `quota of '${dimension}' exceeded: limit ${limit}, used ${used}, reserved ${reserved}, requested ${requested}`,
    )
    .join('; ');
  return reject('exhausted', 'QUOTA_EXCEEDED', message, { facts: { ...shown[0] } });
};

const settle = (
  state: QuotaState,
  { at, holder, seen, use, why, own: by }: Extract<QuotaCommand, { type: 'SettleQuota' }>,
): Decision<QuotaEvent> => {
  if (!state.counted) return [];
  const held = holdingOf(state, holder);
  const isOver = by !== undefined && held?.by === by;
  if (held !== undefined && isOpen(held, seen) && !isOver) return [];
  if (use === undefined)
    return held === undefined ? [] : [{ type: 'QuotaReleased', data: { at, holder, why } }];
  const { amounts, settled } = use;
  if (held !== undefined && settled) {
    return held.expiresAt === undefined && sameJson(held.amounts, amounts)
      ? []
      : [{ type: 'QuotaCommitted', data: { at, holder, amounts, seen } }];
  }
  const uses = counted(state, holder, { ...use, seen });
  return uses.length === 0 ? [] : [{ type: 'QuotaUseCounted', data: { at, uses } }];
};

/** What was seen at this revision is old, or the event that it was reserved for may still be appended there. */
const isOpen = (held: Holding, seen: number): boolean =>
  held.seen > seen || (held.seen === seen && held.by !== undefined);

/** What it has more than it holds: it was ordered while nothing was counted. */
const counted = (
  state: QuotaState,
  holder: Holder,
  { amounts, settled, seen }: Use,
): DataOf<QuotaEvent, 'QuotaUseCounted'>['uses'] => {
  const held = holdingOf(state, holder);
  if (held !== undefined && (isOpen(held, seen) || !grows(held.amounts, amounts))) return [];
  const whole = settled ? amounts : covering(held?.amounts ?? {}, { ...amounts, [ORDERS]: 1 });
  return [{ holder, amounts: whole, settled, seen }];
};

export const quotaDecider: Decider<QuotaState, QuotaCommand, QuotaEvent> = {
  initialState: () => OFF,
  evolve,
  decide,
};
