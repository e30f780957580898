import { SIMULATION_ANNOTATION } from '../../hubs/hub-object.ts';
import { templateInOrder } from '../ansible-templates.ts';
import type { JsonObject } from '../../json.ts';
import { defined } from '../../json-tools.ts';
import type { Call, Step as StepOf } from '../../process/declaration.ts';
import { isUnresolved } from '../../process/effects.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import { clusterOrderDraft, orderName } from '../cluster-order-manifest.ts';
import type { ClusterCommand } from '../commands.ts';
import type { AutomationPurpose } from '../state.ts';
import { automationMode, hubOf, isRetryUnsent, isSent, orderOf, wantedClaim, type OrderRun } from './run.ts';

/** What steps ask for: effects on hub, scheduler and automation. */
export type Step = StepOf<OrderRun, ClusterCommand>;

/** Plain data that TypeScript knows as a readonly type, as JSON. */
export const asJson = (value: object): JsonObject => value as JsonObject;

/** Its object on the hub. */
const OBJECT = 'ClusterOrder';

/** How often the hub is read besides its watch: changes are expected, or only degradation and loss. */
export const READ_BUSY_MS = 10_000;
export const READ_READY_MS = 60_000;

export const onHub = (run: OrderRun, operation: string, args: JsonObject): Call => ({
  port: 'management-cluster',
  lane: `hub:${hubOf(run)?.id ?? ''}`,
  operation,
  args,
});

export const orderRef = (run: OrderRun): JsonObject => {
  const { id = '', namespace = '', orderName: name = orderName(run.id) } = hubOf(run) ?? {};
  return { object: OBJECT, id: run.id, hub: id, namespace, name };
};

/**
 * A call of the hub's automation; its lane is its own, so that a listener that hangs delays no look at the hub, and one
 * per mode: where a hub was switched, orders of before go on with the other one.
 */
export const onAutomation = (run: OrderRun, operation: string, args: JsonObject): Call => {
  const [hub, mode] = [hubOf(run)?.id ?? '', automationMode(run) ?? ''];
  return { port: 'automation', operation, lane: `automation:${mode}:${hub}`, args: { hub, mode, ...args } };
};

export const triggerCall = (run: OrderRun, purpose: AutomationPurpose, more: JsonObject = {}): Call => {
  const { namespace = '', name = '' } = orderRef(run);
  const place = { namespace, name, clusterId: run.id };
  return onAutomation(run, 'trigger', { purpose, place, ...more });
};

const onScheduler = (operation: string, args: JsonObject): Call => ({
  port: 'scheduler',
  operation,
  lane: 'scheduler',
  args,
});

/** Who claims room on a hub. */
const holderOf = (run: OrderRun): JsonObject => ({ kind: CLUSTER_CATEGORY, id: run.id });

export const placeCall = (run: OrderRun): Call => {
  const order = orderOf(run);
  const ansibleTemplate = templateInOrder(order);
  return onScheduler('place', {
    holder: holderOf(run),
    tenant: run.tenant,
    template: order.template.id,
    objectName: orderName(run.id),
    ...(order.zone === undefined ? {} : { zone: order.zone }),
    ...defined({ hub: order.networkAttachment?.hub ?? order.externalIps?.hub }),
    claim: asJson(wantedClaim(run)),
    ...(ansibleTemplate === undefined ? {} : { ansibleTemplate }),
    ...(run.memo.reconsidering === undefined ? {} : { mayStay: true }),
  });
};

export const resizeCall = (run: OrderRun, claim: ReturnType<typeof wantedClaim>): Call =>
  onScheduler('resize', { hub: hubOf(run)?.id ?? '', holder: holderOf(run), claim: asJson(claim) });

export const releaseCall = (run: OrderRun): Call => {
  // A hub that was found too late to be told of holds the place all the same.
  const found = run.done['place']?.result?.['hub'];
  const hub = hubOf(run)?.id ?? (typeof found === 'string' ? found : undefined);
  return onScheduler('release', { ...(hub === undefined ? {} : { hub }), holder: holderOf(run) });
};

export const observeCall = (run: OrderRun): Call => onHub(run, 'observeObject', orderRef(run));

export const applyCall = (run: OrderRun): Call => {
  const order = orderOf(run);
  const { id = '', namespace = '', mode = 'operator', simulated = false, tenantNamespace } = hubOf(run) ?? {};
  const { pullSecret, annotations } = order;
  const simulation = annotations[SIMULATION_ANNOTATION];
  const draft = clusterOrderDraft(
    { ...order, ...(simulation === undefined ? {} : { simulation }) },
    { namespace, mode, simulated },
  );
  return onHub(run, 'applyObject', {
    object: OBJECT,
    id: run.id,
    hub: id,
    ...asJson(draft),
    ...(pullSecret === undefined ? {} : { secrets: { pullSecret: asJson(pullSecret) } }),
    ...(tenantNamespace === undefined ? {} : { tenantNamespace }),
    ...(isSent(run) ? {} : { unsent: true }),
    ...(isRetryUnsent(run) ? { relaunch: true } : {}),
  });
};

/** Of a deletion: instead of beginning it again, a look ends the doubt. */
export const settling = (
  effect: string,
  callOf: (run: OrderRun) => Call,
  more: Partial<Step> = {},
): Step => ({
  name: `settle-${effect}`,
  phase: 'undo',
  effect,
  done: (run) => !isUnresolved(run.effects[effect]),
  work: (run) => ({ call: callOf(run) }),
  ...more,
});
