import { z } from 'zod';
import type { Descriptions } from '../openapi/description.ts';
import { COUNT, FLAG, itemsOf, listOf, mapOf, maybe, oneOf, OPEN, TEXT } from './forms.ts';
import { ORDER_SUMMARY } from './order-operations.ts';

const MODE = oneOf(['operator', 'eda', 'aap']);
const CONTROLLER = oneOf(['operator', 'ledger']);
const CLUSTER = TEXT.describe(
  'Identity of the cluster: the uid of its namespace `kube-system`. Absent: not known.',
);
const BREAKER = z.enum(['closed', 'open', 'half-open']);
export const HUB_LANES = listOf(
  z.strictObject({ lane: TEXT, breaker: BREAKER, paused: FLAG, waiting: COUNT, failing_orders: COUNT }),
);
const PROBLEM = { code: TEXT, message: TEXT, subject: TEXT.optional() };
const HOSTS = mapOf(z.strictObject({ free: COUNT, ours: COUNT, foreign: COUNT }));
const CAPACITY = z.object(maybe({ controlPlanes: COUNT, nodes: mapOf(COUNT) }));
const SUMMARY = {
  id: TEXT,
  adapter: z.enum(['simulated', 'kubernetes', 'none']),
  mode: MODE,
  controller: CONTROLLER,
  namespace: TEXT,
  scheduling: z.enum(['open', 'cordoned', 'draining', 'leaving']),
  health: TEXT.describe('`ok`, or the code of the first problem.'),
  ...maybe({ zone: TEXT, message: TEXT, version: TEXT, cluster: CLUSTER }),
  limits: CAPACITY,
  used: CAPACITY,
  lacking: listOf(z.strictObject({ kind: TEXT, ...PROBLEM }))
    .optional()
    .describe('Kinds of objects that the hub cannot carry, and why; absent: it carries all of them.'),
};

const HUB_SUMMARY = z
  .strictObject({
    ...SUMMARY,
    lanes: HUB_LANES.describe(
      'Lanes with work or trouble; absent where the instance does not run the processes.',
    ).optional(),
  })
  .meta({ id: 'HubSummary' });
export type HubSummary = z.infer<typeof HUB_SUMMARY>;

export const HUB_WATCH = z.strictObject({
  namespaces: COUNT,
  synced: FLAG,
  orders: COUNT,
  unknown: COUNT.describe("Orders with a cluster's label which nobody here ever ordered."),
  orphans: COUNT,
  failures: COUNT,
  ...maybe({
    not_synced: listOf(TEXT),
    kinds_not_synced: listOf(TEXT),
    last_error: TEXT,
    last_error_at: TEXT,
  }),
});
const HUB_DETAILS = z
  .strictObject({
    ...SUMMARY,
    problems: listOf(z.strictObject({ ...PROBLEM, since: TEXT })),
    orders: mapOf(COUNT).describe('How many there are, by state.'),
    ghosts: COUNT.describe('Orders whose cluster has vanished from the hub.'),
    ...maybe({
      hosts: HOSTS,
      tenants: z
        .strictObject({
          ready: COUNT,
          waiting: listOf(
            z.strictObject({
              tenant: TEXT,
              state: z.enum(['making', 'removing']),
              since: TEXT,
              ...maybe({ reason: TEXT, message: TEXT }),
            }),
          ).describe('Oldest first, at most 100.'),
        })
        .describe('Tenants that have a Tenant or a Namespace there; absent: none.'),
      former_automation: mapOf(TEXT).describe(
        'Addresses by mode that orders of before a switch are still served at.',
      ),
      watch: HUB_WATCH.describe('Absent: another instance watches it, or nobody.'),
      lane: z.object({ breaker: BREAKER, paused: FLAG, waiting: COUNT }),
    }),
  })
  .meta({ id: 'HubDetails' });
export type HubDetails = z.infer<typeof HUB_DETAILS>;

export const HUB_CHECK = z
  .strictObject({
    id: TEXT,
    ok: FLAG,
    problems: listOf(z.strictObject(PROBLEM)),
    ...maybe({
      version: TEXT,
      cluster: CLUSTER,
      clock_skew_ms: z.int(),
      can_read_node_pools: FLAG,
      can_read_agents: FLAG,
      recommendation: TEXT.describe(
        'Rights or objects with which the hub would show more; it works without them.',
      ),
      hosts: HOSTS,
      also_in_namespace: listOf(TEXT).describe(
        'Other hubs with orders in the same namespace of this cluster: its hosts count for each of them.',
      ),
    }),
  })
  .meta({ id: 'HubCheck' });
export type HubCheckAnswer = z.infer<typeof HUB_CHECK>;

export const HUB_ORDERS_QUERY = z.object({
  limit: COUNT.max(1_000).default(100).describe('How many orders.'),
  offset: COUNT.max(2 ** 31 - 1)
    .default(0)
    .describe('Begin of the page: `next_offset` of the page before.'),
});
const HUB_ORDERS = z.strictObject({
  items: listOf(ORDER_SUMMARY.partial().required({ kind: true, id: true, state: true })),
  total: COUNT,
  next_offset: COUNT.optional(),
});
export type HubOrders = z.infer<typeof HUB_ORDERS>;
export type HubOrder = HubOrders['items'][number];

const KUBECONFIG = z
  .string({ error: 'must hold a kubeconfig in base64' })
  .meta({ contentEncoding: 'base64' })
  .describe('A kubeconfig. It is used for this look and not kept.');
const AUTOMATION = {
  endpoints: mapOf(TEXT).describe('As in the spec of a hub.'),
  automation: OPEN.describe('As in the spec of a hub; secrets are not kept.'),
};
const NO_NAMESPACE = 'is required: orders are created in this namespace of the hub';
export const CANDIDATE_BODY = z.object({
  kubeconfig: KUBECONFIG,
  ...maybe({ mode: MODE, ...AUTOMATION, id: TEXT.describe('Id that the hub will have.') }),
  namespace: z
    .string({ error: NO_NAMESPACE })
    .min(1, { error: NO_NAMESPACE })
    .describe('Namespace in which orders will be created.'),
  controller: CONTROLLER.default('operator'),
  tenant_namespaces: FLAG.default(false).describe('As in the spec of a hub.'),
});
export const TRIED_BODY = z.object(
  maybe({
    kubeconfig: KUBECONFIG,
    cluster: TEXT.describe(
      'With `kubeconfig`: the cluster that the hub is to become, instead of the one that it is.',
    ),
    mode: MODE,
    ...AUTOMATION,
  }),
);

export const HUB_DESCRIPTIONS: Descriptions = {
  'GET hubs': { summary: 'Management clusters and what is wrong with each', answer: itemsOf(HUB_SUMMARY) },
  'GET hubs/{id}': {
    summary: 'One management cluster: problems, capacity, orders by state',
    answer: HUB_DETAILS,
  },
  'GET hubs/{id}/orders': {
    summary: 'Orders that are on a management cluster or hold capacity there',
    query: HUB_ORDERS_QUERY,
    answer: HUB_ORDERS,
  },
  'POST hubs/check': {
    summary: 'Connects to a management cluster that is not registered yet and says what is missing',
    description:
      'Nothing is recorded. Problems are in the answer, which is 200 also when nothing answers there.',
    body: CANDIDATE_BODY,
    answer: HUB_CHECK,
    errors: ['UNIMPLEMENTED'],
  },
  'POST hubs/{id}/check': {
    summary: 'Connects to a management cluster now and says what is wrong',
    description:
      'The findings are recorded and shown by the hub. With any field in the body those values are tried instead of what the hub has, and nothing is recorded.',
    body: TRIED_BODY,
    answer: HUB_CHECK,
    headers: ['X_Ledger_Position'],
  },
};
