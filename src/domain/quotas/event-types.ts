import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, counts, listOf, text, time, typesOf, type EventOf, type Shapes } from '../schemas.ts';

const holder = z.strictObject({ kind: text, id: text });
/** Revision of the holder's stream that the amounts were decided at; -1: it had no events. */
const seen = z.int().min(-1);

/**
 * Events of `quota-<tenant>`: the one stream that owns what a tenant may still order, so that a burst of orders
 * cannot pass a limit together. Written only for tenants that have a limit.
 */
export const QUOTA = {
  /** A first limit is about to be set: from here on orders are held, and what exists is counted. */
  QuotaCountBegan: { tenant: text },
  /** Objects that were not held: they existed before the count began, or were ordered while it did. */
  QuotaUseCounted: {
    uses: listOf(z.strictObject({ holder, amounts: counts, settled: z.boolean(), seen })),
  },
  /** All limits of the tenant. None: nothing of it is held any more. */
  QuotaLimitsSet: { tenant: text, limits: counts, reason: text },
  /** An order, or a change that asks for more: all that its holder has from now on. `by`: the attempt that asks. */
  QuotaReserved: { holder, amounts: counts, seen, by: text, expiresAt: time },
  /** What was ordered is there: from now on its holder has exactly this. */
  QuotaCommitted: { holder, amounts: counts, seen: count },
  /** `ended`: the holder is gone. `refused`: it was never ordered. `expired`: nobody came back to order it. */
  QuotaReleased: { holder, why: z.enum(['ended', 'refused', 'expired']) },
} as const satisfies Shapes;
export type QuotaEvent = EventOf<typeof QUOTA>;

export const quotaEventTypes: readonly EventType[] = typesOf(
  { context: 'quotas', audience: 'provider' },
  QUOTA,
);
