import type { JsonObject } from '../../domain/json.ts';
import {
  COUNT,
  FLAG,
  listOf,
  NO_BODY,
  OPEN,
  query,
  record,
  TEXT,
  type Description,
} from './ledger-schemas.ts';
import { componentRef } from './message-schemas.ts';

const KUBECONFIG: JsonObject = {
  type: 'string',
  contentEncoding: 'base64',
  description: 'A kubeconfig. It is used for this look and not kept.',
};

const ACCEPTED: JsonObject = {
  type: 'string',
  description: 'With `kubeconfig`: the cluster that the hub is to become, instead of the one that it is.',
};
const CLUSTER: JsonObject = {
  type: 'string',
  description: 'Which cluster it is: the uid of its namespace `kube-system`. Absent: that is not known.',
};
const MODE: JsonObject = { type: 'string', enum: ['operator', 'eda', 'aap'] };
const AUTOMATION: { readonly [field: string]: JsonObject } = {
  endpoints: { type: 'object', additionalProperties: TEXT, description: 'As in the spec of a hub.' },
  automation: { type: 'object', description: 'As in the spec of a hub; secrets are not kept.' },
};

export const HUB_DESCRIPTIONS: { readonly [route: string]: Description } = {
  'GET hubs': {
    summary: 'Management clusters and what is wrong with each',
    answer: record({ items: listOf(componentRef('HubSummary')) }),
  },
  'GET hubs/{id}': {
    summary: 'One management cluster: problems, capacity, orders by state',
    answer: 'HubDetails',
  },
  'GET hubs/{id}/orders': {
    summary: 'Orders that are on a management cluster or hold capacity there',
    ownParameters: [
      query('limit', { ...COUNT, maximum: 1_000, default: 100 }, 'How many orders.'),
      query(
        'offset',
        { ...COUNT, maximum: 2 ** 31 - 1 },
        'Where to go on: `next_offset` of the page before.',
      ),
    ],
    answer: record({ items: listOf(componentRef('OrderSummary')), total: COUNT, 'next_offset?': COUNT }),
  },
  'POST hubs/check': {
    summary: 'Connects to a management cluster that is not registered yet and says what is missing',
    description:
      'Nothing is recorded. Problems are in the answer, which is 200 also when nothing answers there.',
    body: {
      type: 'object',
      properties: {
        kubeconfig: KUBECONFIG,
        namespace: { type: 'string', description: 'Where orders will be created.' },
        id: { type: 'string', description: 'Id that the hub will have.' },
        mode: MODE,
        ...AUTOMATION,
        controller: { type: 'string', enum: ['operator', 'ledger'] },
        tenant_namespaces: { type: 'boolean', description: 'As in the spec of a hub.' },
      },
      required: ['kubeconfig', 'namespace'],
    },
    answer: 'HubCheck',
    errors: ['UNIMPLEMENTED'],
  },
  'POST hubs/{id}/check': {
    summary: 'Connects to a management cluster now and says what is wrong',
    description:
      'What it finds is recorded and shown by the hub. With any field in the body those values are tried instead of what the hub has, and nothing is recorded.',
    body: {
      ...NO_BODY,
      properties: { kubeconfig: KUBECONFIG, cluster: ACCEPTED, mode: MODE, ...AUTOMATION },
    },
    answer: 'HubCheck',
    headers: ['X_Ledger_Position'],
  },
};

const PROBLEM: JsonObject = { code: TEXT, message: TEXT, 'subject?': TEXT };
const SUMMARY: JsonObject = {
  id: TEXT,
  adapter: { type: 'string', enum: ['simulated', 'kubernetes', 'none'] },
  mode: { type: 'string', enum: ['operator', 'eda', 'aap'] },
  controller: { type: 'string', enum: ['operator', 'ledger'] },
  namespace: TEXT,
  'zone?': TEXT,
  scheduling: { type: 'string', enum: ['open', 'cordoned', 'draining', 'leaving'] },
  health: { type: 'string', description: '`ok`, or the code of the first problem.' },
  'message?': TEXT,
  'version?': TEXT,
  'cluster?': CLUSTER,
  limits: OPEN,
  used: OPEN,
};
const HOSTS: JsonObject = {
  type: 'object',
  additionalProperties: record({ free: COUNT, ours: COUNT, foreign: COUNT }),
};

export const HUB_COMPONENTS: { readonly [name: string]: JsonObject } = {
  HubSummary: record({
    ...SUMMARY,
    'lanes?': {
      ...listOf(
        record({
          lane: TEXT,
          breaker: { type: 'string', enum: ['closed', 'open', 'half-open'] },
          paused: FLAG,
          waiting: COUNT,
          failing_orders: COUNT,
        }),
      ),
      description: 'Lanes with work or trouble; absent where the instance does not run the processes.',
    },
  }),
  HubDetails: record({
    ...SUMMARY,
    'hosts?': HOSTS,
    problems: listOf(record({ ...PROBLEM, since: TEXT })),
    orders: { type: 'object', additionalProperties: COUNT },
    'former_automation?': {
      type: 'object',
      additionalProperties: TEXT,
      description: 'Addresses by mode that orders of before a switch are still served at.',
    },
    ghosts: COUNT,
    'watch?': record({
      namespaces: COUNT,
      synced: FLAG,
      orders: COUNT,
      unknown: { ...COUNT, description: "Orders with a cluster's label which nobody here ever ordered." },
      orphans: COUNT,
      failures: COUNT,
      'not_synced?': listOf(TEXT),
      'kinds_not_synced?': listOf(TEXT),
      'last_error?': TEXT,
      'last_error_at?': TEXT,
    }),
    'lane?': OPEN,
  }),
  HubCheck: record({
    id: TEXT,
    ok: FLAG,
    problems: listOf(record(PROBLEM)),
    'version?': TEXT,
    'cluster?': CLUSTER,
    'clock_skew_ms?': { type: 'integer' },
    'can_read_node_pools?': FLAG,
    'can_read_agents?': FLAG,
    'recommendation?': TEXT,
    'hosts?': HOSTS,
    'also_in_namespace?': {
      ...listOf(TEXT),
      description:
        'Other hubs with orders in the same namespace of this cluster: its hosts count for each of them.',
    },
  }),
};
