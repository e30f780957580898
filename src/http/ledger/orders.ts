import type { CommandContext } from '../../app/commands/command.ts';
import type { ExpectedRevision } from '../../app/log/event-store.ts';
import { actingKinds } from '../../domain/acting-kinds.ts';
import type { ActingKind } from '../../domain/acting-kind.ts';
import { reject, type Rejection } from '../../domain/decider.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { isObject, listAt, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { ResourceView } from '../../domain/resource.ts';
import type { PlacedRow, ReadModels, ResourceRow } from '../../projections/read-models.ts';
import { ApiError, invalid, objectNotFound, rejected } from '../errors.ts';
import { recordTimelineLook, type LookServices } from '../audit-reads.ts';
import {
  beginWrite,
  commandContext,
  settling,
  type Write,
  type WriteServices,
} from '../osac/write-context.ts';
import type { Positions } from '../positions.ts';
import type { ProcessRunner } from '../../app/process-runner/types.ts';
import type { ActServices } from './acts.ts';
import {
  applied,
  DECISION_NAMES,
  decisionBodies,
  decideRun,
  orderDeleted,
  readDecision,
  type DecisionName,
  type DecisionServices,
} from './order-decisions.ts';
import { fieldsOf, readQuery, rendered } from './forms.ts';
import { OF_KIND, ORDERS_QUERY, TIMELINE_ENTRY, type Order, type Orders } from './order-operations.ts';
import { once, osacCall } from './osac-call.ts';
import { breathe } from './query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';

/** Objects of every kind that acts, as an operator sees them, and what can be done about one. */
export type OrderServices = WriteServices &
  LookServices &
  ActServices &
  DecisionServices & {
    /** Default: every kind that acts. */
    readonly acting?: readonly ActingKind[];
    readonly readModels: Pick<ReadModels, 'timeline'>;
    readonly positions: Positions;
    /** State of the workflow run of an order, if it is known here. */
    readonly runOf?: (kind: ActingKind, id: string) => Promise<JsonObject | undefined>;
    /** The runs that this instance works on, if it does. */
    readonly processes?: Pick<ProcessRunner, 'parkedFor' | 'retryRun'>;
  };

export const orderRoutes = (services: OrderServices): readonly LedgerRoute[] => [
  { verb: 'GET', path: 'orders', handler: (call) => listOrders(call, services) },
  { verb: 'GET', path: 'orders/{id}', handler: (call) => showOrder(call, services) },
  { verb: 'POST', path: 'orders/{id}/retry', handler: (call) => act(call, 'retry', services) },
  { verb: 'POST', path: 'orders/{id}/cancel', handler: (call) => act(call, 'cancel', services) },
  ...DECISION_NAMES.map(
    (name): LedgerRoute => ({
      verb: 'POST',
      path: `orders/{id}/${name}`,
      fields: fieldsOf(decisionBodies[name]),
      handler: (call) => decide(call, name, services),
    }),
  ),
  ...actingKinds.map(
    (kind): LedgerRoute => ({
      verb: 'GET',
      path: `${kind.collection}/{id}`,
      handler: (call) => showConditions(call, kind, services),
    }),
  ),
];

const ALL = { all: true } as const;
const PAGE = 100;
/** Rows that one call looks through for a state, which has no index; the answer says where to go on. */
const MAX_SCANNED = 10_000;

/** Those that are called so; all without a name. */
const kindsAsked = (
  wanted: string,
  { acting = actingKinds }: Pick<OrderServices, 'acting'>,
): readonly ActingKind[] => acting.filter(({ kind }) => wanted === '' || kind === wanted);

const listOrders = async ({ query }: LedgerCall, services: OrderServices): Promise<LedgerAnswer> => {
  const { resources, positions } = services;
  const { limit, cursor = '', tenant = '', state = '', kind: of = '' } = readQuery(query, ORDERS_QUERY);
  const kinds = kindsAsked(of, services);
  const items: Order[] = [];
  const visible = tenant === '' ? ALL : { tenants: [tenant] };
  const totals = kinds.map(({ kind }) => resources.list(kind, visible, { offset: 0, limit: 0 }).total);
  let place = cursor === '' ? undefined : positions.parse(cursor, 'cursor');
  let isLast = false;
  for (let scanned = 0; !isLast && items.length < limit && scanned < MAX_SCANNED; scanned += PAGE) {
    if (scanned > 0) await breathe();
    const page = {
      limit: PAGE,
      ...(tenant === '' ? {} : { tenant }),
      ...(place === undefined ? {} : { before: place }),
    };
    const rows = newestOf(
      kinds.map(({ kind }) => resources.newest(kind, page)),
      PAGE,
    );
    isLast = rows.length < PAGE;
    for (const row of rows) {
      if (items.length === limit) {
        isLast = false;
        break;
      }
      place = row.created;
      const order = orderSummary(row);
      if (state === '' || order.state === state) items.push(order);
    }
  }
  const json: Orders = {
    items,
    total: totals.reduce((sum, count) => sum + count, 0),
    next_cursor: isLast || place === undefined ? undefined : positions.format(place),
  };
  return { json };
};

/** The last created of several lists, each of which begins with its last. */
const newestOf = (lists: readonly (readonly PlacedRow[])[], limit: number): readonly PlacedRow[] =>
  lists
    .flat()
    .toSorted((left, right) => (left.created > right.created ? -1 : 1))
    .slice(0, limit);

/** An order in one line: who and where it is, its state in one word, and why. */
export const orderSummary = (row: ResourceRow): Order => {
  const document = JSON.parse(row.privateJson) as JsonObject;
  const orderedAt = stringAt(objectAt(document, 'metadata'), 'creation_timestamp');
  const prefix = actingKinds.find(({ kind }) => kind === row.kind)?.order.prefix ?? '';
  return {
    ...identity(row.kind, row),
    ...progress(prefix, document, row.deleting),
    ordered_at: orderedAt,
  };
};

const identity = (
  kind: string,
  of: { readonly id: string; readonly name: string; readonly tenant: string; readonly project: string },
): Pick<Order, 'kind' | 'id' | 'name' | 'tenant' | 'project'> => ({
  kind,
  id: of.id,
  name: of.name,
  tenant: of.tenant,
  ...(of.project === '' ? {} : { project: of.project }),
});

/**
 * State in one word, the hub, and the sentence of the condition that explains the state. Of an order that waits nothing
 * is true yet: why it does not progress is then the sentence.
 */
const progress = (
  prefix: string,
  document: JsonObject,
  deleting: boolean,
): Pick<Order, 'state' | 'hub' | 'message'> => {
  const status = objectAt(document, 'status');
  const word = stringAt(status, 'state').replace(`${prefix}_STATE_`, '').toLowerCase();
  // Tenants read PROGRESSING from the first moment; an operator also wants to know that nothing has been done yet.
  const untouched = word === '' || (word === 'progressing' && listAt(status, 'conditions').length === 0);
  const hub = stringAt(status, 'hub');
  const named = (type: string) =>
    listAt(status, 'conditions').find(
      (condition) => stringAt(condition, 'type') === `${prefix}_CONDITION_TYPE_${type}`,
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
  const message = stringAt(telling, 'message') || stringAt(status, 'message');
  return { state, ...(hub === '' ? {} : { hub }), ...(message === '' ? {} : { message }) };
};

/** OSAC's enums have no word for what runs and is not well. */
const stateOf = (word: string, isDegraded: boolean): string =>
  word === 'ready' && isDegraded ? 'degraded' : word;

type Stored = Extract<ResourceView, { readonly exists: true }>;
type Found = {
  readonly kind: ActingKind;
  readonly state: unknown;
  readonly view: Stored;
  readonly revision: ExpectedRevision;
};

const loadOf = async (
  kind: ActingKind,
  id: string,
  { runner }: Pick<OrderServices, 'runner'>,
): Promise<Found | undefined> => {
  const { state, revision } = await runner.load(aggregateOf(kind), id);
  const view = kind.view(state);
  return view.exists ? { kind, state, view, revision } : undefined;
};

/** The one of this id, among the kinds that the caller means. */
const load = async ({ path, query }: LedgerCall, services: OrderServices): Promise<Found> => {
  const id = path['id'] ?? '';
  const { kind: wanted = '' } = readQuery(query, OF_KIND);
  const loaded = await Promise.all(kindsAsked(wanted, services).map((kind) => loadOf(kind, id, services)));
  const [found, ...others] = loaded.filter((each) => each !== undefined);
  if (found === undefined) throw objectNotFound(id);
  if (others.length === 0) return found;
  const names = [found, ...others].map(({ kind }) => kind.kind).join(', ');
  throw invalid(`order '${id}': objects of kinds ${names} have this id; name one by 'kind'`, 'kind');
};

/** Of what happened, the oldest; all of it is at the object's own `timeline`. */
const MAX_TIMELINE = 1_000;
const MAX_TIMELINE_CHARACTERS = 256 * 1024;

const showOrder = async (call: LedgerCall, services: OrderServices): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const { kind, state, view, revision } = await load(call, services);
  const look = { kind: kind.kind, id, tenant: view.tenant };
  await recordTimelineLook(osacCall(once(call), kind.kind), look, services);
  const run = await services.runOf?.(kind, id);
  const parked = services.processes?.parkedFor(kind.workflow.name, id);
  const timeline = services.readModels.timeline.of(kind.kind, id, {
    limit: MAX_TIMELINE,
    audience: 'provider',
    characters: MAX_TIMELINE_CHARACTERS,
  });
  const { conditions, waiting, failure } = kind.order.details(state);
  const { failure: failed } = failure;
  return {
    json: {
      ...identity(kind.kind, view),
      ...progress(kind.order.prefix, view.document, view.deletionTimestamp !== undefined),
      ...(view.archived ? { state: 'deleted' } : {}),
      revision: Number(revision),
      ordered_at: view.creationTimestamp,
      conditions,
      ...waitingStep(run),
      ...waiting,
      ...failure,
      ...(isObject(failed) ? { failure: { permanent: run?.['idle'] === true, ...failed } } : {}),
      ...(run === undefined ? {} : { run: { ...run, ...(parked === undefined ? {} : { parked }) } }),
      timeline: timeline.map((entry) =>
        rendered(TIMELINE_ENTRY, {
          ...entry,
          position: services.positions.format(entry.position),
          data: entry.data === '' ? {} : (JSON.parse(entry.data) as JsonObject),
        }),
      ),
    },
  };
};

/** A step that has to wait, where the object itself does not say so. */
const waitingStep = (run: JsonObject | undefined): JsonObject => {
  const step = listAt(run ?? {}, 'steps').find((each) => stringAt(each, 'state') === 'waits');
  if (step === undefined) return {};
  return { waiting: { message: stringAt(step, 'waiting'), since: stringAt(step, 'started') } };
};

const showConditions = async (
  { path }: LedgerCall,
  kind: ActingKind,
  services: OrderServices,
): Promise<LedgerAnswer> => {
  const id = path['id'] ?? '';
  const found = await loadOf(kind, id, services);
  if (found === undefined) throw objectNotFound(id);
  const { conditions, waiting, place } = kind.order.details(found.state);
  return {
    json: {
      ...identity(kind.kind, found.view),
      revision: Number(found.revision),
      ...place,
      conditions,
      ...waiting,
    },
  };
};

const act = async (
  call: LedgerCall,
  name: 'retry' | 'cancel',
  services: OrderServices,
): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const { kind } = await load(call, services);
  const asCall = osacCall(call, kind.kind);
  const write = beginWrite(asCall, { act: name }, services);
  const { workflow, order } = kind;
  return settling(write, async () => {
    const found = await loadOf(kind, id, services);
    if (found === undefined) throw objectNotFound(id);
    const { state, view, revision: before } = found;
    const context = await contextOf(asCall, write, view, services);
    // A run that a bug stopped is looked at again, whatever has become of its order.
    const parked = services.processes?.parkedFor(workflow.name, id) !== undefined;
    if (name === 'retry' && parked)
      await services.recordAct(call, { act: 'orders/retry', kind: kind.kind, resourceId: id });
    const resumed = name === 'retry' && (await services.processes?.retryRun(workflow.name, id)) === true;
    if (resumed && (view.archived || order.details(state).failure['failure'] === undefined))
      return { json: { id, revision: Number(before), resumed } };
    const at = services.clock.now();
    const command = order[name]?.(at);
    if (command === undefined && name === 'retry') {
      const retry = { type: 'RetryRun', at, by: call.principal.subjectId, reason: RETRY_REASON } as const;
      const decided = await decideRun({ kind, id, revision: before }, retry, context, services);
      return { ...decided, json: { id, revision: Number(before) } };
    }
    if (command === undefined)
      throw new ApiError('FAILED_PRECONDITION', `orders of kind '${kind.kind}' cannot be cancelled`, {
        reason: 'NO_SUCH_ACT',
      });
    const outcome = await services.commands.execute(kind, id, command, context);
    if (outcome.outcome === 'rejected')
      throw rejected(outcome.rejection.kind === 'not-found' ? orderDeleted(id) : outcome.rejection);
    const { position, revision } = outcome.loaded;
    return applied({ id, revision: Number(revision) }, position, services);
  });
};

/** A retry is asked for without a reason. */
const RETRY_REASON = 'retry requested';

const contextOf = async (
  asCall: ReturnType<typeof osacCall>,
  write: Write,
  view: Stored,
  services: OrderServices,
): Promise<CommandContext> => {
  const { ifRevision } = asCall.metadata;
  const context = await commandContext(asCall, write, view, services);
  return { ...context, ...(ifRevision === undefined ? {} : { ifRevision }) };
};

const decide = async (
  call: LedgerCall,
  name: DecisionName,
  services: OrderServices,
): Promise<LedgerAnswer> => {
  const { kind, view, revision } = await load(call, services);
  if (name === 'abort' && kind.order.abort === undefined)
    throw new ApiError('FAILED_PRECONDITION', `a ${kind.words} cannot be aborted: delete it instead`, {
      reason: 'NO_ABORT',
    });
  const asCall = osacCall(call, kind.kind);
  const made = { at: services.clock.now(), by: call.principal.subjectId };
  const decision = readDecision(name, call.body, made);
  const write = beginWrite(asCall, { act: name, ...call.body }, services);
  return settling(write, async () => {
    const context = await contextOf(asCall, write, view, services);
    const { abort } = kind.order;
    if (name !== 'abort' || typeof abort !== 'function')
      return decideRun({ kind, id: view.id, revision }, decision, context, services);
    const command = abort(made.at, decision.reason);
    const unreferenced = () => whyReferenced(kind, view.id, services);
    const how = kind.protectedWhileReferenced ? { unreferenced } : {};
    const outcome = await services.commands.execute(kind, view.id, command, context, how);
    if (outcome.outcome === 'rejected') throw rejected(outcome.rejection);
    return applied({ id: view.id, skipped: [] }, outcome.loaded.position, services);
  });
};

/** What refers to it relies on its place: an external IP is on the hub of its pool. */
const whyReferenced = (
  { kind, words }: ActingKind,
  id: string,
  { resources }: Pick<OrderServices, 'resources'>,
): Rejection | undefined => {
  const [user] = resources.referencedBy(kind, id, { limit: 1 });
  const message = `cannot abort ${words} '${id}': ${user?.kind} '${user?.id}' refers to it: remove that one first`;
  return user && reject('failed-precondition', 'STILL_REFERENCED', message);
};
