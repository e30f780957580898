import { templateInOrder } from '../ansible-templates.ts';
import type { JsonObject } from '../../json.ts';
import { isUnresolved } from '../../process/effects.ts';
import { asJson } from './as-json.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import { clusterOrderDraft, orderName } from '../cluster-order-manifest.ts';
import type { ClusterCommand } from '../commands.ts';
import type { AutomationPurpose } from '../events.ts';
import { automationMode, cycleOf, wantedClaim, type OpenRun } from './run.ts';
import type { Call, EffectWork, Work } from './step.ts';

/** What steps ask for: commands to the cluster, effects on hub and scheduler. */
export const cluster = (instance: string | number, command: ClusterCommand): Work => ({
  kind: 'command',
  instance: String(instance),
  command,
});

export const onHub = (run: OpenRun): { readonly port: 'management-cluster'; readonly lane: string } => ({
  port: 'management-cluster',
  lane: `hub:${run.hub?.hub ?? ''}`,
});

export const orderRef = (run: OpenRun): JsonObject => ({
  hub: run.hub?.hub ?? '',
  namespace: run.hub?.namespace ?? '',
  name: run.applied?.name ?? orderName(run.clusterId),
  clusterId: run.clusterId,
});

/**
 * A call of the hub's automation; its lane is its own, so that a listener that hangs delays no look at the hub, and one
 * per mode: where a hub was switched, orders of before go on with the other one.
 */
export const onAutomation = (run: OpenRun, operation: string, args: JsonObject): Call => ({
  port: 'automation',
  operation,
  lane: `automation:${automationMode(run) ?? ''}:${run.hub?.hub ?? ''}`,
  args: { hub: run.hub?.hub ?? '', mode: automationMode(run) ?? '', ...args },
});

export const triggerCall = (run: OpenRun, purpose: AutomationPurpose, more: JsonObject = {}): Call => {
  const { namespace, name, clusterId } = orderRef(run);
  const place = { namespace: namespace ?? '', name: name ?? '', clusterId: clusterId ?? '' };
  return onAutomation(run, 'trigger', { purpose, place, ...more });
};

/** Who claims room on a hub. */
const holderOf = ({ clusterId }: OpenRun): JsonObject => ({ kind: CLUSTER_CATEGORY, id: clusterId });

export const placeCall = (run: OpenRun): Call => {
  const ansibleTemplate = templateInOrder(run.spec);
  return {
    port: 'scheduler',
    operation: 'place',
    lane: 'scheduler',
    args: {
      holder: holderOf(run),
      tenant: run.tenant,
      template: run.spec.template.id,
      objectName: orderName(run.clusterId),
      ...(run.zone === undefined ? {} : { zone: run.zone }),
      claim: asJson(wantedClaim(run)),
      ...(ansibleTemplate === undefined ? {} : { ansibleTemplate }),
      ...(run.reconsidering === undefined ? {} : { mayStay: true }),
    },
  };
};

export const releaseCall = (run: OpenRun): Call => ({
  port: 'scheduler',
  operation: 'release',
  lane: 'scheduler',
  args: { ...(run.hub === undefined ? {} : { hub: run.hub.hub }), holder: holderOf(run) },
});

export const observeCall = (run: OpenRun): Call => ({
  ...onHub(run),
  operation: 'observeCluster',
  args: orderRef(run),
});

export const applyCall = (run: OpenRun): Call => {
  const { namespace = '', mode = 'operator', simulated = false } = run.hub ?? {};
  const { simulation } = run;
  const draft = clusterOrderDraft(
    {
      ...run.spec,
      id: run.clusterId,
      tenant: run.tenant,
      ...(simulation === undefined ? {} : { simulation }),
    },
    { namespace, mode, simulated },
  );
  const { pullSecret } = run.spec;
  return {
    ...onHub(run),
    operation: 'applyClusterOrder',
    args: {
      hub: run.hub?.hub ?? '',
      clusterId: run.clusterId,
      manifest: asJson(draft),
      ...(pullSecret === undefined ? {} : { pullSecret: asJson(pullSecret) }),
      ...(run.hub?.tenantNamespace === true ? { tenantNamespace: true } : {}),
      ...(run.applied === undefined ? { unsent: true } : {}),
      ...(isFirstOfRetry(run) ? { relaunch: true } : {}),
    },
  };
};

/** The hub's operator launches the jobs, and is to do so again: somebody retried, and nothing was sent since. */
const isFirstOfRetry = (run: OpenRun): boolean =>
  run.cycle > 0 && automationMode(run) === undefined && cycleOf(run.applied?.instance) !== run.cycle;

export const effect = (kind: string, instance: string | number, call: Call): EffectWork => ({
  kind: 'effect',
  effect: kind,
  instance: String(instance),
  ...call,
});

/** An effect that may have happened is settled under its own id before another takes its place. */
export const settled = (run: OpenRun, kind: string, instance: string | number, call: Call): EffectWork => {
  const known = run.effects[kind];
  return isUnresolved(known)
    ? { kind: 'effect', effect: kind, instance: known.id.slice(kind.length + 1), ...call }
    : effect(kind, instance, call);
};

/** A retry asks anew, also where the last answer was a refusal. */
const resizeInstance = ({ specRevision, capacityTries, cycle }: OpenRun): string =>
  `${specRevision}.${capacityTries}${cycle === 0 ? '' : `.${cycle}`}`;

export const resizeWork = (run: OpenRun, claim: ReturnType<typeof wantedClaim>): Work | undefined =>
  run.waiting === undefined
    ? settled(run, 'resize', resizeInstance(run), {
        port: 'scheduler',
        operation: 'resize',
        lane: 'scheduler',
        args: { hub: run.hub?.hub ?? '', holder: holderOf(run), claim: asJson(claim) },
      })
    : undefined;

export const answeredFor = (run: OpenRun, step: string, instance: string | number): boolean =>
  run.answered[step]?.instance === String(instance);
