import { laneOf } from '../hubs/hub-object.ts';
import type { JsonObject } from '../json.ts';
import { isObject, stringAt } from '../json-tools.ts';
import type { Call, Step } from '../process/declaration.ts';
import { BACKOFF, later, OWN_BACKOFF, type Backoff } from '../process/effects.ts';
import type { Run } from '../process/run.ts';
import { stepWorkflow } from '../process/step-workflow.ts';
import { UNDO } from '../process/undo.ts';
import type { AnyWorkflow } from '../workflow.ts';
import { TENANT } from './hub-objects.ts';
import {
  isSpace,
  TENANT_SPACE_CATEGORY,
  tenantSpaceDecider,
  tenantSpaceId,
  tenantSpaceTypes,
  type TenantSpaceCommand,
  type TenantSpaceEvent,
  type TenantSpaceOrder,
  type TenantSpaceState,
} from './tenant-space.ts';

/** `looks`: how often it was time to ask whether the tenant still exists. */
type Memo = { readonly looks: number };
type SpaceRun = Run<TenantSpaceState, Memo>;
type SpaceStep = Step<SpaceRun, TenantSpaceCommand>;

const MINUTE = 60_000;
const READ_MS = 10_000;
/** Its watch tells of it; this is for what went away while nobody watched. */
const READ_READY_MS = 60 * MINUTE;
const READY_DEADLINE_MS = 30 * MINUTE;
const REMOVAL_BACKOFF: Backoff = { firstMs: 5_000, maxMs: 30 * MINUTE };
/** The end of its tenant wakes it; this is for what was asked for too late to hear of that. */
const TENANT_LOOK_MS = 24 * 60 * MINUTE;
const TENANT_GONE = 'tenant-gone';

const orderOf = ({ subject }: SpaceRun): TenantSpaceOrder | undefined =>
  isSpace(subject) ? subject : undefined;

const onHub = (run: SpaceRun, operation: string, more: JsonObject = {}): Call => {
  const { hub = '' } = orderOf(run) ?? {};
  return { port: 'management-cluster', operation, lane: laneOf(hub, TENANT), args: { hub, ...more } };
};
/** Of its Tenant. */
const onObject = (run: SpaceRun, operation: string, more: JsonObject = {}): Call => {
  const { tenant = '', namespace = '' } = orderOf(run) ?? {};
  return onHub(run, operation, { object: TENANT.kind, namespace, name: tenant, id: tenant, ...more });
};
const onNamespaces = (run: SpaceRun, operation: string): Call =>
  onHub(run, operation, { namespaces: [...(orderOf(run)?.namespaces ?? [])] });

const looksOf = ({ done }: SpaceRun): number => done['tenant']?.times ?? 0;
const isWanted = ({ subject }: SpaceRun): boolean =>
  subject.status === 'requested' || subject.status === 'ready';

const observe = (run: SpaceRun, answer: JsonObject, at: string): TenantSpaceCommand | undefined => {
  const { object: shown, hub } = answer;
  const order = orderOf(run);
  const isApplied = run.done['apply']?.instance === String(run.cycle);
  if (order === undefined || !isWanted(run) || !isApplied || run.problem !== undefined) return undefined;
  if (shown === undefined || (hub !== undefined && hub !== order.hub)) return undefined;
  if (!isObject(shown)) return { type: 'RecordSpaceLost', at };
  if (stringAt(shown, 'deletionTimestamp') !== '') return undefined;
  const phase = stringAt(shown, 'phase');
  // Where nobody works on the objects of a hub, what was stored there is as it should be.
  if (phase === 'Ready' || (order.controller === 'ledger' && !order.simulated))
    return { type: 'RecordSpaceReady', at };
  if (phase !== 'Failed') return undefined;
  const message = stringAt(shown, 'message') || 'the hub could not make the tenant ready';
  return { type: 'RecordSpaceFailure', at, reason: 'TenantFailed', message };
};

const STEPS: readonly SpaceStep[] = [
  {
    name: 'prepare',
    rules: { backoff: BACKOFF, mayBeRefused: false },
    work: (run) => ({ call: onNamespaces(run, 'prepareTenant'), instance: run.cycle }),
    undo: {
      call: (run) => onNamespaces(run, 'removeTenant'),
      // A look that removes what is there leaves no doubt either.
      look: (run) => onNamespaces(run, 'removeTenant'),
      absent: (_run, answer) => answer['existed'] === false,
      rules: { backoff: REMOVAL_BACKOFF },
    },
  },
  {
    name: 'apply',
    after: ['prepare'],
    rules: { backoff: BACKOFF, mayBeRefused: false },
    work: (run) => ({ call: onObject(run, 'applyObject', { spec: {} }), instance: run.cycle }),
    undo: {
      call: (run) => onObject(run, 'deleteObject'),
      look: (run) => onObject(run, 'observeObject'),
      absent: (_run, answer) => answer['existed'] === false || answer['object'] === null,
      shown: (_run, answer) => isObject(answer['object']),
      gone: (_run, answer) => answer['object'] === null,
      rules: { backoff: REMOVAL_BACKOFF },
    },
  },
  {
    // Only waited for.
    name: 'ready',
    after: ['apply'],
    done: ({ subject }) => subject.status === 'ready',
    deadline: {
      ms: READY_DEADLINE_MS,
      onOverdue: (_run, { at }) => ({
        type: 'RecordSpaceFailure',
        at,
        reason: 'TenantNotReady',
        message: `the hub did not make the tenant ready within ${READY_DEADLINE_MS / MINUTE} minutes`,
      }),
    },
  },
  {
    // What the watch of its hub missed.
    name: 'read',
    phase: 'live',
    after: ['apply'],
    done: (run) => !isWanted(run),
    work: (run) => ({
      call: onObject(run, 'observeObject'),
      everyMs: run.subject.status === 'ready' ? READ_READY_MS : READ_MS,
    }),
  },
  {
    name: 'tenant',
    phase: 'live',
    done: (run) => !isWanted(run),
    rules: { backoff: OWN_BACKOFF },
    work: (run) => {
      const { looks } = run.memo;
      const call: Call = { port: 'tenants', operation: 'look', lane: 'tenants', args: {} };
      return looks > looksOf(run) ? { call, instance: looks } : undefined;
    },
    record: (_run, answer, at) => (answer['gone'] === true ? { type: 'RemoveSpace', at } : undefined),
  },
  {
    name: 'report-problem',
    phase: 'live',
    tell: ({ problem }) =>
      problem === undefined
        ? undefined
        : { type: 'RecordSpaceFailure', at: problem.at, reason: problem.reason, message: problem.message },
  },
  {
    name: 'look-for-absence',
    phase: 'undo',
    needed: (run) => (run.effects['undo-apply']?.status ?? 'done') !== 'done',
    work: (run) => ({ call: onObject(run, 'observeObject'), everyMs: READ_MS }),
  },
  {
    name: 'confirm-absence',
    phase: 'undo',
    after: [UNDO],
    tell: (_run, at) => ({ type: 'ConfirmSpaceRemoved', at }),
  },
];

/** From the first object of a tenant on a hub to the end of the tenant. It begins anew where the tenant comes back. */
export const tenantSpaceWorkflow = stepWorkflow<TenantSpaceState, TenantSpaceCommand, TenantSpaceEvent, Memo>(
  {
    name: 'tenantSpaceOrder',
    subject: {
      category: TENANT_SPACE_CATEGORY,
      types: tenantSpaceTypes.map(({ type }) => type),
      decider: tenantSpaceDecider,
      idOf: (state) => (isSpace(state) ? tenantSpaceId(state.hub, state.tenant) : ''),
    },
    begins: isSpace,
    aborts: ({ status }) => status === 'removing' || status === 'removed',
    retries: (_run, { of, type, revision }) =>
      of === 'subject' && (type === 'TenantSpaceLost' || (type === 'TenantSpaceRequested' && revision > 0)),
    memo: {
      initial: { looks: 0 },
      evolve: (memo, { type, data }, run) =>
        type === 'TimerFired' && stringAt(data, 'timerId').startsWith(TENANT_GONE)
          ? { looks: looksOf(run) + 1 }
          : memo,
    },
    timers: (run): { readonly [timerId: string]: string } => {
      const since = run.done['tenant']?.at ?? run.since['tenant'];
      const tenant = orderOf(run)?.tenant ?? '';
      return since === undefined || !isWanted(run) || run.memo.looks > looksOf(run)
        ? {}
        : { [`${TENANT_GONE}:${tenant}`]: later(since, TENANT_LOOK_MS) };
    },
    wakes: [{ types: ['TenantOffboarded'], timerId: TENANT_GONE, perStream: 1_000 }],
    steps: STEPS,
    observe,
    hubOf: (run) => orderOf(run)?.hub,
  },
) as unknown as AnyWorkflow;
