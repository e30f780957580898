import type { ConditionName } from '../../domain/clusters/events.ts';
import { readyAs } from '../../domain/clusters/shown-status.ts';
import { isStoredCluster, type ClusterState, type StoredCluster } from '../../domain/clusters/state.ts';
import { cluster, clusterAggregate } from '../../domain/kinds.ts';
import { listAt, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { ReadModels, ResourceRow } from '../../projections/read-models.ts';
import { ApiError, invalid, objectNotFound, rejected } from '../errors.ts';
import { recordTimelineLook, type LookServices } from '../looks.ts';
import { onlyOne } from '../osac/query.ts';
import { beginWrite, commandContext, settling, type WriteServices } from '../osac/write-context.ts';
import type { Positions } from '../positions.ts';
import type { ProcessRunner } from '../../app/process-runner/types.ts';
import { CLUSTER_ORDER } from '../../domain/clusters/order-workflow/workflow.ts';
import type { ActServices } from './acts.ts';
import { once, osacCall } from './osac-call.ts';
import { breathe, wholeNumber } from './query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';

/** Cluster orders as an operator sees them, and the two things that can be done about one. */
export type OrderServices = WriteServices &
  LookServices &
  ActServices & {
    readonly readModels: Pick<ReadModels, 'timeline'>;
    readonly positions: Positions;
    /** State of the workflow run of an order, if it is known here. */
    readonly runOf?: (clusterId: string) => Promise<JsonObject | undefined>;
    /** The runs that this instance works on, if it does. */
    readonly processes?: Pick<ProcessRunner, 'parkedFor' | 'retryRun'>;
  };

export const orderRoutes = (services: OrderServices): readonly LedgerRoute[] => [
  { verb: 'GET', path: 'orders', handler: (call) => listOrders(call, services) },
  { verb: 'GET', path: 'orders/{id}', handler: (call) => showOrder(call, services) },
  { verb: 'POST', path: 'orders/{id}/retry', handler: (call) => act(call, 'RetryCluster', services) },
  { verb: 'POST', path: 'orders/{id}/cancel', handler: (call) => act(call, 'CancelOrder', services) },
  { verb: 'GET', path: 'clusters/{id}', handler: (call) => showConditions(call, services) },
];

const ALL = { all: true } as const;
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const PAGE = 100;
/** Rows that one call looks through for a state, which has no index; the answer says where to go on. */
const MAX_SCANNED = 10_000;

/** Words that `progress` may give an order that is listed. */
const ORDER_STATES: readonly string[] = [
  'accepted',
  'progressing',
  'ready',
  'failed',
  'degraded',
  'deleting',
  'delete_failed',
];

const listOrders = async (
  { query }: LedgerCall,
  { resources, positions }: OrderServices,
): Promise<LedgerAnswer> => {
  const limit = wholeNumber(query, 'limit', DEFAULT_LIMIT, MAX_LIMIT, 1);
  const cursor = onlyOne(query, 'cursor') ?? '';
  const tenant = onlyOne(query, 'tenant') ?? '';
  const state = onlyOne(query, 'state') ?? '';
  if (state !== '' && !ORDER_STATES.includes(state))
    throw invalid(`query parameter 'state' must be one of ${ORDER_STATES.join(', ')}`, 'state');
  const items: JsonObject[] = [];
  const visible = tenant === '' ? ALL : { tenants: [tenant] };
  const { total } = resources.list(cluster.kind, visible, { offset: 0, limit: 0 });
  let place = cursor === '' ? undefined : positions.parse(cursor, 'cursor');
  let isLast = false;
  for (let scanned = 0; !isLast && items.length < limit && scanned < MAX_SCANNED; scanned += PAGE) {
    if (scanned > 0) await breathe();
    const page = {
      limit: PAGE,
      ...(tenant === '' ? {} : { tenant }),
      ...(place === undefined ? {} : { before: place }),
    };
    const rows = resources.newest(cluster.kind, page);
    isLast = rows.length < PAGE;
    for (const row of rows) {
      if (items.length === limit) {
        isLast = false;
        break;
      }
      place = row.created;
      const order = orderSummary(row);
      if (state === '' || order['state'] === state) items.push(order);
    }
  }
  const next = isLast || place === undefined ? {} : { next_cursor: positions.format(place) };
  return { json: { items, total, ...next } };
};

/** An order in one line: who and where it is, its state in one word, and why. */
export const orderSummary = (row: ResourceRow): JsonObject => {
  const document = JSON.parse(row.privateJson) as JsonObject;
  const orderedAt = stringAt(objectAt(document, 'metadata'), 'creation_timestamp');
  return { ...identity(row), ...progress(document, row.deleting), ordered_at: orderedAt };
};

const identity = (of: { id: string; name: string; tenant: string; project: string }): JsonObject => ({
  id: of.id,
  name: of.name,
  tenant: of.tenant,
  ...(of.project === '' ? {} : { project: of.project }),
});

/**
 * State in one word, the hub, and the sentence of the condition that explains the state. Of an order that waits nothing
 * is true yet: why it does not progress is then the sentence.
 */
const progress = (document: JsonObject, deleting: boolean): JsonObject => {
  const status = objectAt(document, 'status');
  const word = stringAt(status, 'state').replace('CLUSTER_STATE_', '').toLowerCase();
  // Tenants read PROGRESSING from the first moment; an operator also wants to know that nothing has been done yet.
  const untouched = word === '' || (word === 'progressing' && listAt(status, 'conditions').length === 0);
  const hub = stringAt(status, 'hub');
  const named = (type: string) =>
    listAt(status, 'conditions').find(
      (condition) => stringAt(condition, 'type') === `CLUSTER_CONDITION_TYPE_${type}`,
    );
  const holds = (condition: JsonValue | undefined): boolean =>
    stringAt(condition, 'status') === 'CONDITION_STATUS_TRUE';
  const telling = ['FAILED', 'DEGRADED', 'PROGRESSING'].map(named).find(holds) ?? named('PROGRESSING');
  const state =
    deleting && word !== 'delete_failed'
      ? 'deleting'
      : untouched
        ? 'accepted'
        : stateOf(word, holds(named('DEGRADED')));
  const message = stringAt(telling, 'message');
  return { state, ...(hub === '' ? {} : { hub }), ...(message === '' ? {} : { message }) };
};

/** OSAC's enum has no word for a cluster that runs and is not well. */
const stateOf = (word: string, isDegraded: boolean): string =>
  word === 'ready' && isDegraded ? 'degraded' : word;

const load = async (id: string, { runner }: OrderServices) => {
  const loaded = await runner.load(clusterAggregate, id);
  if (!isStoredCluster(loaded.state)) throw objectNotFound(id);
  return { ...loaded, state: loaded.state };
};

/** It can still be looked at, so that it were not found would be strange. */
const orderDeleted = (id: string): ApiError =>
  new ApiError('FAILED_PRECONDITION', `order '${id}' is deleted: nothing can be done about it any more`, {
    reason: 'ORDER_DELETED',
    recorded: true,
  });

/** Of what happened, the oldest; all of it is at the cluster's own `timeline`. */
const MAX_TIMELINE = 1_000;
const MAX_TIMELINE_CHARACTERS = 256 * 1024;

const showOrder = async (call: LedgerCall, services: OrderServices): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const { state, revision } = await load(id, services);
  const view = cluster.view(state);
  if (!view.exists) throw objectNotFound(id);
  await recordTimelineLook(osacCall(once(call)), { kind: cluster.kind, id, tenant: view.tenant }, services);
  const run = await services.runOf?.(id);
  const parked = services.processes?.parkedFor(CLUSTER_ORDER, id);
  const timeline = services.readModels.timeline.of(id, {
    limit: MAX_TIMELINE,
    audience: 'provider',
    characters: MAX_TIMELINE_CHARACTERS,
  });
  return {
    json: {
      ...identity(view),
      ...progress(view.document, view.deletionTimestamp !== undefined),
      ...(view.archived ? { state: 'deleted' } : {}),
      revision: Number(revision),
      ordered_at: view.creationTimestamp,
      conditions: conditionsOf(state),
      ...waiting(state),
      ...(state.failure === undefined ? {} : { failure: { ...state.failure } }),
      ...changeFailure(state),
      ...(run === undefined ? {} : { run: { ...run, ...(parked === undefined ? {} : { parked }) } }),
      timeline: timeline.map(({ position, at, type, summary: sentence, actor, correlationId, data }) => ({
        position: services.positions.format(position),
        at,
        type,
        summary: sentence,
        actor,
        correlation_id: correlationId,
        data: data === '' ? {} : (JSON.parse(data) as JsonValue),
      })),
    },
  };
};

const CONDITIONS: readonly ConditionName[] = [
  'ClusterAvailable',
  'NodesReady',
  'InfrastructureReady',
  'TemplateApplied',
];

/**
 * The four conditions that OSAC's wire enum has no room for, and why a running cluster is not as it was ordered last. Of
 * what is torn down none is looked at any more; of a deleted order those observed last are shown.
 */
const conditionsOf = (state: StoredCluster): JsonObject => {
  if (state.status === 'deleted') return { ...state.conditions };
  const isDeleting = state.deletionRequestedAt !== undefined;
  const known = state.status === 'dispatched' && !isDeleting ? state.conditions : {};
  const reason = isDeleting ? 'Deleting' : 'NotObservedYet';
  const kept = CONDITIONS.map((name): [string, JsonValue] => [
    name,
    { ...(known[name] ?? { status: 'Unknown', reason, message: '' }) },
  ]);
  return { ...Object.fromEntries(kept), ...stoppedChange(state) };
};

/** With what the hub said in full. */
const changeFailure = (state: StoredCluster): JsonObject =>
  state.status === 'dispatched' && state.changeFailed !== undefined
    ? { change_failed: { ...state.changeFailed } }
    : {};

/** A change that failed, or that waits for room. */
const stoppedChange = (state: StoredCluster): JsonObject => {
  if (state.status !== 'dispatched' || !state.ready) return {};
  const { changeFailed, waiting: room } = state;
  const { message, reason } = readyAs(state);
  if (changeFailed !== undefined)
    return {
      [reason]: { status: 'True', reason: changeFailed.reason, message, since: changeFailed.since },
    };
  return room === undefined
    ? {}
    : { [reason]: { status: 'True', reason: 'NoRoom', message, since: room.since } };
};

/** What stands in the way: no hub fits, or the hub has not let go yet. */
const waiting = (state: ClusterState): JsonObject => {
  // It may have waited until it was deleted.
  if (state.status === 'deleted') return {};
  if (state.status === 'dispatched' && state.waitingFor.length > 0)
    return { waiting_for: [...state.waitingFor] };
  if (!('waiting' in state) || state.waiting === undefined) return {};
  return {
    waiting: {
      message: state.waiting.message,
      decision: JSON.parse(JSON.stringify(state.waiting.decision)) as JsonValue,
    },
  };
};

const showConditions = async ({ path }: LedgerCall, services: OrderServices): Promise<LedgerAnswer> => {
  const id = path['id'] ?? '';
  const { state, revision } = await load(id, services);
  return {
    json: {
      ...identity(state),
      revision: Number(revision),
      ...('hub' in state && state.hub !== undefined
        ? { hub: state.hub.id, order_name: state.hub.orderName, namespace: state.hub.namespace }
        : {}),
      conditions: conditionsOf(state),
      ...waiting(state),
    },
  };
};

const act = (
  call: LedgerCall,
  type: 'RetryCluster' | 'CancelOrder',
  services: OrderServices,
): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const asCall = osacCall(call);
  const write = beginWrite(asCall, { type }, services);
  return settling(write, async () => {
    const { state, revision: before } = await load(id, services);
    const context = await commandContext(
      asCall,
      write,
      { tenant: state.tenant, project: state.project },
      services,
    );
    // A run that a bug stopped is looked at again, whatever has become of its order.
    const parked = services.processes?.parkedFor(CLUSTER_ORDER, id) !== undefined;
    if (type === 'RetryCluster' && parked)
      await services.recordAct(call, { act: 'orders/retry', kind: cluster.kind, resourceId: id });
    const resumed =
      type === 'RetryCluster' && (await services.processes?.retryRun(CLUSTER_ORDER, id)) === true;
    if (resumed && (state.status === 'deleted' || state.failure === undefined))
      return { json: { id, revision: Number(before), resumed } };
    const command = { type, at: services.clock.now() };
    const outcome = await services.commands.execute(cluster, id, command, {
      ...context,
      ...(asCall.metadata.ifRevision === undefined ? {} : { ifRevision: asCall.metadata.ifRevision }),
    });
    if (outcome.outcome === 'rejected')
      throw outcome.rejection.kind === 'not-found' ? orderDeleted(id) : rejected(outcome.rejection);
    const { position, revision } = outcome.loaded;
    if (position !== undefined) await services.positions.applied(position);
    return {
      json: { id, revision: Number(revision) },
      ...(position === undefined
        ? {}
        : { headers: { 'x-ledger-position': services.positions.format(position) } }),
    };
  });
};
