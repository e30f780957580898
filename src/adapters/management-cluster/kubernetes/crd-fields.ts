import { HubError, type CallOptions, type HubProblem } from '../../../app/management-cluster.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { stringAt } from '../../../domain/json-tools.ts';
import { apiVersion, CLUSTER_ORDERS, pathOf, type Api } from './api.ts';
import type { Rights } from './rights.ts';

const TIME = '2026-01-01T00:00:00Z';

/** An order with every field that we write or read; it is never stored. */
const sampleOrder = (namespace: string): JsonObject => ({
  apiVersion: apiVersion(CLUSTER_ORDERS),
  kind: 'ClusterOrder',
  metadata: { name: 'order-dry-run-of-check', namespace },
  spec: {
    templateID: 'fulfillment_ledger.check',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'check', numberOfNodes: 1 }],
    pullSecret: '{}',
    sshPublicKey: 'ssh-ed25519 AAAA check',
    releaseImage: 'registry.invalid/check:1',
    network: { podCIDR: '10.132.0.0/14', serviceCIDR: '172.31.0.0/16' },
  },
  status: {
    phase: 'Progressing',
    conditions: [
      { type: 'Accepted', status: 'True', reason: 'Check', message: '', lastTransitionTime: TIME },
    ],
    desiredConfigVersion: '0123456789abcdef',
    clusterReference: {
      namespace: 'a',
      hostedClusterName: 'b',
      serviceAccountName: 'c',
      roleBindingName: 'd',
    },
    provisioningJobs: [{ jobID: '1', type: 'provision', state: 'Running', timestamp: TIME }],
  },
});

const UNKNOWN_FIELD = /unknown field "([^"]{1,200})"/g;
const NAME = `${CLUSTER_ORDERS.plural}.${CLUSTER_ORDERS.group}`;

/**
 * What the hub's CRD would drop of an order, or refuse in it: an API server drops unknown fields without a word. Asked
 * by a dry run with strict validation, for which the stock rights are enough and which stores nothing; a hub that
 * cannot answer (missing rights, a webhook that knows no dry run) is not accused of anything here. Admission webhooks of
 * the hub see the dry run: what was once found well is asked again only when `thorough`.
 */
export type OrderFields = (
  namespace: string,
  thorough: boolean,
  by: CallOptions,
) => Promise<readonly HubProblem[]>;

export const createOrderFields = (api: Api, rights: Pick<Rights, 'ask'>): OrderFields => {
  let wasWell = false;
  return async (namespace, thorough, by) => {
    if (wasWell && !thorough) return [];
    // Asked without the right it would be answered with 403, which says nothing of the fields.
    if (!(await rights.ask({ kind: CLUSTER_ORDERS, verb: 'create', namespace }, by))) return [];
    const problems = await fieldProblems(api, namespace, by);
    wasWell = problems?.length === 0;
    return problems ?? [];
  };
};

/** Undefined: there was no answer. A webhook that refuses the order gives one, which says nothing of its fields. */
const fieldProblems = async (
  api: Api,
  namespace: string,
  by: CallOptions,
): Promise<readonly HubProblem[] | undefined> => {
  const call = {
    what: 'dry run of an order',
    method: 'POST',
    path: pathOf(CLUSTER_ORDERS, { namespace }),
    query: { dryRun: 'All', fieldValidation: 'Strict' },
    body: sampleOrder(namespace),
    reads: true,
  } as const;
  try {
    await api.ask(call, by);
    return [];
  } catch (error) {
    if (!(error instanceof HubError) || error.facts['status'] === 401) throw error;
    const { status } = error.facts;
    if (status === 403) return [];
    if (status === 400) return droppedFields(error.message);
    return status === 422 ? refusedFields(error.facts['causes']) : undefined;
  }
};

const droppedFields = (message: string): readonly HubProblem[] =>
  [...message.matchAll(UNKNOWN_FIELD)].map(([, field = '']) => ({
    code: 'CrdMissing',
    message: `the hub's CRD of ClusterOrder has no ${field}: it would be dropped without a word; update the CRD`,
    subject: `${NAME} ${field}`,
  }));

const refusedFields = (causes: JsonValue | undefined): readonly HubProblem[] =>
  (Array.isArray(causes) ? causes : []).map((cause) => ({
    code: 'CrdMissing',
    message: `the hub's CRD of ClusterOrder is another one: it refuses ${stringAt(cause, 'field')} (${stringAt(cause, 'message')})`,
    subject: `${NAME} ${stringAt(cause, 'field')}`,
  }));
