import { z } from 'zod';
import { actingKinds } from '../../domain/acting-kinds.ts';
import type { Description, Descriptions } from '../openapi/description.ts';
import { ANY_WRITE } from '../openapi/refusals.ts';
import { COUNT, FLAG, listOf, mapOf, maybe, NO_BODY, oneOf, OPEN, TEXT, TIME } from './forms.ts';
import { decisionBodies, type DecisionName } from './order-decisions.ts';

/** Words that `state` may be. */
const STATES = [...new Set(actingKinds.flatMap(({ order }) => order.states))];

const KIND = {
  kind: oneOf(['', ...actingKinds.map(({ kind }) => kind)])
    .describe('Only orders of this kind. Needed where objects of several kinds have the same id.')
    .optional(),
};
export const OF_KIND = z.object(KIND);

export const ORDERS_QUERY = z.object({
  limit: z.int().min(1).max(1_000).default(100).describe('How many orders.'),
  cursor: TEXT.describe(
    'Begin of the page: `next_cursor` of the page before. No order is missed or told twice, even while others are ordered.',
  ).optional(),
  ...KIND,
  tenant: TEXT.describe('Only orders of this tenant.').optional(),
  state: oneOf(['', ...STATES])
    .describe('Only orders in this state.')
    .optional(),
});

const IDENTITY = { kind: TEXT, id: TEXT, name: TEXT, tenant: TEXT, project: TEXT.optional() };
const PROGRESS = { state: TEXT, ...maybe({ hub: TEXT, message: TEXT }) };
const CANDIDATE = z.object({ hub: TEXT, fits: FLAG, reasons: listOf(TEXT) });
const DETAIL = TEXT.describe('The words of its hub, or of the job there.').optional();
const WAITING = {
  waiting_for: listOf(TEXT).describe('Objects that its hub still has to remove.').optional(),
  waiting: z
    .strictObject({
      message: TEXT,
      detail: DETAIL,
      since: TIME.optional(),
      decision: z.object({ candidates: listOf(CANDIDATE) }).optional(),
    })
    .describe('Why no hub took it. Kinds that are scheduled name every hub that was looked at.')
    .optional(),
};
const CONDITION = z.object({
  status: z.enum(['True', 'False', 'Unknown', 'NotObservable']),
  reason: TEXT,
  message: TEXT,
  since: TIME.optional(),
});
const CONDITIONS = mapOf(CONDITION).describe(
  'By type. A cluster has `ClusterAvailable`, `NodesReady`, `InfrastructureReady` and `TemplateApplied` always, but for a deleted one; `ChangeFailed` and `ResizeWaiting` while a running cluster is not as it was ordered last.',
);
const FAILURE = z.object({
  reason: TEXT,
  message: TEXT,
  detail: DETAIL,
  permanent: FLAG.describe('It waits for a retry or a deletion.').optional(),
});
const DECISION = { at: TIME, by: TEXT, reason: TEXT };
const DECISIONS = {
  skipped: listOf(z.strictObject({ step: TEXT, ...DECISION })),
  aborted: z.strictObject(DECISION).optional(),
};
const EFFECT = z.object({
  operation: TEXT,
  attempt: COUNT,
  mode: TEXT,
  lane: TEXT,
  ...maybe({ not_before: TIME, held_back: TEXT }),
});
const STEP = z.object({
  step: TEXT,
  rule: TEXT.describe('The delegated step of its hub by which the service does it itself.').optional(),
  state: z.enum(['pending', 'active', 'waits', 'refused', 'done', 'skipped', 'undoing', 'undone']),
  effect: TEXT.describe(
    'Id of its effect, or of its undo: the far side journals it under this id.',
  ).optional(),
  attempts: COUNT.optional(),
  started: TIME.optional(),
  ended: TIME.optional(),
  waiting: TEXT.describe('Why it waits.').optional(),
});
const RUN = z.object({
  steps: listOf(STEP).describe('Its steps in their order.').optional(),
  skipped: DECISIONS.skipped.optional(),
  aborted: DECISIONS.aborted,
  parked: TEXT.describe('The fault that stopped the work on it, if one did.').optional(),
  idle: FLAG.describe('Nothing is tried any more, or a step was refused for good.').optional(),
  commands: listOf(TEXT),
  effects: listOf(EFFECT),
  timers: listOf(z.object({ timer: TEXT, due_at: TIME })),
});

/** Also what the timelines of OSAC's surfaces list. */
export const TIMELINE_ENTRY = z
  .strictObject({
    position: TEXT.describe('For `after`.'),
    at: TIME,
    type: TEXT.describe('Name of the event.'),
    summary: TEXT.describe('The event in one sentence.'),
    actor: TEXT.describe('Id of the subject on whose behalf it happened.'),
    correlation_id: TEXT,
    data: OPEN.describe('Fields of the event that you may see.'),
  })
  .meta({ id: 'TimelineEntry' });
export type TimelineItem = z.infer<typeof TIMELINE_ENTRY>;

export const ORDER_SUMMARY = z
  .strictObject({ ...IDENTITY, ...PROGRESS, ordered_at: TIME })
  .meta({ id: 'OrderSummary' });
export type Order = z.infer<typeof ORDER_SUMMARY>;

const ORDERS = z.strictObject({
  items: listOf(ORDER_SUMMARY),
  total: COUNT,
  next_cursor: TEXT.optional(),
});
export type Orders = z.infer<typeof ORDERS>;

const ORDER = z
  .strictObject({
    ...IDENTITY,
    ...PROGRESS,
    revision: COUNT,
    ordered_at: TIME,
    conditions: CONDITIONS,
    ...WAITING,
    ...maybe({ failure: FAILURE, change_failed: FAILURE.partial(), run: RUN }),
    timeline: listOf(TIMELINE_ENTRY),
  })
  .meta({ id: 'Order' });
export type OrderDetails = z.infer<typeof ORDER>;

const ORDER_CONDITIONS = z
  .strictObject({
    ...IDENTITY,
    revision: COUNT,
    ...maybe({ hub: TEXT, order_name: TEXT, namespace: TEXT }),
    conditions: CONDITIONS,
    ...WAITING,
  })
  .meta({ id: 'OrderConditions' });

const ACT_ON_ORDER = {
  query: OF_KIND,
  parameters: ['Idempotency_Key', 'X_Ledger_Command_Id', 'If_Match', 'X_Ledger_Ticket'],
  body: NO_BODY,
  answer: z.strictObject({ id: TEXT, revision: COUNT, resumed: FLAG.optional() }),
  headers: ['X_Ledger_Position'],
  errors: [...ANY_WRITE, 'STALE_ETAG'],
} as const;

const decision = (name: DecisionName, summary: string): Description => ({
  ...ACT_ON_ORDER,
  summary,
  description: 'A decision that holds already changes nothing and gets the same answer.',
  body: decisionBodies[name],
  answer: z.strictObject({ id: TEXT, ...DECISIONS }),
});

export const ORDER_DESCRIPTIONS: Descriptions = {
  'GET orders': {
    summary: 'Orders of all kinds and tenants, newest first',
    query: ORDERS_QUERY,
    answer: ORDERS,
  },
  'GET orders/{id}': {
    summary: 'One order: why it waits or failed, what is outstanding, its timeline',
    query: OF_KIND,
    answer: ORDER,
  },
  'POST orders/{id}/retry': { summary: 'Tries a failed order again', ...ACT_ON_ORDER },
  'POST orders/{id}/cancel': {
    summary: 'Cancels an order that no hub has been asked for yet',
    ...ACT_ON_ORDER,
  },
  'POST orders/{id}/skip': decision('skip', 'Skips a step of an order: what comes after it goes on'),
  'POST orders/{id}/resume': decision('resume', 'Takes a skipped step of an order up again'),
  'POST orders/{id}/abort': decision('abort', 'Aborts an order: what was begun is undone in reverse order'),
  ...Object.fromEntries(
    actingKinds.map(({ collection, words }) => [
      `GET ${collection}/{id}`,
      {
        summary: `Observations of one ${words}, beyond the states of the OSAC surfaces`,
        answer: ORDER_CONDITIONS,
      },
    ]),
  ),
};
